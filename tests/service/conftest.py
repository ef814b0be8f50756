"""The real server in a process of its own; and the same application in a thread, around a model that tests control."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Semaphore, Thread
from typing import Any

import httpx
import pytest
import torch
import uvicorn
from torch import Tensor

from mt import Translator
from mt.checkpoint import load_model
from mt.decoding.scorer import ModelScorer
from mt.engine.batches import SearchDecoder
from mt.engine.engine import Engine
from service.__main__ import bound
from service.app import create_app
from service.messages import Counts
from service.settings import Settings
from service.worker import QueueLimits, ThreadTransport, Worker

ROOT = Path(__file__).resolve().parents[2]


def environment(settings: dict[str, str]) -> dict[str, str]:
    """This process's environment, but with no other settings of ours."""
    return {name: value for name, value in os.environ.items() if not name.startswith("MT_")} | {
        "OMP_NUM_THREADS": "1",
        **settings,
    }


@dataclass
class Service:
    """`python -m service` on a free port. `logs` are its lines so far."""

    process: subprocess.Popen[str]
    logs: list[dict[str, Any]] = field(default_factory=list)
    listening: Event = field(default_factory=Event)
    reader: Thread = field(init=False)

    @classmethod
    def start(cls, model: Path, settings: dict[str, str]) -> "Service":
        command = [sys.executable, "-m", "service", "--model", str(model), "--port", "0", "--device", "cpu"]
        process = subprocess.Popen(
            [*command, "--threads", "1"], cwd=ROOT, env=environment(settings), stderr=subprocess.PIPE, text=True
        )
        service = cls(process)
        service.reader = Thread(target=service._read, daemon=True)
        service.reader.start()
        service.listening.wait()
        assert process.poll() is None, service.logs
        return service

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.logs.append(json.loads(line) if line.startswith("{") else {"event": line})
            if self.logs[-1]["event"] == "listening":
                self.listening.set()
        self.listening.set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.logged('listening')['port']}"

    def logged(self, event: str) -> dict[str, Any]:
        """The first log line of that name."""
        return next(line for line in self.logs if line["event"] == event)

    def terminate(self) -> int:
        """The exit status after SIGTERM."""
        self.process.send_signal(signal.SIGTERM)
        status = self.process.wait()
        self.reader.join()
        return status


@pytest.fixture(scope="session")
def start_service() -> Iterator[Callable[..., Service]]:
    """Starts services: `start_service(model, MT_MAX_CHARACTERS="10")`."""
    started: list[Service] = []

    def start(model: Path, **settings: str) -> Service:
        started.append(Service.start(model, settings))
        return started[-1]

    yield start
    for service in started:
        service.process.kill()
        service.process.wait()


@pytest.fixture(scope="session")
def service(start_service: Callable[..., Service], several_directions: Path) -> Service:
    """One that translates en-de, en-fr and fr-de."""
    return start_service(several_directions)


@pytest.fixture(scope="session")
def client(service: Service) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=service.url, trust_env=False, timeout=60) as client:
        yield client


@dataclass
class Controlled:
    """A scorer that takes one step for each permit, and can be told to die."""

    inner: Any
    permits: Semaphore = field(default_factory=lambda: Semaphore(0))
    entered: Semaphore = field(default_factory=lambda: Semaphore(0))
    dying: bool = False
    poison: tuple[int, ...] = ()  # a source that it fails on

    def start(self, sources: Sequence[tuple[int, ...]], rows: int) -> Any:
        if self.poison in sources:
            raise ValueError("poison")
        return self.inner.start(sources, rows)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def step(self, state: Any, tokens: Tensor) -> Tensor:
        self.entered.release()
        self.permits.acquire()
        if self.dying:
            raise SystemExit("a worker that dies")
        return self.inner.step(state, tokens)

    def open(self) -> None:
        """Go on without permits."""
        self.permits.release(1_000_000)


class InThread:
    """The application on a free port, in a thread of this process, around a controlled scorer."""

    def __init__(self, model: Path, settings: dict[str, Any]) -> None:
        self.settings = Settings(model=model, port=0, **settings)
        self.scorer: Controlled
        self.worker: Worker
        self.loop: asyncio.AbstractEventLoop
        self.url = ""
        self.problems: list[str] = []  # what the worker's end was reported with
        self._started = Event()
        self._thread = Thread(target=lambda: asyncio.run(self._serve()))
        self._thread.start()
        self._started.wait()

    def _load(self) -> Translator:
        loaded = load_model(self.settings.model, torch.device("cpu"))
        self.scorer = Controlled(ModelScorer(loaded.model, device=torch.device("cpu")))
        engine = Engine(SearchDecoder(self.scorer))
        return Translator(loaded.model, loaded.tokenizer, loaded.description, engine=engine)

    async def _serve(self) -> None:
        limits = QueueLimits(self.settings.max_pending_requests, self.settings.max_pending_characters)
        self.loop = asyncio.get_running_loop()
        with bound("127.0.0.1", 0) as listener:
            async with Worker(ThreadTransport(self._load), limits, self.problems.append) as self.worker:
                config = uvicorn.Config(create_app(self.settings, self.worker), log_config=None)
                self._server = uvicorn.Server(config)
                self.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
                listener.listen(128)
                self._started.set()
                await self._server.serve(sockets=[listener])

    def counts(self) -> "Future[Counts]":
        """The worker has been asked when this returns, and answers before its next step."""
        answer = asyncio.run_coroutine_threadsafe(self.worker.counts(), self.loop)
        asyncio.run_coroutine_threadsafe(asyncio.sleep(0), self.loop).result()
        return answer

    def stop(self) -> None:
        self.scorer.open()
        self._server.should_exit = True
        self._thread.join()


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
