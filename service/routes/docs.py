"""GET /openapi.json (LibreTranslate: /spec), and GET /docs: an HTML page, without scripts, with the same content."""

import asyncio
import json
from functools import lru_cache
from html import escape
from typing import Any

from fastapi import APIRouter, FastAPI, Request, Response

router = APIRouter(tags=["service"])

PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{title}</title><link rel="stylesheet" href="web/style/docs.css">
<h1>{title} {version}</h1><p>{description} For programs: <a href="openapi.json">openapi.json</a>.</p>
{operations}</html>"""


@router.get("/openapi.json", include_in_schema=False)
@router.get("/spec", include_in_schema=False)
async def openapi(request: Request) -> Response:
    """Return the OpenAPI document, which describes all operations."""
    content = await asyncio.to_thread(encoded, request.app, request.scope.get("root_path", ""))
    return Response(content, media_type="application/json")


@lru_cache(1)
def encoded(app: FastAPI, root_path: str) -> bytes:
    """Return the OpenAPI document of an application as JSON. A proxy serves the application under `root_path`."""
    servers = {"servers": [{"url": root_path}]} if root_path else {}
    return json.dumps(app.openapi() | servers, ensure_ascii=False, separators=(",", ":")).encode()


@router.get("/docs", include_in_schema=False)
async def docs(request: Request) -> Response:
    """Return the HTML page that describes all operations."""
    return Response(await asyncio.to_thread(page, request.app), media_type="text/html")


@lru_cache(1)
def page(app: FastAPI) -> str:
    """Return the HTML page that describes all operations of an application."""
    document = app.openapi()
    schemas = document["components"]["schemas"]
    operations = "\n".join(
        _operation(method.upper(), path, operation, schemas)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    )
    info = {name: escape(document["info"][name]) for name in ("title", "version", "description")}
    return PAGE.format(operations=operations, **info)


def _operation(method: str, path: str, operation: dict[str, Any], schemas: dict[str, Any]) -> str:
    contents = operation.get("requestBody", {}).get("content", {})
    schema: dict[str, Any] = next((content["schema"] for content in contents.values()), {})
    if "$ref" in schema:
        schema = schemas[schema["$ref"].rpartition("/")[2]]
    required = schema.get("required", ())
    fields = [(name, name in required, field) for name, field in schema.get("properties", {}).items()]
    fields += [
        (field["name"], field.get("required", False), {**field["schema"], **field})
        for field in operation.get("parameters", ())
    ]
    rows = "".join(
        f"<tr><td><code>{escape(name)}</code></td><td>{'required' if is_required else ''}</td>"
        f"<td>{escape(field.get('description', ''))}</td></tr>"
        for name, is_required, field in fields
    )
    table = f"<table>{rows}</table>" if rows else ""
    errors = ", ".join(sorted(operation["responses"]))
    return (
        f"<h2><code>{method} {escape(path)}</code></h2><p>{escape(operation.get('description', ''))}</p>{table}"
        f"<p>Statuses: {errors}</p>"
    )
