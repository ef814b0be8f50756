"""Messages between the service and a parser process.

The service pickles its requests. A parser answers in JSON, and nothing that it sends is unpickled: a library in the
process may have been taken over by the document that it reads. Long lists are sent in parts; parsing a part takes a
millisecond or two, and the service does other work between the parts. Files are sent as they are, without a copy.

The types of messages are not in process.py: pickle finds a type by its module, and a process runs process.py as
`__main__`.
"""

import asyncio
import io
import json
import pickle
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, fields, is_dataclass
from enum import StrEnum
from functools import partial
from typing import Any

from service.freed_memory import LongList

PART = 500  # items in a part
PART_CHARACTERS = 50_000  # characters after which a part ends
LONG_PART = 65_536  # bytes; a thread parses a longer part, which has one long item


class Status(StrEnum):
    """Outcome of an operation."""

    DONE = "done"
    REFUSED = "refused"  # the input is wrong: a DocumentError
    LIMIT = "limit"  # a limit is exceeded, for example with a DocumentLimitExceeded
    MEMORY = "memory"
    KILLED = "killed"  # by SIGKILL, and not by the service
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
class ParserLimits:
    """Number of processes, and limits of one operation: wall and processor time in seconds, sizes in bytes.

    `processes` read or write large files at a time, as many others small files, and as many others marked-up texts.
    `memory_bytes` does not count the memory of a process at its start.
    """

    processes: int = 2
    wall_seconds: float = 60.0
    cpu_seconds: int = 20
    memory_bytes: int = 1 << 30
    result_bytes: int = 100_000_000
    grace_seconds: float = 1.0  # of a cancelled operation: most end, and a process costs more than they do


def dump(arguments: tuple[Any, ...]) -> Iterator[bytes]:
    """Pickle the arguments of a request and yield the parts: files as they are, and a list at the end in pieces."""
    files = [place for place, argument in enumerate(arguments) if isinstance(argument, bytes | bytearray)]
    items = arguments[-1] if isinstance(arguments[-1], list) else []
    plain = [len(argument) if place in files else argument for place, argument in enumerate(arguments)]
    yield pickle.dumps((files, [*plain[:-1], []] if items else plain), pickle.HIGHEST_PROTOCOL)
    yield from (arguments[place] for place in files)
    for begin in range(0, len(items), PART):
        yield pickle.dumps(items[begin : begin + PART], pickle.HIGHEST_PROTOCOL)


def load(data: bytes) -> list[Any]:
    """Unpickle the arguments of a request. Only a parser process calls this function."""
    file = io.BytesIO(data)
    files, arguments = pickle.load(file)
    for place in files:
        arguments[place] = file.read(arguments[place])
    while file.tell() < len(data):
        arguments[-1].extend(pickle.load(file))
    return list(arguments)


def dump_outcome(outcome: Outcome) -> Iterator[bytes]:
    """Yield the messages of an answer in JSON, which end with an empty one if the content is a list.

    The first one has no content if that follows: bytes as they are, or lists of the items.
    """
    content = outcome.content
    kind = "bytes" if isinstance(content, bytes) else "list" if isinstance(content, list) else "value"
    yield _json([outcome.status, outcome.last, kind, content if kind == "value" else None])
    if kind == "bytes":
        yield content
    elif kind == "list":
        part, size = [], 0
        for item in content:
            part.append(_json(item))
            size += len(part[-1])
            if len(part) == PART or size > PART_CHARACTERS:
                yield b"[" + b",".join(part) + b"]"
                part, size = [], 0
        yield b"[" + b",".join(part) + b"]"
        yield b""


async def load_outcome(read: Callable[[], Awaitable[bytearray]], decode: Callable[[Any], Any]) -> Outcome:
    """Return the answer whose messages `read` returns. The event loop works while the next message is read.

    `decode` returns an item of the list, given its JSON. It raises TypeError or ValueError if an item is not valid.

    Raises: ValueError, TypeError, RecursionError for an answer that `dump_outcome` has not written.
    """
    status, last, kind, content = json.loads(await read())
    if kind == "bytes":
        content = await read()
    elif kind == "list":
        content = LongList()
        while part := await read():
            items = partial(_items, part, decode)
            content += await asyncio.to_thread(items) if len(part) > LONG_PART else items()
    return Outcome(Status(status), content, bool(last))


def _items(part: bytearray, decode: Callable[[Any], Any]) -> list[Any]:
    return [decode(item) for item in json.loads(part)]


def _json(value: Any) -> bytes:
    text = json.dumps(value, ensure_ascii=False, default=_plain, separators=(",", ":"))
    return text.encode("utf-8", "surrogatepass")  # as json.loads decodes it; escapes would take four times as long


def _plain(value: Any) -> Any:
    """Return the values of the fields of a dataclass, for JSON."""
    if is_dataclass(value):
        return [getattr(value, field.name) for field in fields(value)]
    raise TypeError(f"{type(value).__name__} is no plain data")
