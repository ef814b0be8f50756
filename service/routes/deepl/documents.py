"""/v2/document: upload, ask, fetch once."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from pathlib import PurePath
from typing import Any
from urllib.parse import quote

from fastapi import APIRouter, Request, Response
from starlette.datastructures import UploadFile
from starlette.responses import StreamingResponse

from service.bodies import parsed
from service.dependencies import SettingsDependency, ShelfDependency
from service.errors import BodyTooLarge, InvalidDocument, InvalidRequest, NotReady, documented, shown, well_formed
from service.routes.deepl.access import FINDING, TRANSLATING, CallDependency
from service.routes.deepl.body import form_or_json, inlined
from service.routes.deepl.schemas import DocumentBody, DocumentHandle, DocumentStatus, KeyBody
from service.routes.deepl.translate import check, directed
from service.translation.shelf import STATUS_SECONDS, Handle

PIECE = 65_536  # bytes

router = APIRouter(prefix="/v2/document")

FILE = {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}


def multipart() -> dict[str, Any]:
    """For `openapi_extra`."""
    schema = inlined(DocumentBody)
    schema["properties"]["file"] = {"type": "string", "format": "binary", "description": "The file."}
    schema["required"] = [*schema["required"], "file"]
    return {"requestBody": {"required": True, "content": {"multipart/form-data": {"schema": schema}}}}


@router.post("", responses=documented(*TRANSLATING, InvalidDocument), openapi_extra=multipart())
async def upload(
    request: Request, call: CallDependency, shelf: ShelfDependency, settings: SettingsDependency
) -> DocumentHandle:
    """Begin to translate a file."""
    asked = parsed(DocumentBody, call.fields)
    check(asked, call.fields)
    name, content = await uploaded(request, asked)
    job = await directed(asked, call)
    opened = await call.translations.open_document(name, content)
    if opened.characters > settings.max_document_characters:
        raise BodyTooLarge(
            f"{name} has {opened.characters} characters; the limit is {settings.max_document_characters}"
        )
    async with call.charged(opened.characters):
        handle = await shelf.put(opened, job)
    return DocumentHandle(document_id=handle.id, document_key=handle.key)


@router.post(
    "/{document_id}",
    responses=documented(*FINDING),
    response_model_exclude_none=True,
    openapi_extra=form_or_json(KeyBody),
)
async def status(document_id: str, call: CallDependency, shelf: ShelfDependency) -> DocumentStatus:
    """How far a document is. One that is almost done is waited for."""
    asked = parsed(KeyBody, call.fields)
    document = await shelf.find(call.caller.id, Handle(document_id, asked.document_key), STATUS_SECONDS)
    return DocumentStatus(
        document_id=document.id,
        status="done" if document.done else "error" if document.error else "translating",
        billed_characters=document.characters if document.done else None,
        error_message=document.error or None,
    )


@router.post(
    "/{document_id}/result",
    responses=documented(*FINDING, NotReady) | {200: {"content": FILE}},
    response_class=Response,
    openapi_extra=form_or_json(KeyBody),
)
async def result(document_id: str, request: Request, call: CallDependency, shelf: ShelfDependency) -> StreamingResponse:
    """Fetch a document that is done, once: then it is forgotten."""
    asked = parsed(KeyBody, call.fields)
    document = await shelf.find(call.caller.id, Handle(document_id, asked.document_key))
    if document.error:
        raise InvalidRequest.listing([f"the document could not be translated: {document.error}"])
    if not document.done:
        raise NotReady
    content = await shelf.content(document.id)
    return StreamingResponse(
        handed_over(content, request, partial(shelf.remove, document.id)),
        media_type="application/octet-stream",
        headers={
            "Content-Disposition": f"attachment; filename*=UTF-8''{quote(document.name)}",
            "Content-Length": str(len(content)),
        },
    )


async def handed_over(content: bytes, request: Request, then: Callable[[], Awaitable[None]]) -> AsyncIterator[bytes]:
    """The content in pieces, each of which is asked for when the connection has taken what came before it; and what is
    to be done when all of them have gone. If the client leaves before, that is not done."""
    for begin in range(0, len(content), PIECE):
        yield content[begin : begin + PIECE]
    if not await request.is_disconnected():  # a connection that is lost takes everything
        await asyncio.shield(then())


async def uploaded(request: Request, asked: DocumentBody) -> tuple[str, bytes]:
    """Name and content. Raises InvalidRequest."""
    files = (await request.form()).getlist("file")
    if len(files) != 1 or not isinstance(files[0], UploadFile):
        raise InvalidRequest.listing(["file must be one file, in a multipart form"])
    content = await files[0].read()
    name = PurePath(well_formed(asked.filename or files[0].filename or "").replace("\\", "/")).name
    if not name or not content:
        raise InvalidRequest.listing(["file must have a name and not be empty"])
    suffix = PurePath(name).suffix.lower().removeprefix(".")
    wanted = (asked.output_format or suffix).lower().removeprefix(".")
    if wanted != suffix:
        raise InvalidRequest.listing([f"output_format is {shown(wanted)}; accepted: {suffix}, which the file has"])
    return name, content
