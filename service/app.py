"""The application: routes, middleware and errors around one worker."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Any

from fastapi import FastAPI

from service.dependencies import State
from service.errors import PROBLEM_JSON, install_handlers
from service.middleware import BodyLimit, RequestLog
from service.routes import health, languages, translate
from service.settings import Settings
from service.worker import Worker


class Application(FastAPI):
    """FastAPI with an OpenAPI document that tells the truth about errors."""

    def openapi(self) -> dict[str, Any]:
        """Errors are application/problem+json, and what FastAPI would call 422 is a 400 here."""
        if self.openapi_schema is None:
            schema = super().openapi()
            for operations in schema["paths"].values():
                for operation in operations.values():
                    operation["responses"].pop("422", None)
                    for status, response in operation["responses"].items():
                        if status >= "400":
                            response["content"] = {PROBLEM_JSON: response["content"]["application/json"]}
            for unused in ("HTTPValidationError", "ValidationError"):
                schema["components"]["schemas"].pop(unused, None)
        assert self.openapi_schema is not None
        return self.openapi_schema


def create_app(settings: Settings, worker: Worker) -> FastAPI:
    """The application over a worker that has been started, and that outlives it."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[State]:
        yield State(settings=settings, worker=worker)

    app = Application(
        title="mt-service",
        version=version("mt-service"),
        description="Translation by a model of your own, in LibreTranslate's shape.",
        lifespan=lifespan,
    )
    for routes in (translate, languages, health):
        app.include_router(routes.router)
    install_handlers(app)
    app.add_middleware(BodyLimit, limit=settings.max_body_bytes)
    app.add_middleware(RequestLog)  # the last one added sees a request first
    return app
