"""/v2/document: upload a file, ask for its status, download its translation."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from pathlib import PurePath
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Request, Response
from pydantic import BaseModel, Field
from starlette.responses import StreamingResponse

from mt.text.documents import translated_name
from service.errors import InvalidRequest, NotReady, shorten
from service.http.admission import while_connected
from service.http.attachments import attachment
from service.http.bodies import JSON, MULTIPART, URLENCODED, BodyReader, uploaded_content, uploaded_name
from service.http.fields import FileField, OptionalText, TextField
from service.routes.access import CallerDependency
from service.routes.deepl.schemas import Body, CommonFields
from service.routes.deepl.translate import check_options, job_without_texts
from service.services import ServicesDependency
from service.translation.coroutines import deadline_at
from service.translation.document_jobs import STATUS_SECONDS
from service.translation.documents import OpenedDocument
from service.translation.jobs import Job

MAX_NAME = 1000  # characters of the name of a file

router = APIRouter(tags=["DeepL"], prefix="/v2/document")

FILE = {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}


class DocumentBody(CommonFields):
    """A file to translate, and the options."""

    file: FileField = Field(description="The file.")
    filename: OptionalText = Field(None, description="The name of the file; by default the name in the upload.")
    output_format: OptionalText = Field(
        None,
        description="The format of the translation. For a PDF file, it is required and must be docx. Other files keep "
        "their format.",
    )


class KeyBody(Body):
    """Key of the document, from the answer to its upload."""

    document_key: TextField


class DocumentHandle(BaseModel):
    document_id: str
    document_key: str


class DocumentStatus(BaseModel):
    document_id: str
    status: Literal["queued", "translating", "done", "error"]
    billed_characters: int | None = Field(None, description="Only of a document that is done.")
    error_message: str | None = Field(None, description="Only of a document that could not be translated.")


DocumentFields = Annotated[DocumentBody, Depends(BodyReader(DocumentBody, MULTIPART))]
KeyFields = Annotated[KeyBody, Depends(BodyReader(KeyBody, JSON, URLENCODED))]


@router.post("")
async def upload(
    caller: CallerDependency, body: DocumentFields, request: Request, services: ServicesDependency
) -> DocumentHandle:
    """Upload a file and begin to translate it."""
    check_options(body)
    name, content = read_upload(body)

    async def work() -> tuple[Job, OpenedDocument]:
        async with deadline_at(request.scope["state"]["deadline"]):
            job = await job_without_texts(body, caller, services)
        return job, await services.translations.documents.open(job, name, content)

    job, opened = await while_connected(request, work())
    async with services.access.charged(caller, opened.characters):
        id, key = await services.document_jobs.put(opened, job)
    return DocumentHandle(document_id=id, document_key=key)


@router.post("/{document_id}", response_model_exclude_none=True)
async def status(
    document_id: str, caller: CallerDependency, body: KeyFields, services: ServicesDependency
) -> DocumentStatus:
    """Return the status of a document. If the document is not done, the answer waits for it for a few seconds."""
    document = await services.document_jobs.find(caller.id, document_id, body.document_key, STATUS_SECONDS)
    return DocumentStatus(
        document_id=document.id,
        status="done" if document.done else "error" if document.error else "translating",
        billed_characters=document.characters if document.done else None,
        error_message=document.error or None,
    )


@router.post(
    "/{document_id}/result",
    responses={200: {"content": FILE}},
    response_class=Response,
)
async def result(
    document_id: str, caller: CallerDependency, body: KeyFields, request: Request, services: ServicesDependency
) -> StreamingResponse:
    """Download a translated document. The service deletes the document a minute later."""
    document_jobs = services.document_jobs
    document = await document_jobs.find(caller.id, document_id, body.document_key)
    if document.error:
        raise InvalidRequest.listing(f"the document could not be translated: {document.error}")
    if not document.done:
        raise NotReady
    parts = services.documents.parts(document)
    return StreamingResponse(
        until_sent(parts, request, partial(document_jobs.remove, document.id)),
        media_type="application/octet-stream",
        headers=attachment(translated_name(document.name)) | {"Content-Length": str(document.size)},
    )


async def until_sent(
    parts: AsyncIterator[bytes], request: Request, on_sent: Callable[[], Awaitable[None]]
) -> AsyncIterator[bytes]:
    """Yield `parts`. Call `on_sent` after the last part, unless the client has disconnected."""
    async for part in parts:
        yield part
    if not await request.is_disconnected():  # a write to a lost connection does not fail
        await asyncio.shield(on_sent())


def read_upload(body: DocumentBody) -> tuple[str, bytes]:
    """Return the name and the content of the uploaded file.

    Raises: InvalidRequest if its name, content or `output_format` is not accepted.
    """
    content = uploaded_content(body.file)
    name = uploaded_name(body.file, body.filename)
    if not name or not content:
        raise InvalidRequest.listing("file must have a name and not be empty")
    if len(name) > MAX_NAME:
        raise InvalidRequest.listing(f"the name of the file has {len(name)} characters; accepted: at most {MAX_NAME}")
    suffix, written = (PurePath(file).suffix.lower().removeprefix(".") for file in (name, translated_name(name)))
    output = (body.output_format or suffix).lower().removeprefix(".")
    if output != written:
        why = "the format of the file" if written == suffix else f"the format of translated .{suffix} files"
        raise InvalidRequest.listing(f"output_format is {shorten(output)}; accepted: {written}, {why}")
    return name, content
