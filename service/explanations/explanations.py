"""Explanations of translations as HTML pages. A new process writes each page; only one process runs at a time."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path

from mt.languages import Direction
from service.errors import (
    CannotTranslate,
    DeadlineExceeded,
    InternalError,
    InvalidRequest,
    NotFound,
    Overloaded,
    TooManyRequests,
    Unavailable,
)
from service.explanations.messages import ExplanationOutcome, ExplanationStatus, ExplanationTask

RETRY_SECONDS = 5  # a page takes some seconds
MODULE = "service.explanations.process"


def can_explain() -> bool:
    """Return whether torch, which computes the pages, is installed."""
    return find_spec("torch") is not None


@dataclass(frozen=True)
class ExplanationLimits:
    """Limits of one explanation, with sizes in bytes, and of the queue of requests for explanations."""

    wall_seconds: float = 60.0  # includes the start of the process
    cpu_seconds: int = 30
    model_bytes: int = 512 << 20  # size of model.safetensors
    memory_bytes: int = 1 << 30  # in addition to four times the size of the weights, for copies in float32
    waiting: int = 4  # requests in the queue


class Explanations:
    """Writes explanations in separate processes, one at a time. A caller has at most one request in progress."""

    def __init__(self, limits: ExplanationLimits | None = None) -> None:
        self._limits = limits or ExplanationLimits()
        self._turn = asyncio.Semaphore(1)
        self._callers: set[str] = set()  # callers with a request in progress or waiting
        self._resting: set[str] = set()  # callers that have just cancelled a page: they must wait before the next
        self._process: asyncio.subprocess.Process | None = None
        self._closed = False

    async def page(self, caller: str, model: Path, text: str, direction: Direction) -> str:
        """Return an HTML page that explains the translation of one sentence. Cancelling the call kills the process.

        Raises:
            NotFound: if torch, which computes the page, is not installed.
            InvalidRequest: if the model is too large, or the sentence has too many tokens.
            TooManyRequests: if the caller has another page in progress, or has just cancelled one.
            Overloaded: if too many requests are waiting.
            DeadlineExceeded: if the page takes more time than the limits allow.
            CannotTranslate: if the page takes more memory than the limits allow.
            Unavailable: if the service is shutting down, the model cannot be read, or the process cannot be started.
            InternalError: if the process fails for another reason.
        """
        if not can_explain():
            raise NotFound("Explanations need torch, which is not installed on this server")
        weights = self._weights_of(model)
        limits = self._limits
        with self._admitted(caller):
            async with self._turn:
                task = ExplanationTask(
                    model=str(model),
                    text=text,
                    source=direction.source,
                    target=direction.target,
                    parent=os.getpid(),
                    memory_bytes=limits.memory_bytes + 4 * weights,
                    cpu_seconds=limits.cpu_seconds,
                )
                try:
                    async with asyncio.timeout(limits.wall_seconds):
                        return _content(await self._run(task))
                except TimeoutError:
                    raise DeadlineExceeded from None

    def close(self) -> None:
        """Kill the process that is running. The request in progress and the waiting requests fail."""
        self._closed = True
        self._kill()

    @contextmanager
    def _admitted(self, caller: str) -> Iterator[None]:
        """Count a request of a caller while the context is open.

        Raises: TooManyRequests if the caller has another request, or has just cancelled one; Overloaded if too many
            requests are waiting.
        """
        if caller in self._callers or caller in self._resting:
            raise TooManyRequests("1 page at a time", RETRY_SECONDS)
        if len(self._callers) > self._limits.waiting:
            raise Overloaded(RETRY_SECONDS)
        self._callers.add(caller)
        try:
            yield
        except asyncio.CancelledError:  # the client has left
            self._resting.add(caller)
            asyncio.get_running_loop().call_later(RETRY_SECONDS, self._resting.discard, caller)
            raise
        finally:
            self._callers.remove(caller)

    def _weights_of(self, model: Path) -> int:
        """Return the size of a model's weights in bytes.

        Raises: InvalidRequest if the size exceeds the limit, Unavailable if the file cannot be read.
        """
        try:
            size = (model / "model.safetensors").stat().st_size
        except OSError as error:
            raise Unavailable("The files of the model cannot be read") from error
        if size > self._limits.model_bytes:
            raise InvalidRequest.listing(
                [
                    f"the model of this direction has {size >> 20} MiB; accepted: at most "
                    f"{self._limits.model_bytes >> 20} MiB. `mt-service explain` has no limit"
                ]
            )
        return size

    async def _run(self, task: ExplanationTask) -> ExplanationOutcome:
        """Run a task in a new process and return the outcome.

        The environment variables of the settings are not passed on, because they may be secrets.
        """
        if self._closed:
            raise Unavailable("The service is shutting down")
        environment = {name: value for name, value in os.environ.items() if not name.startswith("MT_")}
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
        pipe = asyncio.subprocess.PIPE
        try:
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", MODULE, env=environment, stdin=pipe, stdout=pipe
            )
        except OSError as error:
            raise Unavailable("The process for the page could not be started") from error
        self._process = process
        try:
            output, _ = await process.communicate(json.dumps(asdict(task)).encode())
        finally:
            self._kill()
            self._process = None
            await process.wait()
        if process.returncode == -signal.SIGXCPU:
            raise DeadlineExceeded
        if process.returncode:
            if self._closed:
                raise Unavailable("The service is shutting down")
            if process.returncode == -signal.SIGKILL:  # Linux sends it if memory or time is used up
                return ExplanationOutcome(ExplanationStatus.MEMORY)
            return ExplanationOutcome(ExplanationStatus.FAILED, f"the process ended with status {process.returncode}")
        outcome = json.loads(output)
        return ExplanationOutcome(ExplanationStatus(outcome["status"]), outcome["content"])

    def _kill(self) -> None:
        if self._process is not None and self._process.returncode is None:
            with suppress(ProcessLookupError):
                self._process.kill()


def _content(outcome: ExplanationOutcome) -> str:
    """Return the page of a successful outcome. Raise a ServiceError for any other outcome."""
    match outcome.status:
        case ExplanationStatus.REFUSED:
            raise InvalidRequest.listing([f"q: {outcome.content}"])
        case ExplanationStatus.MEMORY:
            raise CannotTranslate("The page of this sentence takes more memory than the service allows")
        case ExplanationStatus.FAILED:
            raise InternalError(outcome.content)
    return outcome.content
