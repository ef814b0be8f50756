"""Logs to stderr: ids, counts, times and lines of code, never a text that somebody sent."""

import logging
import sys
from contextvars import ContextVar
from dataclasses import dataclass, field
from enum import StrEnum

import structlog
from structlog.typing import Processor


class Phase(StrEnum):
    """What the time of a translation goes to."""

    QUEUE = "queue"  # from acceptance until a worker has the first text
    TRANSLATE = "translate"


@dataclass
class Record:
    """What the log line of a request says beside its route and status, and what metrics learn of it."""

    caller: str = ""
    characters: int = 0
    phases: dict[Phase, float] = field(default_factory=dict)  # seconds; the longest, where there are several parts

    def took(self, phase: Phase, seconds: float) -> None:
        """A part of the request."""
        self.phases[phase] = max(seconds, self.phases.get(phase, 0.0))

    def said(self) -> dict[str, str | int]:
        """What there is, by the names of the log; times in milliseconds."""
        found: dict[str, str | int] = {"caller": self.caller} if self.caller else {}
        if self.characters:
            found["characters"] = self.characters
        return found | {f"{phase}_milliseconds": round(1000 * seconds) for phase, seconds in self.phases.items()}


_current: ContextVar[Record] = ContextVar("record")
"""Of the request that a task works for: asyncio hands it on to the tasks that the request starts."""


def begin_record() -> Record:
    """For a new request."""
    record = Record()
    _current.set(record)
    return record


def current_record() -> Record:
    """Of the request at hand; one that nobody reads where there is none."""
    return _current.get(None) or Record()


def configure_logs(as_json: bool) -> None:
    """JSON lines, or columns for a person. What other packages log comes along."""
    shared: list[Processor] = [
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    renderer: Processor = (
        structlog.processors.JSONRenderer() if as_json else structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
    )
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
    )
    handler = logging.StreamHandler()
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer],
        )
    )
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
