"""What the routes are given."""

import asyncio
from collections.abc import Coroutine
from typing import Annotated, TypedDict, TypeVar

from fastapi import Depends, Request
from starlette.requests import ClientDisconnect

from service.settings import Settings
from service.worker import Worker

T = TypeVar("T")


class State(TypedDict):
    """What the application's lifespan yields."""

    settings: Settings
    worker: Worker


def _settings(request: Request) -> Settings:
    settings: Settings = request.state.settings
    return settings


def _worker(request: Request) -> Worker:
    worker: Worker = request.state.worker
    return worker


SettingsDependency = Annotated[Settings, Depends(_settings)]
WorkerDependency = Annotated[Worker, Depends(_worker)]


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
