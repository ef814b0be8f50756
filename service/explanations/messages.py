"""Messages between the service and the process of an explanation."""

from dataclasses import dataclass
from enum import StrEnum


@dataclass(frozen=True)
class ExplanationTask:
    """A sentence to explain, and the limits of the process."""

    model: str  # model directory
    text: str
    source: str
    target: str
    parent: int  # process id of the service
    memory_bytes: int  # limit of the growth of the process after its start
    cpu_seconds: int


class ExplanationStatus(StrEnum):
    """Outcome of an explanation."""

    DONE = "done"
    REFUSED = "refused"  # the sentence cannot be explained: a RequestError
    MEMORY = "memory"
    FAILED = "failed"  # the model cannot be read, or our code failed


@dataclass(frozen=True)
class ExplanationOutcome:
    """Outcome of a task. Depending on `status`, `content` is the page, a message for the client, or a line of code."""

    status: ExplanationStatus
    content: str = ""
