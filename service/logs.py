"""Logs on stderr. They contain ids, counts, times and lines of code, never text that a client sent.

docs/reference/log-events.md describes the events.
"""

import json
import logging
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from enum import StrEnum
from queue import SimpleQueue
from threading import Event, Lock, Thread

import structlog
from structlog.typing import Processor

QUEUED_LINES = 5_000  # about 2 MB
FLUSH_SECONDS = 1.0  # longest wait at the end for a reader of stderr


class Phase(StrEnum):
    """Phases of a translation. The service measures the time that each phase takes."""

    QUEUE = "queue"  # the time from the acceptance of a request until a worker has its first text
    TRANSLATE = "translate"


@dataclass
class RequestRecord:
    """Properties of a request, in addition to route and status, for its log line and for metrics."""

    caller: str = ""  # a network address until the caller is admitted
    characters: int = 0
    # seconds; of a request with several parts, those of the slowest
    phases: dict[Phase, float] = field(default_factory=dict)
    models: set[str] = field(default_factory=set)  # names
    code: str = ""  # of the error, which is logged in place of its message, because that may quote the client

    def add_phase(self, phase: Phase, seconds: float) -> None:
        """Record the seconds that a part of the request spent in a phase. Only the slowest part is kept."""
        self.phases[phase] = max(seconds, self.phases.get(phase, 0.0))

    def log_fields(self) -> dict[str, str | int | list[str]]:
        """Return the recorded properties as fields of a log line, with times in milliseconds."""
        named = {"caller": self.caller, "code": self.code}
        fields: dict[str, str | int | list[str]] = {name: value for name, value in named.items() if value}
        if self.characters:
            fields["characters"] = self.characters
        if self.models:
            fields["models"] = sorted(self.models)
        return fields | {f"{phase}_milliseconds": round(1000 * seconds) for phase, seconds in self.phases.items()}


_current: ContextVar[RequestRecord] = ContextVar("record")
"""Record of the request on which a task works. A task inherits the record of the task that started it."""


def start_record(address: str) -> RequestRecord:
    """Create the record of a new request from `address`, make it the current record, and return it."""
    record = RequestRecord(address)
    _current.set(record)
    return record


def current_record() -> RequestRecord:
    """Return the record of the current request, or a new one outside of requests."""
    return _current.get(None) or RequestRecord()


class ErrorOutput:
    """Logger of structlog and stream of logging: passes each line to `write`."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self.write = write

    def msg(self, line: str) -> None:
        self.write(line + "\n")

    debug = info = warning = error = critical = fatal = exception = log = msg


class LogQueue:
    """Lines for stderr, which a thread writes: the service goes on if stderr is a pipe that nobody reads.

    Lines beyond QUEUED_LINES are dropped; an event before the next line tells their number. As logging does, the thread
    ignores a closed pipe and a full disk.
    """

    def __init__(self) -> None:
        # At its exit, Python takes the lock of sys.stderr, which a thread that hangs in `print` would hold.
        self._stderr = sys.__stderr__.fileno() if sys.__stderr__ else None  # None: stderr was closed at the start
        self._lines: SimpleQueue[tuple[int, str, Event | None]] = SimpleQueue()  # lines dropped before; line; written
        self._dropped = 0
        self._lock = Lock()
        Thread(target=self._run, name="logs", daemon=True).start()

    def put(self, line: str) -> None:
        """Add a line to the queue, or drop it if the queue is full."""
        with self._lock:
            if self._lines.qsize() >= QUEUED_LINES:
                self._dropped += 1
            else:
                self._lines.put((self._dropped, line, None))
                self._dropped = 0

    def flush(self) -> None:
        """Wait for at most FLUSH_SECONDS until all lines are written."""
        written = Event()
        self._lines.put((0, "", written))
        written.wait(FLUSH_SECONDS)

    def _run(self) -> None:
        log = structlog.wrap_logger(ErrorOutput(self._write))
        while True:
            dropped, line, written = self._lines.get()
            if dropped:
                log.warning("log lines dropped", lines=dropped)
            self._write(line)
            if written:
                written.set()

    def _write(self, text: str) -> None:
        rest = text.encode(errors="backslashreplace")
        with suppress(OSError):
            while rest and self._stderr is not None:
                rest = rest[os.write(self._stderr, rest) :]


@contextmanager
def open_logs(as_json: bool) -> Iterator[None]:
    """Write the logs of all packages as JSON lines, or as text in columns. Write the last lines when the context ends.

    An error that leaves the context is printed after them.
    """
    queue = LogQueue()
    shared: list[Processor] = [structlog.stdlib.add_log_level, structlog.processors.TimeStamper(fmt="iso", utc=True)]
    encode = json.JSONEncoder(default=repr).encode  # structlog's JSONRenderer creates an encoder for each line
    in_columns = structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
    renderer: Processor = (lambda _logger, _method, event: encode(event)) if as_json else in_columns
    structlog.configure(  # not through the handlers of logging, which take twice the time
        processors=[*shared, renderer],
        logger_factory=lambda *_: ErrorOutput(queue.put),
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(ErrorOutput(queue.put))
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer],
        )
    )
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    # The middleware has logged why an answer is not complete.
    logging.getLogger("uvicorn.error").addFilter(lambda record: "without completing response" not in record.msg)
    try:
        yield
    finally:
        queue.flush()
