"""/v2/document: upload a file, ask for its status, download its translation."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from pathlib import PurePath
from typing import Any

from fastapi import APIRouter, Request, Response
from starlette.responses import StreamingResponse

from mt.text.documents import translated_name
from service.attachments import attachment
from service.bodies import parse_body, read_file
from service.dependencies import DocumentJobsDependency, while_connected
from service.errors import (
    InvalidRequest,
    NotReady,
    shorten,
    well_formed,
)
from service.routes.deepl.admission import AdmittedDependency
from service.routes.deepl.body import form_or_json, inlined
from service.routes.deepl.schemas import DocumentBody, DocumentHandle, DocumentStatus, KeyBody
from service.routes.deepl.translate import check_options, job_without_texts
from service.translation.document_jobs import STATUS_SECONDS, DocumentCredentials

CHUNK_BYTES = 65_536
MAX_NAME = 1000  # characters of the name of a file

router = APIRouter(prefix="/v2/document")

FILE = {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}


def multipart() -> dict[str, Any]:
    """Return the `openapi_extra` of an upload: a form with a file and the fields of DocumentBody."""
    schema = inlined(DocumentBody)
    schema["properties"]["file"] = {"type": "string", "format": "binary", "description": "The file."}
    schema["required"] = [*schema["required"], "file"]
    return {"requestBody": {"required": True, "content": {"multipart/form-data": {"schema": schema}}}}


@router.post("", openapi_extra=multipart())
async def upload(request: Request, call: AdmittedDependency, document_jobs: DocumentJobsDependency) -> DocumentHandle:
    """Upload a file and begin to translate it."""
    body = parse_body(DocumentBody, call.fields)
    check_options(body, call.fields)
    name, content = await read_upload(request, body)
    job = await job_without_texts(body, call)
    opened = await while_connected(request, call.translations.open_document(job, name, content))
    async with call.charged(opened.characters):
        credentials = await document_jobs.put(opened, job)
    return DocumentHandle(document_id=credentials.id, document_key=credentials.key)


@router.post(
    "/{document_id}",
    response_model_exclude_none=True,
    openapi_extra=form_or_json(KeyBody),
)
async def status(document_id: str, call: AdmittedDependency, document_jobs: DocumentJobsDependency) -> DocumentStatus:
    """Return the status of a document. If the document is not done, the answer waits for it for a few seconds."""
    body = parse_body(KeyBody, call.fields)
    document = await document_jobs.find(
        call.caller.id, DocumentCredentials(document_id, body.document_key), STATUS_SECONDS
    )
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
    openapi_extra=form_or_json(KeyBody),
)
async def result(
    document_id: str, request: Request, call: AdmittedDependency, document_jobs: DocumentJobsDependency
) -> StreamingResponse:
    """Download a translated document. The service deletes the document a minute later."""
    body = parse_body(KeyBody, call.fields)
    document = await document_jobs.find(call.caller.id, DocumentCredentials(document_id, body.document_key))
    if document.error:
        raise InvalidRequest.listing([f"the document could not be translated: {document.error}"])
    if not document.done:
        raise NotReady
    content = await document_jobs.content(document.id)
    return StreamingResponse(
        sent_chunks(content, request, partial(document_jobs.remove, document.id)),
        media_type="application/octet-stream",
        headers=attachment(translated_name(document.name)) | {"Content-Length": str(len(content))},
    )


async def sent_chunks(content: bytes, request: Request, on_sent: Callable[[], Awaitable[None]]) -> AsyncIterator[bytes]:
    """Yield `content` in chunks. Call `on_sent` after the last chunk, unless the client has disconnected."""
    for begin in range(0, len(content), CHUNK_BYTES):
        yield content[begin : begin + CHUNK_BYTES]
    if not await request.is_disconnected():  # a write to a lost connection does not fail
        await asyncio.shield(on_sent())


async def read_upload(request: Request, body: DocumentBody) -> tuple[str, bytes]:
    """Return the name and the content of the uploaded file.

    Raises: InvalidRequest if there is not exactly one file, or if its name, content or `output_format` is not accepted.
    """
    file = await read_file(request)
    if file is None:
        raise InvalidRequest.listing(["file must be one uploaded file, in a form of type multipart/form-data"])
    content = await file.read()
    name = PurePath(well_formed(body.filename or file.filename or "").replace("\\", "/")).name
    if not name or not content:
        raise InvalidRequest.listing(["file must have a name and not be empty"])
    if len(name) > MAX_NAME:
        raise InvalidRequest.listing([f"the name of the file has {len(name)} characters; accepted: at most {MAX_NAME}"])
    suffix, written = (PurePath(each).suffix.lower().removeprefix(".") for each in (name, translated_name(name)))
    output = (body.output_format or suffix).lower().removeprefix(".")
    if output != written:
        why = "the format of the file" if written == suffix else f"the format of translated .{suffix} files"
        raise InvalidRequest.listing([f"output_format is {shorten(output)}; accepted: {written}, {why}"])
    return name, content
