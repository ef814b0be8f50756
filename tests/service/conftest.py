"""The real server in a process of its own; and the same application in a thread, around a model that tests control."""

import asyncio
import inspect
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.types import ASGIApp

from scripts.attack.target import ServiceProcess
from service.access.database import Database
from service.app import create_app
from service.settings import Settings
from service.workers.fleet import Fleet, FleetStats
from service.workers.worker import Worker
from tests.conftest import DEVICE, without_settings
from tests.service.app_thread import PATIENCE, AppThread
from tests.service.controlled import Control
from tests.service.running import started

ROOT = Path(__file__).resolve().parents[2]


def environment(settings: dict[str, str]) -> dict[str, str]:
    """This process's environment, but with no other settings of ours."""
    return {**without_settings(), "OMP_NUM_THREADS": "1", **settings}


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a test that is a coroutine function in an event loop of its own."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}))
    return True


@pytest.fixture(scope="session")
def start_service() -> Iterator[Callable[..., ServiceProcess]]:
    """Starts services: `start_service(model, MT_MAX_CHARACTERS="10")`."""
    with ExitStack() as services:
        yield lambda model, **settings: services.enter_context(started(model, **settings))


@pytest.fixture(scope="session")
def service(start_service: Callable[..., ServiceProcess], several_directions: Path) -> ServiceProcess:
    """One that translates en-de, en-fr and fr-de."""
    return start_service(several_directions)


@pytest.fixture(scope="session")
def client(service: ServiceProcess) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=service.url, trust_env=False, timeout=PATIENCE) as client:
        yield client


@pytest.fixture
def database() -> Iterator[Database]:
    with Database.open(None) as opened:
        yield opened


class InThread(AppThread):
    """The application on a free port, in a thread of this process, around a controlled model."""

    def __init__(self, model: Path, settings: dict[str, Any]) -> None:
        self.settings = Settings(model=(model,), port=0, device=DEVICE, **settings)
        self.control = Control()
        self.fleet: Fleet
        self._database = Database.open(self.settings.database)
        super().__init__(lambda: create_app(self.settings, self.fleet, self._database))
        self.client = httpx.Client(base_url=self.url, trust_env=False, timeout=PATIENCE)

    async def _serve(self, make: Callable[[], ASGIApp]) -> None:
        async with Fleet(self.settings, self.control.start) as self.fleet:
            await super()._serve(make)

    @property
    def pending(self) -> int:
        """Requests accepted and not yet answered."""
        return self.fleet.stats().requests

    @property
    def worker(self) -> Worker:
        """The one that there is."""
        return next(worker for team in self.fleet.pools for worker in team.ready_workers)

    def counts(self) -> "Future[FleetStats]":
        """The worker has been asked when this returns, and answers before its next step."""
        answer = asyncio.run_coroutine_threadsafe(self.fleet.fresh_stats(), self.loop)
        self.wait(asyncio.sleep(0.1))
        return answer

    def stop(self) -> None:
        self.control.open()
        self.client.close()
        super().stop()
        self._database.close()


@pytest.fixture
def in_thread(small_model: Path) -> Iterator[Callable[..., InThread]]:
    """Starts the application: `in_thread(max_pending_requests=2)`."""
    started: list[InThread] = []

    def start(**settings: Any) -> InThread:
        started.append(InThread(small_model, settings))
        return started[-1]

    yield start
    for application in started:
        application.stop()
