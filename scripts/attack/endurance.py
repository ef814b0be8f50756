"""Memory over ten minutes, and twice the work that can be done: `python -m scripts.attack.endurance`.

MT_SOAK_SECONDS is the time in which memory is watched. The figures are printed; a broken promise ends the program.
"""

import asyncio
import json
import os
import re
import statistics
import time
from collections import Counter
from pathlib import Path

import httpx

from scripts.attack.target import ServiceProcess, percentile, sentence
from tests.service.running import NUMBERS, Sent, ask, connected, keep_asking, started

SOAK = float(os.environ.get("MT_SOAK_SECONDS", "600"))
ALLOWED = 1_000_000  # bytes in that time
WARM = 0.25  # of that time, beforehand: until then, caches and allocators have what they need
WARM_REQUESTS = 45_000  # fill the tokenizer's cache of 32,768 words, which takes 9 MB; each request has a new word
OVERLOAD = 60  # seconds; as many come before anything is measured: the queue is full, and the allocators at rest
CAPACITY = 20  # seconds in which the capacity is measured, after as many in which the batches fill
ANSWERED = 0.9  # of the requests that can be answered, when twice as many come


def fresh() -> str:
    """Return a text that nobody has sent before: the same one would be answered from the cache."""
    return sentence(next(NUMBERS))


async def ask_alone(url: str, q: str, sent: list[Sent]) -> None:
    """POST /translate on a connection of its own, with so little work that thousands can be on their way."""
    begun = time.monotonic()
    body = json.dumps({"q": q, "source": "en", "target": "de"}).encode()
    head = "POST /translate HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
    head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    host, port = url.removeprefix("http://").split(":")
    try:
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(head.encode() + body)
        answer, _, content = (await reader.read()).partition(b"\r\n\r\n")
        writer.close()
        status, retry = int(answer.split()[1]), re.search(rb"(?i)retry-after: (\d+)", answer)
        found = json.loads(content)
    except (OSError, ValueError, IndexError) as error:
        status, retry, found = 0, None, {"error": repr(error)}
    after = retry[1].decode() if retry else ""
    sent.append(Sent(begun, time.monotonic(), status, found, after))


def of(sent: list[Sent], status: int) -> list[Sent]:
    return [each for each in sent if each.status == status]


def statuses(sent: list[Sent]) -> Counter[int]:
    return Counter(each.status for each in sent)


def workers(service: ServiceProcess) -> list[int]:
    """Return the process ids of the workers."""
    path = Path(f"/proc/{service.process.pid}/task/{service.process.pid}/children")
    return [
        int(id)
        for id in path.read_text().split()
        if b"service.workers.worker_process" in Path(f"/proc/{id}/cmdline").read_bytes()
    ]


def memory(pid: int) -> int:
    """Return the bytes that a process holds of its own: not the files that it maps."""
    status = Path(f"/proc/{pid}/status").read_text()
    return 1024 * sum(int(size) for size in re.findall(r"^(?:RssAnon|VmSwap):\s+(\d+) kB", status, re.MULTILINE))


