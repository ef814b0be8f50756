"""POST /translate_file, in LibreTranslate's shape, and GET /download_file, where its answer leads."""

from pathlib import PurePath
from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter, File, Form, Request, UploadFile
from fastapi.responses import FileResponse

from mt.text.documents import SUFFIXES
from service.dependencies import (
    AccessDependency,
    FilesDependency,
    SettingsDependency,
    TranslationsDependency,
    address,
    while_connected,
)
from service.errors import BodyTooLarge, InvalidDocument, InvalidRequest, NotFound, documented
from service.routes.translate import ACCESS, AUTO, WORK
from service.schemas import TranslatedFile
from service.translation.files import original
from service.translation.jobs import Job

router = APIRouter(tags=["translation"])


@router.post("/translate_file", responses=documented(InvalidRequest, InvalidDocument, BodyTooLarge, *ACCESS, *WORK))
async def translate_file(
    *,
    file: Annotated[UploadFile, File(description="Of a kind that GET /frontend/settings names.")],
    source: Annotated[str, Form(description="A code of GET /languages, or auto.")],
    target: Annotated[str, Form(description="A code of GET /languages.")],
    request: Request,
    translations: TranslationsDependency,
    access: AccessDependency,
    settings: SettingsDependency,
    files: FilesDependency,
    api_key: Annotated[str | None, Form(description="Where the service asks for one.")] = None,
) -> TranslatedFile:
    """Translate a file and keep the result for a while: its address is the answer."""
    caller = await access.admit(api_key, address(request))
    name = PurePath((file.filename or "").replace("\\", "/")).name
    if not name:
        raise InvalidRequest.listing(["empty file"])
    if PurePath(name).suffix.lower() not in SUFFIXES:
        raise InvalidRequest.listing(["file format not supported"])
    translations.routes.check(*([] if source == AUTO else [source]), target)
    opened = await translations.open_document(name, await file.read())
    if opened.characters > settings.max_document_characters:
        found = f"request ({opened.characters}) exceeds text limit ({settings.max_document_characters})"
        raise InvalidRequest.listing([found])
    job = Job((), None if source == AUTO else source, target, caller=caller.id)
    async with access.charged(caller, opened.characters):
        content = await while_connected(request, translations.translate_opened(opened, job))
    path = PurePath(name)
    kept = await files.put(f"{path.stem}_{target}{path.suffix}", content, caller.id)
    return TranslatedFile(translatedFileUrl=str(request.url_for("download_file", name=quote(kept))))


@router.get("/download_file/{name}", responses=documented(NotFound), response_class=FileResponse)
async def download_file(name: str, files: FilesDependency) -> FileResponse:
    """A translated file, for a while after its translation."""
    return FileResponse(files.path(name), media_type="application/octet-stream", filename=original(name))
