"""GET /openapi.json, /spec and /docs (both of LibreTranslate): the OpenAPI document, which describes all operations."""

import asyncio
import json
from functools import lru_cache

from fastapi import APIRouter, FastAPI, Request, Response

router = APIRouter(tags=["service"])


@router.get("/openapi.json", include_in_schema=False)
@router.get("/spec", include_in_schema=False)
@router.get("/docs", include_in_schema=False)
async def openapi(request: Request) -> Response:
    """Return the OpenAPI document, which describes all operations."""
    content = await asyncio.to_thread(encoded, request.app, request.scope.get("root_path", ""))
    return Response(content, media_type="application/json")


@lru_cache(1)
def encoded(app: FastAPI, root_path: str) -> bytes:
    """Return the OpenAPI document of an application as JSON. A proxy serves the application under `root_path`."""
    servers = {"servers": [{"url": root_path}]} if root_path else {}
    return json.dumps(app.openapi() | servers, ensure_ascii=False, separators=(",", ":")).encode()
