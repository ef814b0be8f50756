"""A client that sends the next request as soon as one is answered, on as many connections as it is told.

Plain sockets and as little work as can be, for it runs on the machine that is measured: a client library takes about
as long for a request as the service.
"""

import asyncio
import json
import time
from dataclasses import dataclass
from typing import Any

from mt.errors import MTError


@dataclass(frozen=True)
class Load:
    """Texts, how many of them go in a request, and how many requests are on their way at a time."""

    texts: tuple[str, ...]
    texts_a_request: int
    connections: int

    @property
    def requests(self) -> list[tuple[str, ...]]:
        size = self.texts_a_request
        return [self.texts[begin : begin + size] for begin in range(0, len(self.texts), size)]


@dataclass(frozen=True)
class Answers:
    """`latencies` are seconds, one a request; `translations` are in the order of the texts."""

    seconds: float
    latencies: tuple[float, ...]
    translations: tuple[str, ...]

    @property
    def rate(self) -> float:
        """Texts a second."""
        return len(self.translations) / self.seconds


def run(port: int, load: Load, source: str, target: str) -> Answers:
    """The clock runs from the first request to the last answer. Raises MTError for an answer that is no translation."""
    return asyncio.run(_run(port, load, source, target))


async def _run(port: int, load: Load, source: str, target: str) -> Answers:
    requests = load.requests
    left = iter(range(len(requests)))
    latencies = [0.0] * len(requests)
    found: list[list[str]] = [[] for _ in requests]

    async def work(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for place in left:
            texts = requests[place]
            q = texts[0] if load.texts_a_request == 1 else texts
            begun = time.perf_counter()
            writer.write(request_of({"q": q, "source": source, "target": target}))
            answer = await answer_of(reader)
            latencies[place] = time.perf_counter() - begun
            translated = answer.get("translatedText")
            if translated is None:
                raise MTError(f"port {port}: no translation but {answer}; accepted: a service that is not too busy")
            found[place] = [translated] if isinstance(translated, str) else translated

    connections = [
        await asyncio.open_connection("127.0.0.1", port) for _ in range(min(load.connections, len(requests)))
    ]
    begun = time.perf_counter()
    try:
        await asyncio.gather(*(work(*connection) for connection in connections))
    finally:
        for _, writer in connections:
            writer.close()
    seconds = time.perf_counter() - begun
    return Answers(seconds, tuple(latencies), tuple(text for texts in found for text in texts))


def request_of(body: dict[str, object]) -> bytes:
    """POST /translate with a body of JSON."""
    content = json.dumps(body).encode()
    head = "POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: "
    return f"{head}{len(content)}\r\n\r\n".encode() + content


async def answer_of(reader: asyncio.StreamReader) -> dict[str, Any]:
    """The JSON of the next answer."""
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    length = int(head.partition(b"content-length:")[2].partition(b"\r\n")[0])
    found: dict[str, Any] = json.loads(await reader.readexactly(length))
    return found
