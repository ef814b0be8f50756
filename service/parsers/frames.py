"""Messages between the service and a parser process: a value and a list of items, pickled in parts.

The types of messages are here, because the main module of a process has another name there than in the service.
Unpickling a part takes some milliseconds, so that a reader can do other work between the parts of a long list.
"""

import io
import pickle
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

HEAD = struct.Struct("<Q")  # length of a message in bytes
PART = 500  # items


class Status(StrEnum):
    """Kind of an outcome."""

    DONE = "done"
    REFUSED = "refused"  # the input is wrong: a DocumentError
    LIMIT = "limit"  # the input has more than is accepted: a DocumentLimitExceeded
    MEMORY = "memory"
    NESTING = "nesting"
    FAILED = "failed"  # a library or our code failed on the input


@dataclass(frozen=True)
class Outcome:
    """Outcome of an operation: a result, a message for the client, or a line of code; `last` if the process ends."""

    status: Status
    content: Any = None
    last: bool = False


@dataclass(frozen=True)
class ProcessLimits:
    """Memory in bytes beyond what the process takes at its start, and processor time in seconds per operation."""

    memory_bytes: int
    cpu_seconds: int


@dataclass
class Message:
    """A value with a list of items; `listed` tells an empty list from none."""

    value: Any = None
    items: list[Any] = field(default_factory=list)
    listed: bool = False


def dump(message: Message) -> Iterator[bytes]:
    """Yield the parts of a message."""
    yield pickle.dumps((message.value, message.listed), pickle.HIGHEST_PROTOCOL)
    for begin in range(0, len(message.items), PART):
        yield pickle.dumps(message.items[begin : begin + PART], pickle.HIGHEST_PROTOCOL)


def fill(message: Message, data: bytes | bytearray) -> Iterator[None]:
    """Read a message from its bytes; yield after each part."""
    file = io.BytesIO(data)
    message.value, message.listed = pickle.load(file)
    while file.tell() < len(data):
        message.items += pickle.load(file)
        yield
