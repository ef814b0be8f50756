"""The HTTP application: routes, middleware and error handlers for a fleet of models."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from threading import Lock
from typing import Any

from fastapi import FastAPI
from fastapi.middleware.asyncexitstack import AsyncExitStackMiddleware
from fastapi.routing import APIRoute
from starlette.middleware.exceptions import ExceptionMiddleware
from starlette.types import ASGIApp

from mt.text.language_detection import LanguageDetector
from service.access.database import Database
from service.glossaries.offered import OfferedGlossary
from service.http.bodies import BodyReader, body_schemas
from service.http.middleware import install_middleware
from service.http.problems import PROBLEM_JSON, Problem, install_error_handlers
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
from service.routes.access import API_KEY, KEY_SCHEME, admit, require_admin_unless_public
from service.schemas import MAX_TERMS
from service.services import Services, open_services
from service.settings import Settings
from service.translation.service import NewDetector
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

    _describing = Lock()  # for threads: FastAPI keeps its document before this class changes it

    def build_middleware_stack(self) -> ASGIApp:
        """Return the router within the middleware, without that of FastAPI for telemetry, sizes and unknown errors."""
        app: ASGIApp = ExceptionMiddleware(AsyncExitStackMiddleware(self.router), self.exception_handlers)
        for middleware in reversed(self.user_middleware):
            app = middleware.cls(app, *middleware.args, **middleware.kwargs)
        return app

    def openapi(self) -> dict[str, Any]:
        """Return FastAPI's document. The errors of all routes have one description, in place of status 422.

        An operation states that it needs no key if the settings let it do without.
        """
        with self._describing:
            if self.openapi_schema is not None:
                return self.openapi_schema
            schema = super().openapi()
            for operations in schema["paths"].values():
                for operation in operations.values():
                    operation["responses"].pop("422", None)
                    operation["responses"] |= {"4XX": PROBLEM, "5XX": PROBLEM}
            settings: Settings = self.state.settings
            readers = []
            for path, method, dependency in dependencies():
                operation = schema["paths"][path][method.lower()]
                if dependency is admit:
                    operation["security"] = [{API_KEY: []}] if settings.require_key else [{}, {API_KEY: []}]
                elif dependency is require_admin_unless_public and settings.public_metrics:
                    operation["security"].insert(0, {})
                elif isinstance(dependency, BodyReader):
                    readers.append(dependency)
                    dependency.document(operation, method)
            components = schema["components"]
            components["securitySchemes"][API_KEY] = KEY_SCHEME
            components["schemas"] |= body_schemas(readers)
            components["schemas"]["Problem"] = Problem.model_json_schema()
            for unused in ("HTTPValidationError", "ValidationError"):
                components["schemas"].pop(unused, None)
            return schema


def dependencies() -> Iterator[tuple[str, str, object]]:
    """Yield (path, method, dependency) of each dependency of each documented operation."""
    for route in (route for router in ROUTERS for route in router.routes):
        if isinstance(route, APIRoute) and route.include_in_schema:
            for method in route.methods or ():
                yield from ((route.path_format, method, used.call) for used in route.dependant.dependencies)


def create_app(
    settings: Settings, fleet: Fleet, database: Database, detector: NewDetector = LanguageDetector
) -> FastAPI:
    """Create the application. `fleet` and `database` must be open while the application runs.

    `detector` creates the detector of the languages that are served.

    Raises: OfferedGlossaryError if the file `page_glossary` cannot be used.
    """
    metrics = Metrics()
    offered = OfferedGlossary(settings.page_glossary, MAX_TERMS)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[dict[str, Services]]:
        async with open_services(settings, fleet, database, metrics, offered, detector) as services:
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
        telemetry={"tracing": False, "metrics": False, "logs": False},  # else looked up at each request
    )
    app.state.settings = settings
    for router in ROUTERS:
        app.router.routes.extend(router.routes)  # include_router would build each route again at the first request
    install_error_handlers(app)
    install_middleware(app, settings, metrics, fleet.gate)
    return app
