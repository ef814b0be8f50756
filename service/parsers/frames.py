"""Messages between the service and a parser process. A message is a value and a list of items.

A message is pickled in parts, first the value and then PART items at a time. Unpickling a part takes some milliseconds,
so the reader can do other work between the parts of a long list.

The types of messages are not in process.py: pickle finds a type by its module, and a process runs process.py as
`__main__`.
"""

import io
import pickle
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

HEAD = struct.Struct("<Q")  # length of a message in bytes
PART = 500  # items in a part


class Status(StrEnum):
    """Outcome of an operation."""

    DONE = "done"
    REFUSED = "refused"  # the input is wrong: a DocumentError
    LIMIT = "limit"  # a limit is exceeded, for example with a DocumentLimitExceeded
    MEMORY = "memory"
    NESTING = "nesting"
    FAILED = "failed"  # a library or our code failed on the input


@dataclass(frozen=True)
class Outcome:
    """Outcome of an operation.

    Depending on `status`, `content` is the result, a message for the client, or the line of code that failed. `last` is
    True if the process ends after this operation.
    """

    status: Status
    content: Any = None
    last: bool = False


@dataclass(frozen=True)
class ProcessLimits:
    """Limits of a process: memory in bytes beyond the memory at its start, and processor seconds per operation."""

    memory_bytes: int
    cpu_seconds: int


@dataclass
class Message:
    """A value and a list of items. `listed` is True if the message has a list, even an empty one."""

    value: Any = None
    items: list[Any] = field(default_factory=list)
    listed: bool = False


def dump(message: Message) -> Iterator[bytes]:
    """Pickle a message and yield its parts."""
    yield pickle.dumps((message.value, message.listed), pickle.HIGHEST_PROTOCOL)
    for begin in range(0, len(message.items), PART):
        yield pickle.dumps(message.items[begin : begin + PART], pickle.HIGHEST_PROTOCOL)


def fill(message: Message, data: bytes | bytearray) -> Iterator[None]:
    """Unpickle `data` into `message`. Yield after each part, so that the caller can do other work."""
    file = io.BytesIO(data)
    message.value, message.listed = pickle.load(file)
    while file.tell() < len(data):
        message.items += pickle.load(file)
        yield
