"""FastAPI dependencies: objects of the application that routes use."""

import asyncio
from collections.abc import Awaitable
from typing import Annotated, Any, TypedDict, TypeVar

from fastapi import Depends, Request, Security
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from starlette.requests import ClientDisconnect

from service.access.api_keys import same_secret
from service.access.control import AccessControl
from service.access.glossaries import GlossaryStore
from service.access.memories import MemoryStore
from service.errors import InvalidKey, NotFound
from service.metrics import Metrics
from service.parsers.pool import Parsers
from service.readiness import Readiness
from service.settings import Settings
from service.translation.detached_work import DetachedWork
from service.translation.document_jobs import DocumentJobs
from service.translation.files import FileStore
from service.translation.service import TranslationService
from service.workers.fleet import Fleet

T = TypeVar("T")


class AppState(TypedDict):
    """Objects that the application's lifespan yields. Routes find each of them as an attribute of `request.state`."""

    settings: Settings
    fleet: Fleet
    translations: TranslationService
    access: AccessControl
    glossaries: GlossaryStore
    memories: MemoryStore
    parsers: Parsers
    files: FileStore
    document_jobs: DocumentJobs
    detached_work: DetachedWork
    metrics: Metrics
    readiness: Readiness


def from_state(name: str) -> Any:
    """Return a FastAPI dependency that reads the entry `name` of `AppState`."""

    async def read(request: Request) -> Any:
        return getattr(request.state, name)

    return Depends(read)


SettingsDependency = Annotated[Settings, from_state("settings")]
FleetDependency = Annotated[Fleet, from_state("fleet")]
TranslationsDependency = Annotated[TranslationService, from_state("translations")]
AccessDependency = Annotated[AccessControl, from_state("access")]
GlossariesDependency = Annotated[GlossaryStore, from_state("glossaries")]
MemoriesDependency = Annotated[MemoryStore, from_state("memories")]
ParsersDependency = Annotated[Parsers, from_state("parsers")]
FileStoreDependency = Annotated[FileStore, from_state("files")]
DocumentJobsDependency = Annotated[DocumentJobs, from_state("document_jobs")]
DetachedWorkDependency = Annotated[DetachedWork, from_state("detached_work")]
MetricsDependency = Annotated[Metrics, from_state("metrics")]
ReadinessDependency = Annotated[Readiness, from_state("readiness")]

_bearer = HTTPBearer(scheme_name="Operator", description="The value of the setting `admin_key`.", auto_error=False)
BearerDependency = Annotated[HTTPAuthorizationCredentials | None, Security(_bearer)]


async def require_admin(settings: SettingsDependency, bearer: BearerDependency) -> None:
    """Admit only the operator.

    Raises:
        NotFound: if the setting `admin_key` is not set.
        InvalidKey: if the request does not have this key.
    """
    if settings.admin_key is None:
        raise NotFound("Not Found")
    if bearer is None or not same_secret(bearer.credentials, settings.admin_key.get_secret_value()):
        raise InvalidKey("Invalid API key: send the header Authorization: Bearer ADMIN_KEY (the setting admin_key)")


async def require_admin_unless_public(settings: SettingsDependency, bearer: BearerDependency) -> None:
    """Admit everybody if the setting `public_metrics` is on, otherwise only the operator."""
    if not settings.public_metrics:
        await require_admin(settings, bearer)


def client_address(request: Request) -> str:
    """Return the client's address. If the client uses a proxy that the settings do not trust, return the proxy's."""
    return request.client.host if request.client else ""


async def while_connected(request: Request, work: Awaitable[T]) -> T:
    """Return the result of `work`. If the client disconnects, cancel `work` and wait until it has ended.

    Raises:
        ClientDisconnect: if the client disconnected before `work` ended.
    """
    working = asyncio.ensure_future(work)
    leaving = asyncio.ensure_future(_disconnected(request))
    try:
        await asyncio.wait((working, leaving), return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise ClientDisconnect
        return working.result()
    finally:
        working.cancel()
        leaving.cancel()
        await asyncio.gather(working, leaving, return_exceptions=True)


async def _disconnected(request: Request) -> None:
    """Wait until the client disconnects. The request's body must already have been read."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
