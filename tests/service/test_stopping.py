"""SIGTERM, seen from outside: what was accepted is answered, and new work is refused."""

import asyncio
import os
import random
import signal
import time
from collections.abc import Iterator

import httpx
import pytest

from tests.service.conftest import Service
from tests.service.running import MANY, Ledger, ask, connected, fresh, keep_asking, pending, run, started, until

pytestmark = [pytest.mark.system, pytest.mark.slow]  # these bound the clock: for a quiet machine

MARGIN = 0.3  # seconds before the signal, in which a request may be on its way


async def stopped_at_some_time(service: Service, seconds: float, clients: int) -> tuple[Ledger, float]:
    """All that was asked until the service ended; and when it was told to end, which is `seconds` after the start."""
    ledger = Ledger()
    async with connected(service.url) as client:
        asking = asyncio.create_task(keep_asking(client, ledger, clients, until=lambda: False))
        await asyncio.sleep(seconds)
        told = time.monotonic()
        service.process.send_signal(signal.SIGTERM)
        await asking
    return ledger, told


def lost(ledger: Ledger, service: Service, told: float) -> list[str]:
    """Requests that the service had accepted and that got no translation.

    It had if they had left us well before it was told to stop; or if it says that it answered them.
    """
    logged = {line["request_id"]: line["status"] for line in service.logs if line["event"] == "request"}
    found = []
    for each in ledger.entries:
        early = each.sent < told - MARGIN
        refused = each.status == 503 and each.body["code"] == "unavailable" and not early
        unheard = each.status == 0 and not early and each.id not in logged
        if each.status != 200 and not refused and not unheard:
            found.append(
                f"{each.status} {each.body} begun {told - each.begun:.3f} s before; log: {logged.get(each.id)}"
            )
    return found


def terminated(times: int, at_least: int, longest: float, seed: int) -> Iterator[tuple[int, list[str]]]:
    """Send SIGTERM at random moments, `times` times and until `at_least` requests have been accepted.

    Yields for each signal the exit status and the requests that were lost or not answered in time.
    """
    chance = random.Random(seed)
    accepted = signals = 0
    while signals < times or accepted < at_least:
        with started(rigged={"step_seconds": 0.02}, **MANY) as service:
            ledger, told = asyncio.run(stopped_at_some_time(service, chance.uniform(0.1, longest), clients=100))
            status = service.process.wait(timeout=60)
            service.reader.join()
        signals += 1
        accepted += len(ledger.of(200))
        late = [str(line) for line in service.logs if line["event"] == "not answered in time"]
        problems = lost(ledger, service, told) + late
        print(f"SIGTERM {signals}: {ledger.counted()}, accepted in all {accepted}, lost {len(problems)}", flush=True)
        yield status, problems


def test_sigterm_loses_nothing() -> None:
    for end in terminated(times=5, at_least=0, longest=2, seed=int(os.environ.get("MT_SEED", "1"))):
        assert end == (0, [])


def test_a_hundred_sigterms_lose_none_of_ten_thousand() -> None:
    for end in terminated(times=100, at_least=10_000, longest=6, seed=time.time_ns()):
        assert end == (0, [])


def test_grace_has_an_end() -> None:
    """What is not done by then is told so, and nobody is left waiting."""

    async def test(client: httpx.AsyncClient) -> None:
        waiting = asyncio.create_task(ask(client, fresh()))
        await until(lambda: pending(client))
        service.process.send_signal(signal.SIGTERM)
        found = await waiting
        assert (found.status, found.body["code"]) == (503, "unavailable")
        assert 0.9 < found.seconds < 6

    with started(rigged={"step_seconds": 5}, MT_GRACE_SECONDS="1") as service:
        run(service.url, test)
        assert service.process.wait(timeout=30) == 0
