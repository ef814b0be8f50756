"""GET / and the files of the page: plain HTML, CSS and modules, as they lie in service/web.

The page talks to nobody but this service, and its Content-Security-Policy holds it to that.
"""

from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel
from starlette.exceptions import HTTPException

router = APIRouter(tags=["service"])

WEB = Path(__file__).resolve().parent.parent / "web"

TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
"""Of what is served; no other file of the folder is. Written out, for a machine's own table may lack one."""

HEADERS = {
    "Cache-Control": "no-cache",  # kept, but asked for again: a new version of the service is a new page at once
    "Content-Security-Policy": "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "Vary": "Accept",
    "X-Content-Type-Options": "nosniff",
}


class About(BaseModel):
    """What answers here."""

    name: str
    version: str
    documentation: str


FRONT: dict[int | str, dict[str, Any]] = {
    200: {"description": "What answers here, or, for who accepts text/html, the page.", "content": {"text/html": {}}},
    304: {"description": "The page is the one that the ETag in If-None-Match names."},
}


@router.head("/", response_model=None, include_in_schema=False)
@router.get("/", response_model=About, responses=FRONT)
def front(request: Request) -> Response | About:
    """The page for browsers, and for programs what answers here."""
    if "text/html" in request.headers.get("accept", ""):
        return served(request, "index.html")
    return About(name="mt-service", version=version("mt-service"), documentation="/openapi.json")


@router.head("/web/{name:path}", include_in_schema=False)
@router.get("/web/{name:path}", include_in_schema=False)
def file(request: Request, name: str) -> Response:
    """A file of the page."""
    return served(request, name)


def served(request: Request, name: str) -> Response:
    """A file, or 304 where the browser has it already. Raises HTTPException, 404."""
    kind = TYPES.get(Path(name).suffix)
    if kind is None or name not in (path.relative_to(WEB).as_posix() for path in WEB.rglob("*")):
        raise HTTPException(404)
    content = (WEB / name).read_bytes()
    tag = f'"{sha256(content).hexdigest()[:32]}"'
    headers = {**HEADERS, "ETag": tag}
    known = {each.strip().removeprefix("W/") for each in request.headers.get("if-none-match", "").split(",")}
    if known & {tag, "*"}:
        return Response(status_code=304, headers=headers)
    return Response(content, headers=headers, media_type=kind)
