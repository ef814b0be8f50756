"""The HTTP application: routes, middleware and error handlers for a fleet of models."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Any

from fastapi import FastAPI
from fastapi.routing import APIRoute

from service.access.database import Database
from service.errors import PROBLEM_JSON, Problem, install_error_handlers
from service.http.bodies import BodyReader, body_schemas
from service.http.middleware import install_middleware
from service.metrics import Metrics
from service.routes import (
    admin,
    deepl,
    detect,
    docs,
    files,
    frontend,
    health,
    languages,
    memories,
    models,
    page,
    suggest,
    translate,
)
from service.routes import metrics as metrics_route
from service.routes.access import API_KEY
from service.services import Services, open_services
from service.settings import Settings
from service.workers.fleet import Fleet

ROUTERS = (
    translate.router,
    detect.router,
    languages.router,
    files.router,
    memories.router,
    suggest.router,
    frontend.router,
    *deepl.ROUTERS,
    health.router,
    metrics_route.router,
    models.router,
    admin.router,
    docs.router,
    page.router,
)

PROBLEM_SCHEMA = {"schema": {"$ref": "#/components/schemas/Problem"}}
PROBLEM: dict[str, Any] = {
    "description": "The field `code` tells the errors apart.",
    "content": {PROBLEM_JSON: PROBLEM_SCHEMA, "application/json": PROBLEM_SCHEMA},
}


class Application(FastAPI):
    """FastAPI whose OpenAPI document describes the service's own request bodies and errors."""

    def openapi(self) -> dict[str, Any]:
        """Return FastAPI's document. The errors of all routes have one description, in place of status 422.

        An operation states that it needs no key if the settings let it do without.
        """
        if self.openapi_schema is None:
            schema = super().openapi()
            for path, operations in schema["paths"].items():
                for operation in operations.values():
                    operation["responses"].pop("422", None)
                    operation["responses"] |= {"4XX": PROBLEM, "5XX": PROBLEM}
                    if "security" in operation and not self._needs_key(path, operation["security"]):
                        operation["security"].insert(0, {})
            readers = []
            for path, method, reader in body_readers():
                readers.append(reader)
                reader.document(schema["paths"][path][method.lower()], method)
            components = schema["components"]["schemas"]
            components |= body_schemas(readers)
            components["Problem"] = Problem.model_json_schema()
            for unused in ("HTTPValidationError", "ValidationError"):
                components.pop(unused, None)
        assert self.openapi_schema is not None
        return self.openapi_schema

    def _needs_key(self, path: str, security: list[dict[str, Any]]) -> bool:
        """Return whether the service refuses an operation of `path` without a key."""
        settings: Settings = self.state.settings
        if {API_KEY: []} in security:
            return settings.require_key
        return path != "/metrics" or not settings.public_metrics


def body_readers() -> Iterator[tuple[str, str, BodyReader]]:
    """Yield (path, method, reader) of each operation with a body or fields in its query."""
    for route in (route for router in ROUTERS for route in router.routes):
        if isinstance(route, APIRoute):
            calls = [dependency.call for dependency in route.dependant.dependencies]
            for reader in (call for call in calls if isinstance(call, BodyReader)):
                yield from ((route.path_format, method, reader) for method in route.methods or ())


def create_app(settings: Settings, fleet: Fleet, database: Database) -> FastAPI:
    """Create the application. `fleet` and `database` must be open, and must stay open while the application runs."""
    metrics = Metrics()

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[dict[str, Services]]:
        async with open_services(settings, fleet, database, metrics) as services:
            yield {"services": services}

    app = Application(
        title="mt-service",
        version=version("mt-service"),
        description="Translation with your own models, by the contracts of LibreTranslate and DeepL.",
        lifespan=lifespan,
        openapi_url=None,  # FastAPI encodes the document for each request; routes/docs.py encodes it once
        docs_url=None,  # FastAPI's page loads scripts from another host; the page of routes/docs.py has no scripts
        redoc_url=None,
        redirect_slashes=False,  # the middleware merges slashes
    )
    app.state.settings = settings
    for router in ROUTERS:
        app.router.routes.extend(router.routes)  # include_router would build each route again at the first request
    install_error_handlers(app)
    install_middleware(app, settings, metrics, fleet.gate)
    return app
