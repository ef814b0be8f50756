"""POST /translate_file, by LibreTranslate's contract, and GET /download_file, for the address that it returns."""

from pathlib import PurePath
from urllib.parse import quote

from fastapi import APIRouter, Request
from fastapi.responses import FileResponse

from mt.text.documents import SUFFIXES
from service.bodies import MULTIPART, FileBody, documented_body
from service.dependencies import (
    AccessDependency,
    FileStoreDependency,
    TranslationsDependency,
    client_address,
    while_connected,
)
from service.errors import BodyTooLarge, InvalidRequest, NotFound, error_responses, well_formed
from service.routes.translate import ACCESS, AUTO, PARSING, WORK
from service.schemas import FileRequest, TranslatedFile
from service.translation.files import original_name
from service.translation.jobs import Job

router = APIRouter(tags=["translation"])


@router.post(
    "/translate_file",
    responses=error_responses(InvalidRequest, BodyTooLarge, *PARSING, *ACCESS, *WORK),
    openapi_extra=documented_body(FileRequest, [MULTIPART]),
)
async def translate_file(
    body: FileBody,
    request: Request,
    translations: TranslationsDependency,
    access: AccessDependency,
    files: FileStoreDependency,
) -> TranslatedFile:
    """Translate a file. Return the address of the translation, which is deleted after a while."""
    source, target = body.source, body.target
    caller = await access.admit(body.api_key, client_address(request))
    name = PurePath(well_formed(body.file.filename or "").replace("\\", "/")).name
    if not name:
        raise InvalidRequest.listing(["empty file"])
    if PurePath(name).suffix.lower() not in SUFFIXES:
        raise InvalidRequest.listing(["file format not supported"])
    routes = translations.routes
    languages = None if source == AUTO else routes.resolve(source), routes.resolve(target)
    routes.check_supported(*filter(None, languages))
    opened = await while_connected(request, translations.open_document(caller.id, name, await body.file.read()))
    job = Job((), *languages, caller=caller.id)
    async with access.charged(caller, opened.characters):
        content = await while_connected(request, translations.translate_opened(opened, job))
    path = PurePath(name)
    stored = await files.put(f"{path.stem}_{target}{path.suffix}", content, caller.id)
    return TranslatedFile(translatedFileUrl=str(request.url_for("download_file", name=quote(stored))))


@router.get("/download_file/{name}", responses=error_responses(NotFound), response_class=FileResponse)
async def download_file(name: str, files: FileStoreDependency) -> FileResponse:
    """Download a translated file."""
    return FileResponse(files.path(name), media_type="application/octet-stream", filename=original_name(name))