def growth(samples: list[float]) -> float:
    """Return by how much samples taken at equal times grew: Theil and Sen's slope, which outliers do not bend."""
    step = max(1, len(samples) // 100)
    points = list(enumerate(samples))[::step]
    slopes = [(b - a) / (y - x) for place, (x, a) in enumerate(points) for y, b in points[place + 1 :]]
    return statistics.median(slopes) * (len(samples) - 1)


async def sampled(service: ServiceProcess, seconds: float, every: float = 1.0) -> dict[str, list[float]]:
    pids = {"web": service.process.pid, "worker": workers(service)[0]}
    found: dict[str, list[float]] = {name: [] for name in pids}
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for name, pid in pids.items():
            found[name].append(memory(pid))
        await asyncio.sleep(every)
    return found


def watch_memory() -> None:
    """Both processes together grow by less than a megabyte, under a load of every kind of request."""

    async def all_kinds(client: httpx.AsyncClient, sent: list[Sent], done: asyncio.Event) -> None:
        async def leaving() -> None:
            while not done.is_set():
                try:
                    await client.post("/translate", json={"q": fresh(), "source": "en", "target": "de"}, timeout=0.005)
                except httpx.HTTPError:
                    await asyncio.sleep(0.1)

        async def others() -> None:
            while not done.is_set():
                html = f"<p>{fresh()} <b>{fresh()}</b></p>"
                sent.append(await ask(client, html, format="html", glossary={"dog": "Hund"}, source="auto"))
                await client.post("/translate", json={"q": fresh(), "source": "en", "target": "de", "stream": True})
                await client.post("/v2/translate", json={"text": [fresh()], "target_lang": "DE"})
                await client.post("/translate", json={"q": 1})
                await client.get("/metrics")
                files = {"file": ("a.txt", fresh().encode())}
                await client.post("/translate_file", data={"source": "en", "target": "de"}, files=files)
                await asyncio.sleep(0.05)

        await asyncio.gather(leaving(), others(), keep_asking(client, sent, 4, done.is_set))

    async def test(service: ServiceProcess) -> None:
        sent: list[Sent] = []
        done = asyncio.Event()
        async with connected(service.url) as client:
            load = asyncio.create_task(all_kinds(client, sent, done))
            await asyncio.sleep(WARM * SOAK)
            while len(sent) < WARM_REQUESTS:
                await asyncio.sleep(1)
            samples = await sampled(service, SOAK)
            done.set()
            await load
        grown = {name: growth(values) for name, values in samples.items()}
        print(f"{statuses(sent)}; grown by { ({name: f'{size / 1e6:.2f} MB' for name, size in grown.items()}) }")
        assert set(statuses(sent)) == {200}
        assert sum(grown.values()) < ALLOWED

    with started(MT_CACHE_CHARACTERS="100000", MT_MAX_STORED_FILE_BYTES="20000") as service:
        asyncio.run(test(service))


def overload() -> None:
    """Send twice what can be done: nine of ten of the requests are answered that are answered when it is just full."""

    async def test(service: ServiceProcess) -> None:
        async with connected(service.url) as client:
            sent: list[Sent] = []
            end = time.monotonic() + 2 * CAPACITY
            await keep_asking(client, sent, 40, lambda: time.monotonic() > end)
            capacity = sum(0 < end - each.ended <= CAPACITY for each in of(sent, 200)) / CAPACITY
            asked: list[asyncio.Task[None]] = []
            sent, begun, watching = [], time.monotonic(), None
            while (now := time.monotonic() - begun) < 2 * OVERLOAD:
                if watching is None and now >= OVERLOAD:
                    watching = asyncio.create_task(sampled(service, OVERLOAD))
                late = int(2 * capacity * now) - len(asked)  # of those that should have been sent by now
                asked += [asyncio.create_task(ask_alone(service.url, fresh(), sent)) for _ in range(late)]
                await asyncio.sleep(0.005)
            in_time = sum(OVERLOAD <= each.ended - begun < 2 * OVERLOAD for each in of(sent, 200))
            await asyncio.gather(*asked)
            assert watching is not None
            grown = {name: growth(values) for name, values in (await watching).items()}
        rate, goodput = len(asked) / (2 * OVERLOAD), in_time / OVERLOAD / capacity
        refused = percentile([each.seconds for each in of(sent, 503)], 99)
        slowest = percentile([each.seconds for each in of(sent, 200)], 99)
        print(
            f"capacity {capacity:.0f}/s, {rate:.0f}/s sent, {goodput:.0%} done, {statuses(sent)}; "
            f"p99 of answers {slowest:.2f} s, of refusals {1000 * refused:.0f} ms; grown by {grown}"
        )
        assert set(statuses(sent)) == {200, 503}, {each.body["error"] for each in of(sent, 0)}
        assert all(int(each.retry_after) >= 1 for each in of(sent, 503))
        assert goodput >= ANSWERED
        assert sum(grown.values()) < 2 * ALLOWED  # some thousand requests are few: see WARM_REQUESTS

    with started(rigged={"step_seconds": 0.02}, MT_MAX_PENDING_REQUESTS="40", MT_CACHE_CHARACTERS="0") as service:
        asyncio.run(test(service))


if __name__ == "__main__":
    watch_memory()
    overload()
