"""POST /translate_file, by LibreTranslate's contract, and GET /download_file, which downloads the translated file."""

from functools import partial
from pathlib import PurePath
from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter, Depends, Request
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, Field

from mt.data.translation_memory import write_tmx
from mt.text.documents import SUFFIXES, translated_name
from service.errors import InvalidRequest, well_formed
from service.http.admission import while_connected
from service.http.attachments import attachment
from service.http.bodies import MULTIPART, BodyReader, uploaded_content, uploaded_name
from service.memories.units import clean_unit, unit_problem
from service.routes.access import AddressDependency, CallerDependency
from service.routes.translate import job_without_texts
from service.schemas import FileRequest
from service.services import ServicesDependency
from service.translation.coroutines import deadline_at
from service.translation.documents import DocumentTranslation

router = APIRouter(tags=["translation"])


class TranslatedFile(BaseModel):
    """Addresses of the translated file and of its sentences. The files are deleted after `file_retention_seconds`."""

    translatedFileUrl: str
    tmxUrl: str | None = Field(None, description="TMX file with the sentences; only with `tmx`.")
    sentences: int | None = Field(None, description="Number of translated sentences; only with `quality`.")
    doubtful: int | None = Field(
        None,
        description="Number of sentences whose `quality` in POST /translate is below 55, or that no model could "
        "translate; only with `quality`, and absent if the model estimates none.",
    )


FileBody = Annotated[FileRequest, Depends(BodyReader(FileRequest, MULTIPART))]


@router.post("/translate_file", response_model_exclude_none=True)
async def translate_file(
    caller: CallerDependency, body: FileBody, request: Request, services: ServicesDependency
) -> TranslatedFile:
    """Translate a file. Return the address of the translated file, which is deleted after a while."""
    translations, documents = services.translations, services.documents
    if not (name := uploaded_name(body.file)):
        raise InvalidRequest.listing("empty file")
    if PurePath(name).suffix.lower() not in SUFFIXES:
        accepted = f"{', '.join(SUFFIXES)}; save a mail as .html or .txt"
        raise InvalidRequest("Invalid request: file format not supported", accepted=accepted)
    if problems := body.term_problems(body.source):
        raise InvalidRequest.listing(*problems)
    content, columns = uploaded_content(body.file), tuple(body.columns)

    async def work() -> TranslatedFile:
        async with deadline_at(request.scope["state"]["deadline"]):  # each part of the file has one of its own
            job = await job_without_texts(body, body.target, caller, services)
        async with translations.documents.turns.held(caller.id, len(content)):
            opened = await translations.documents.open(job, name, content, columns, body.encoding)
            async with services.access.charged(caller, opened.characters):
                translated = await translations.translate_opened(opened, job)
                stored = await documents.put(translated_name(name, body.target), translated.content, caller.id)
                tmx = None
                if body.tmx:
                    write = partial(tmx_content, translated, job.target)
                    units = await translations.threads.run(caller.id, opened.characters, write)
                    tmx = await documents.put(f"{PurePath(name).stem}_{body.target}.tmx", units, caller.id)
        return TranslatedFile(
            translatedFileUrl=file_url(request, stored),
            tmxUrl=tmx and file_url(request, tmx),
            sentences=translated.translated if body.quality else None,
            doubtful=translated.doubtful if body.quality else None,
        )

    return await while_connected(request, work())


def tmx_content(translated: DocumentTranslation, target: str) -> bytes:
    """Return the sentences of a translated file as TMX. Empty and very long sentences are left out."""
    pairs = ((well_formed(source), well_formed(text)) for source, text in translated.sentences)
    units = [clean_unit(pair) for pair in pairs if not unit_problem(pair)]
    return "".join(write_tmx(units, translated.source, target)).encode()


def file_url(request: Request, name: str) -> str:
    """Return the address of a stored file."""
    return str(request.url_for("download_file", name=quote(name)))


@router.get("/download_file/{name}", response_class=StreamingResponse)
async def download_file(name: str, address: AddressDependency, services: ServicesDependency) -> StreamingResponse:
    """Download a translated file."""
    file = await services.documents.find(name, address)
    headers = attachment(file.name) | {"Content-Length": str(file.size)}
    parts = services.documents.parts(file)
    return StreamingResponse(parts, media_type="application/octet-stream", headers=headers)
