"""Memory over ten minutes, and twice the work that can be done: `python -m scripts.attack.endurance`.

MT_SOAK_SECONDS is the time in which memory is watched. The figures are printed; a broken promise ends the program.
"""

import asyncio
import os
import time

import httpx

from tests.service.conftest import Service
from tests.service.running import (
    Ledger,
    ask,
    ask_alone,
    connected,
    fresh,
    growth,
    keep_asking,
    memory,
    percentile,
    started,
    workers,
)

SOAK = float(os.environ.get("MT_SOAK_SECONDS", "600"))
ALLOWED = 1_000_000  # bytes in that time
WARM = 0.25  # of that time, beforehand: until then, caches and allocators have what they need
WARM_REQUESTS = 20_000  # the engine's allocators come to rest over as many; its memory converges, and is no leak
OVERLOAD = 60  # seconds; as many come before memory is watched, until when the allocators have what they need
ANSWERED = 0.9  # of the requests that can be answered, when twice as many come


async def sampled(service: Service, seconds: float, every: float = 1.0) -> dict[str, list[float]]:
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

    async def all_kinds(client: httpx.AsyncClient, ledger: Ledger, done: asyncio.Event) -> None:
        async def leaving() -> None:
            while not done.is_set():
                try:
                    await client.post("/translate", json={"q": fresh(), "source": "en", "target": "de"}, timeout=0.005)
                except httpx.HTTPError:
                    await asyncio.sleep(0.1)

        async def others() -> None:
            while not done.is_set():
                html = f"<p>{fresh()} <b>{fresh()}</b></p>"
                await ask(client, html, ledger, format="html", glossary={"dog": "Hund"}, source="auto")
                await client.post("/translate", json={"q": fresh(), "source": "en", "target": "de", "stream": True})
                await client.post("/v2/translate", json={"text": [fresh()], "target_lang": "DE"})
                await client.post("/translate", json={"q": 1})
                await client.get("/metrics")
                sent = {"file": ("a.txt", fresh().encode())}
                await client.post("/translate_file", data={"source": "en", "target": "de"}, files=sent)
                await asyncio.sleep(0.05)

        await asyncio.gather(leaving(), others(), keep_asking(client, ledger, 4, done.is_set))

    async def test(service: Service) -> None:
        ledger, done = Ledger(), asyncio.Event()
        async with connected(service.url) as client:
            load = asyncio.create_task(all_kinds(client, ledger, done))
            await asyncio.sleep(WARM * SOAK)
            while len(ledger.entries) < WARM_REQUESTS:
                await asyncio.sleep(1)
            samples = await sampled(service, SOAK)
            done.set()
            await load
        grown = {name: growth(values) for name, values in samples.items()}
        print(f"{ledger.counted()}; grown by { ({name: f'{size / 1e6:.2f} MB' for name, size in grown.items()}) }")
        assert list(ledger.counted()) == [200]
        assert sum(grown.values()) < ALLOWED

    with started(MT_CACHE_CHARACTERS="100000", MT_MAX_STORED_FILE_BYTES="20000") as service:
        asyncio.run(test(service))


def overload() -> None:
    """Send twice what can be done: nine of ten of the requests are answered that are answered when it is just full."""

    async def test(service: Service) -> None:
        async with connected(service.url) as client:
            ledger, end = Ledger(), time.monotonic() + 15
            await keep_asking(client, ledger, 40, until=lambda: time.monotonic() > end)
            capacity = len(ledger.of(200)) / 15
            asked: list[asyncio.Task[None]] = []
            ledger, begun, watching = Ledger(), time.monotonic(), None
            while (now := time.monotonic() - begun) < 2 * OVERLOAD:
                if watching is None and now >= OVERLOAD:
                    watching = asyncio.create_task(sampled(service, OVERLOAD))
                late = int(2 * capacity * now) - len(asked)  # of those that should have been sent by now
                asked += [asyncio.create_task(ask_alone(service.url, fresh(), ledger)) for _ in range(late)]
                await asyncio.sleep(0.005)
            in_time = [each for each in ledger.of(200) if each.ended - begun < 2 * OVERLOAD]
            await asyncio.gather(*asked)
            assert watching is not None
            grown = {name: growth(values) for name, values in (await watching).items()}
        sent, goodput = len(asked) / (2 * OVERLOAD), len(in_time) / (2 * OVERLOAD) / capacity
        refused = percentile([each.seconds for each in ledger.of(503)], 99)
        slowest = percentile([each.seconds for each in ledger.of(200)], 99)
        print(
            f"capacity {capacity:.0f}/s, {sent:.0f}/s sent, {goodput:.0%} done, {ledger.counted()}; "
            f"p99 of answers {slowest:.2f} s, of refusals {1000 * refused:.0f} ms; grown by {grown}"
        )
        assert set(ledger.counted()) == {200, 503}, {each.body["error"] for each in ledger.of(0)}
        assert all(int(each.retry_after) >= 1 for each in ledger.of(503))
        assert goodput >= ANSWERED
        assert sum(grown.values()) < 2 * ALLOWED  # some thousand requests are few: see WARM_REQUESTS

    with started(rigged={"step_seconds": 0.02}, MT_MAX_PENDING_REQUESTS="40", MT_CACHE_CHARACTERS="0") as service:
        asyncio.run(test(service))


if __name__ == "__main__":
    watch_memory()
    overload()
