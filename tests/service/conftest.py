"""The real server in a process of its own; and the same application in a thread, around a model that tests control."""

import asyncio
import inspect
import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest

from scripts.attack.loop_recorder import Recorder
from scripts.attack.target import ServiceProcess
from service.access.database import Database
from tests.conftest import without_settings
from tests.service.app_thread import PATIENCE
from tests.service.running import started

ROOT = Path(__file__).resolve().parents[2]


def pytest_configure() -> None:
    """Record the event loops of this process, too, if the variable RECORDED_LOOP names a file (loop_recorder.py)."""
    if file := os.environ.get("RECORDED_LOOP"):
        Recorder(Path(file)).install()


def environment(settings: dict[str, str]) -> dict[str, str]:
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
    return start_service(several_directions)


@pytest.fixture(scope="session")
def client(service: ServiceProcess) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=service.url, trust_env=False, timeout=PATIENCE) as client:
        yield client


PassTime = Callable[[float], None]


@pytest.fixture
def pass_time(monkeypatch: pytest.MonkeyPatch) -> PassTime:
    """Lets more than so many seconds pass at once."""

    def later(seconds: float) -> None:
        now = time.time() + seconds + 1
        monkeypatch.setattr(time, "time", lambda: now)

    return later


@pytest.fixture
def database() -> Iterator[Database]:
    with Database.open(None) as opened:
        yield opened
