"""The real program under load: started, asked by many clients at once, with a ledger of what became of each request."""

import asyncio
import json
import math
import re
import statistics
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx

from tests.service.conftest import Service

FROZEN = Path(__file__).resolve().parents[1] / "frozen" / "model"
MANY: dict[str, Any] = {"MT_MAX_PENDING_REQUESTS": "5000"}


@contextmanager
def started(model: Path = FROZEN, rigged: dict[str, Any] | None = None, **settings: str) -> Iterator[Service]:
    """`python -m service`, with an engine that is rigged like this, if it is; killed at the end if it still runs."""
    more = {} if rigged is None else {"RIGGED": json.dumps(rigged)}
    program = "service" if rigged is None else "tests.service.rigged_service"
    service = Service.start(model, {**settings, **more}, program)
    try:
        yield service
    finally:
        service.process.kill()
        service.process.wait()
        service.reader.join()


@dataclass(frozen=True)
class Sent:
    """A request and what became of it: status 0 where no answer came. Times are by time.monotonic(); `sent` is when the
    last of it had left, infinite where it never did."""

    id: str
    q: Any
    begun: float
    sent: float
    ended: float
    status: int
    body: dict[str, Any]
    retry_after: str = ""

    @property
    def seconds(self) -> float:
        return self.ended - self.begun

    @property
    def text(self) -> Any:
        return self.body["translatedText"]


@dataclass
class Ledger:
    """All that was sent and has ended."""

    entries: list[Sent] = field(default_factory=list)

    def of(self, *statuses: int) -> list[Sent]:
        return [each for each in self.entries if each.status in statuses]

    def counted(self) -> dict[int, int]:
        found = [each.status for each in self.entries]
        return {status: found.count(status) for status in sorted(set(found))}


@asynccontextmanager
async def connected(url: str) -> AsyncIterator[httpx.AsyncClient]:
    """As many connections as it takes."""
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=None)
    async with httpx.AsyncClient(base_url=url, trust_env=False, timeout=120, limits=limits) as client:
        yield client


async def ask(client: httpx.AsyncClient, q: Any, ledger: Ledger | None = None, **more: Any) -> Sent:
    """POST /translate from English to German. Never raises."""
    id, begun, sent = uuid4().hex, time.monotonic(), math.inf
    body = {"q": q, "source": "en", "target": "de", **more}

    async def trace(event: str, _: Any) -> None:
        nonlocal sent
        if event == "http11.send_request_body.complete":
            sent = time.monotonic()

    try:
        answer = await client.post("/translate", json=body, headers={"X-Request-ID": id}, extensions={"trace": trace})
        retry = answer.headers.get("retry-after", "")
        found = Sent(id, q, begun, sent, time.monotonic(), answer.status_code, answer.json(), retry)
    except httpx.HTTPError as error:
        found = Sent(id, q, begun, sent, time.monotonic(), 0, {"error": repr(error)})
    if ledger is not None:
        ledger.entries.append(found)
    return found


async def ask_alone(url: str, q: str, ledger: Ledger) -> None:
    """The same on a connection of its own, and with so little work that thousands can be on their way."""
    id, begun, sent = uuid4().hex, time.monotonic(), math.inf
    body = json.dumps({"q": q, "source": "en", "target": "de"}).encode()
    head = f"POST /translate HTTP/1.1\r\nHost: localhost\r\nX-Request-ID: {id}\r\nConnection: close\r\n"
    head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    host, port = url.removeprefix("http://").split(":")
    try:
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(head.encode() + body)
        sent = time.monotonic()
        answer, _, content = (await reader.read()).partition(b"\r\n\r\n")
        writer.close()
        status, retry = int(answer.split()[1]), re.search(rb"(?i)retry-after: (\d+)", answer)
        found = json.loads(content)
    except (OSError, ValueError, IndexError) as error:
        status, retry, found = 0, None, {"error": repr(error)}
    after = retry[1].decode() if retry else ""
    ledger.entries.append(Sent(id, q, begun, sent, time.monotonic(), status, found, after))


NUMBERS = count()


def fresh() -> str:
    """A text that nobody has sent before: the same one would be answered from the cache, or by the work of another."""
    nouns, verbs = ("dog", "cat", "man", "woman", "hotel", "train"), ("sees", "finds", "likes", "follows")
    number = next(NUMBERS)
    first, verb, second = nouns[number % 6], verbs[number // 6 % 4], nouns[number // 24 % 6]
    return f"The {first} {verb} the {second} {number}."


async def keep_asking(
    client: httpx.AsyncClient, ledger: Ledger, clients: int, until: Callable[[], bool], text: Callable[[], Any] = fresh
) -> None:
    """So many clients, each of which sends its next request when the last is answered with 200, and ends otherwise."""

    async def one() -> None:
        while not until():
            if (await ask(client, text(), ledger)).status != 200:
                return

    await asyncio.gather(*(one() for _ in range(clients)))


async def figures(client: httpx.AsyncClient) -> dict[str, float]:
    """What GET /metrics says, of the figures without labels."""
    text = (await client.get("/metrics")).text
    return {name: float(value) for name, value in re.findall(r"^(mt_\w+) ([\d.e+]+)$", text, re.MULTILINE)}


async def until(condition: Callable[[], Any], seconds: float = 60) -> None:
    """Waits for a condition, which may be a coroutine's; fails if it does not come about."""
    for _ in range(int(seconds / 0.01)):
        found = condition()
        if await found if asyncio.iscoroutine(found) else found:
            return
        await asyncio.sleep(0.01)
    raise AssertionError("what the test waits for does not happen")


def percentile(values: list[float], percent: float) -> float:
    """The smallest that `percent` of all do not exceed."""
    return sorted(values)[max(0, -int(-len(values) * percent // 100) - 1)]


def workers(service: Service) -> list[int]:
    """The process ids of the workers."""
    path = Path(f"/proc/{service.process.pid}/task/{service.process.pid}/children")
    return [
        int(id)
        for id in path.read_text().split()
        if b"service.workers.worker_process" in Path(f"/proc/{id}/cmdline").read_bytes()
    ]


def memory(pid: int) -> int:
    """Bytes that a process holds of its own: not the files that it maps."""
    status = Path(f"/proc/{pid}/status").read_text()
    return 1024 * sum(int(size) for size in re.findall(r"^(?:RssAnon|VmSwap):\s+(\d+) kB", status, re.MULTILINE))


def growth(samples: list[float]) -> float:
    """By how much samples taken at equal times grew from the first to the last: Theil and Sen's slope, which a few
    that stick out do not bend."""
    step = max(1, len(samples) // 100)
    points = list(enumerate(samples))[::step]
    slopes = [(b - a) / (y - x) for place, (x, a) in enumerate(points) for y, b in points[place + 1 :]]
    return statistics.median(slopes) * (len(samples) - 1)


def run(url: str, test: Callable[[httpx.AsyncClient], Coroutine[Any, Any, None]]) -> None:
    """With a client of the service at `url`."""

    async def tested() -> None:
        async with connected(url) as client:
            await test(client)

    asyncio.run(tested())


async def pending(client: httpx.AsyncClient) -> float:
    return (await figures(client))["mt_pending_requests"]


async def answered(ledger: Ledger, more: int) -> None:
    """Waits until so many more have been."""
    enough = len(ledger.entries) + more
    await until(lambda: len(ledger.entries) >= enough)
