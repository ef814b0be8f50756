"""What the routes are given."""

import asyncio
from collections.abc import Coroutine
from typing import Annotated, TypedDict, TypeVar

from fastapi import Depends, Request, Security
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from starlette.requests import ClientDisconnect

from service.access.auth import same_secret
from service.access.glossaries import Glossaries
from service.access.limits import Access
from service.errors import InvalidKey, NotFound
from service.metrics import Metrics
from service.readiness import Readiness
from service.settings import Settings
from service.translation.core import Translations
from service.translation.files import Files
from service.translation.lingering import Lingering
from service.translation.shelf import Shelf
from service.workers.fleet import Fleet

T = TypeVar("T")


class State(TypedDict):
    """What the application's lifespan yields."""

    settings: Settings
    fleet: Fleet
    translations: Translations
    access: Access
    glossaries: Glossaries
    files: Files
    shelf: Shelf
    lingering: Lingering
    metrics: Metrics
    readiness: Readiness


async def _settings(request: Request) -> Settings:
    settings: Settings = request.state.settings
    return settings


async def _fleet(request: Request) -> Fleet:
    fleet: Fleet = request.state.fleet
    return fleet


async def _translations(request: Request) -> Translations:
    translations: Translations = request.state.translations
    return translations


async def _access(request: Request) -> Access:
    access: Access = request.state.access
    return access


async def _glossaries(request: Request) -> Glossaries:
    glossaries: Glossaries = request.state.glossaries
    return glossaries


async def _files(request: Request) -> Files:
    files: Files = request.state.files
    return files


async def _shelf(request: Request) -> Shelf:
    shelf: Shelf = request.state.shelf
    return shelf


async def _lingering(request: Request) -> Lingering:
    lingering: Lingering = request.state.lingering
    return lingering


async def _metrics(request: Request) -> Metrics:
    metrics: Metrics = request.state.metrics
    return metrics


async def _readiness(request: Request) -> Readiness:
    readiness: Readiness = request.state.readiness
    return readiness


# These are coroutines, though they wait for nothing: what is not, FastAPI runs in a thread, at ten times the cost.
SettingsDependency = Annotated[Settings, Depends(_settings)]
FleetDependency = Annotated[Fleet, Depends(_fleet)]
TranslationsDependency = Annotated[Translations, Depends(_translations)]
AccessDependency = Annotated[Access, Depends(_access)]
GlossariesDependency = Annotated[Glossaries, Depends(_glossaries)]
FilesDependency = Annotated[Files, Depends(_files)]
ShelfDependency = Annotated[Shelf, Depends(_shelf)]
LingeringDependency = Annotated[Lingering, Depends(_lingering)]
MetricsDependency = Annotated[Metrics, Depends(_metrics)]
ReadinessDependency = Annotated[Readiness, Depends(_readiness)]

_bearer = HTTPBearer(scheme_name="Operator", description="The setting `admin_key`.", auto_error=False)
GivenAdminKey = Annotated[HTTPAuthorizationCredentials | None, Security(_bearer)]


async def admin(settings: SettingsDependency, given: GivenAdminKey) -> None:
    """Lets the operator through. Raises NotFound where there is none, and InvalidKey."""
    if settings.admin_key is None:
        raise NotFound("Not Found")
    if given is None or not same_secret(given.credentials, settings.admin_key.get_secret_value()):
        raise InvalidKey("Invalid API key: this needs Authorization: Bearer, and the service's admin_key")


async def admin_unless_public(settings: SettingsDependency, given: GivenAdminKey) -> None:
    """The same for metrics, which are for everybody unless the operator says otherwise."""
    if not settings.public_metrics:
        await admin(settings, given)


def address(request: Request) -> str:
    """Of the client; of the proxy, if it is not trusted to tell."""
    return request.client.host if request.client else ""


async def while_connected(request: Request, work: Coroutine[None, None, T]) -> T:
    """The result of `work`, which is cancelled if the client leaves. Raises ClientDisconnect then."""
    working = asyncio.ensure_future(work)
    leaving = asyncio.ensure_future(_disconnect(request))
    try:
        await asyncio.wait((working, leaving), return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise ClientDisconnect
        return working.result()
    finally:
        working.cancel()
        leaving.cancel()


async def _disconnect(request: Request) -> None:
    """Ends when the client leaves. The body has been read, so that nothing else can come."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
