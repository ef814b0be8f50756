"""GET / and the files of the page: the HTML, CSS, JavaScript modules and texts of service/web.

The Content-Security-Policy of service/http/middleware.py allows connections to this service only.
"""

from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from pathlib import Path

from fastapi import APIRouter, Request, Response
from starlette.exceptions import HTTPException

router = APIRouter(tags=["service"])

WEB = Path(__file__).resolve().parent.parent / "web"

MEDIA_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".svg": "image/svg+xml",
}
"""Media types of the page's files, by suffix. The operating system's table of media types may lack some of them."""

HEADERS = {"Cache-Control": "no-cache"}  # cached, but revalidated: a new version of the service is used at once


@router.get("/", include_in_schema=False)
async def front(request: Request) -> Response:
    """Return the page."""
    return file_response(request, "index.html")


@router.get("/web/{name:path}", include_in_schema=False)
async def file(request: Request, name: str) -> Response:
    """Return a file of the page."""
    return file_response(request, name)


@cache
def files() -> Mapping[str, bytes]:
    """Return the contents of the page's files. The keys are their paths in service/web."""
    return {path.relative_to(WEB).as_posix(): path.read_bytes() for path in WEB.rglob("*") if path.is_file()}


def file_response(request: Request, name: str) -> Response:
    """Return a file of the page, or status 304 if the browser has it already.

    Raises: HTTPException with status 404 if the page has no such file.
    """
    media_type = MEDIA_TYPES.get(Path(name).suffix)
    if media_type is None or name not in files():
        raise HTTPException(404)
    content = files()[name]
    tag = f'"{sha256(content).hexdigest()[:32]}"'
    headers = {**HEADERS, "ETag": tag}
    tags = {value.strip().removeprefix("W/") for value in request.headers.get("if-none-match", "").split(",")}
    if tags & {tag, "*"}:
        return Response(status_code=304, headers=headers)
    return Response(content, headers=headers, media_type=media_type)
