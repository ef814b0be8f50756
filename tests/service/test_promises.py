"""What the service promises, seen from outside: the whole program, many clients, and a ledger of every request.

What can be seen from inside alone is in test_fleet.py, test_worker.py and test_translation.py.
"""

import asyncio
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import httpx
import pytest

from mt import Translator
from mt.checkpoint import load_weights, save_weights
from tests.conftest import sentences, write_model
from tests.service.conftest import ROOT, Service, environment
from tests.service.running import (
    FROZEN,
    Ledger,
    ask,
    connected,
    figures,
    fresh,
    keep_asking,
    percentile,
    started,
    until,
    workers,
)

pytestmark = pytest.mark.system

MANY = {"MT_MAX_PENDING_REQUESTS": "5000"}
Test = Callable[[httpx.AsyncClient], Coroutine[Any, Any, None]]


def run(url: str, test: Test) -> None:
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


QUEUED = 8


def test_no_answer_is_held_back() -> None:
    """By Nagle's algorithm, which would let each wait for 40 ms until the client's kernel says that it has the head."""

    async def test(client: httpx.AsyncClient) -> None:
        took = []
        for _ in range(60):
            begun = time.monotonic()
            await client.get("/livez")
            took.append(time.monotonic() - begun)
        assert percentile(took, 50) < 0.035

    with started() as service:
        run(service.url, test)


def test_one_too_many_is_told_so_at_once() -> None:
    """One runs, eight are queued, ten more come: just these are refused, each within 50 ms, and the others succeed."""

    async def test(client: httpx.AsyncClient) -> None:
        accepted = [asyncio.create_task(ask(client, fresh())) for _ in range(1 + QUEUED)]

        async def full() -> bool:
            return await pending(client) == 1 + QUEUED

        await until(full)
        refused = []
        for _ in range(10):
            refused.append(await ask(client, fresh()))
            for probe in ("/livez", "/readyz", "/health", "/metrics"):
                assert (await client.get(probe)).status_code == 200
        assert [each.status for each in refused] == [503] * 10
        assert {each.body["code"] for each in refused} == {"overloaded"}
        assert all(int(each.retry_after) >= 1 for each in refused)
        assert not any(task.done() for task in accepted)
        took = [each.seconds for each in refused]
        print(f"refused within {1000 * max(took):.0f} ms (median {1000 * percentile(took, 50):.0f})")
        assert [each.status for each in await asyncio.gather(*accepted)] == [200] * (1 + QUEUED)
        assert (await ask(client, fresh())).status == 200
        assert max(took) <= 0.05

    with started(rigged={"step_seconds": 0.4}, MT_MAX_PENDING_REQUESTS=str(1 + QUEUED)) as service:
        run(service.url, test)


def test_a_deadline_is_kept_and_ends_the_work() -> None:
    """200 ms on an engine that takes 5 s: 504 after 200 ms, give or take 50, and its steps stop."""

    async def test(client: httpx.AsyncClient) -> None:
        await ask(client, fresh(), timeout_ms=300)
        for _ in range(3):
            late = await ask(client, fresh(), timeout_ms=200)
            print(f"{late.status} after {1000 * late.seconds:.0f} ms")
            assert (late.status, late.body["code"]) == (504, "deadline_exceeded")
            assert 0.15 <= late.seconds <= 0.25
        await asyncio.sleep(2.5)  # two steps, and the pulse that tells of them
        before = (await figures(client))["mt_decoder_steps_total"]
        await asyncio.sleep(2.5)
        after = await figures(client)
        assert after["mt_decoder_steps_total"] == before
        assert (after["mt_pending_requests"], after["mt_running_texts"], after["mt_requests_expired_total"]) == (
            0,
            0,
            4,
        )

    with started(rigged={"step_seconds": 0.5}) as service:
        run(service.url, test)


def test_a_thousand_who_leave_are_forgotten(in_thread: Callable[..., Any]) -> None:
    """While they wait, while they are decoded and in the middle of a stream: no task is left of them."""
    application = in_thread(max_pending_requests=5000)

    def tasks() -> int:
        async def counted() -> int:
            return len(asyncio.all_tasks())

        return asyncio.run_coroutine_threadsafe(counted(), application.loop).result()

    async def leave(number: int) -> None:
        host, port = application.url.removeprefix("http://").split(":")
        body = json.dumps({"q": [fresh()] * (1 + number % 3), "source": "en", "target": "de", "stream": not number % 4})
        head = f"POST /translate HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
        _, writer = await asyncio.open_connection(host, int(port))
        writer.write(f"{head}\r\n\r\n{body}".encode())
        await writer.drain()
        await asyncio.sleep(random.random() / 10)
        if number % 2:
            writer.transport.abort()
        writer.close()

    async def all_leave(count: int) -> None:
        for begun in range(0, count, 50):
            await asyncio.gather(*(leave(number) for number in range(begun, begun + 50)))
            application.control.permits.release(2)

    async def forgotten() -> None:
        await until(lambda: application.pending == 0)
        application.control.permits.release(20)
        await until(lambda: application.counts().result().running == 0)

    asyncio.run(all_leave(50))
    asyncio.run(forgotten())
    before = tasks()
    asyncio.run(all_leave(1000))
    asyncio.run(forgotten())
    time.sleep(0.5)
    assert tasks() <= before + 2
    application.control.open()
    asked = {"q": fresh(), "source": "en", "target": "de"}
    assert httpx.post(f"{application.url}/translate", json=asked, trust_env=False, timeout=60).status_code == 200


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

    It had if they were sent well before it was told to stop; or if it says that it answered them.
    """
    logged = {line["request_id"]: line["status"] for line in service.logs if line["event"] == "request"}
    found = []
    for each in ledger.entries:
        early = each.begun < told - MARGIN
        refused = each.status == 503 and each.body["code"] == "unavailable" and not early
        unheard = each.status == 0 and not early and each.id not in logged
        if each.status != 200 and not refused and not unheard:
            found.append(
                f"{each.status} {each.body} begun {told - each.begun:.3f} s before; log: {logged.get(each.id)}"
            )
    return found


def terminated(times: int, at_least: int, seed: int) -> None:
    """So many SIGTERMs at random moments, and more until so many requests have been accepted: none of them is lost."""
    chance = random.Random(seed)
    accepted = signals = 0
    while signals < times or accepted < at_least:
        with started(rigged={"step_seconds": 0.02}, **MANY) as service:
            ledger, told = asyncio.run(stopped_at_some_time(service, chance.uniform(0.1, 2.0), clients=100))
            status = service.process.wait(timeout=60)
            service.reader.join()
        signals += 1
        accepted += len(ledger.of(200))
        assert status == 0
        assert lost(ledger, service, told) == []
        assert "not answered in time" not in [line["event"] for line in service.logs]
        print(f"SIGTERM {signals}: {ledger.counted()}, accepted in all {accepted}, lost 0", flush=True)


def test_sigterm_loses_nothing() -> None:
    terminated(times=5, at_least=0, seed=int(os.environ.get("MT_SEED", "1")))


@pytest.mark.slow
def test_a_hundred_sigterms_lose_none_of_ten_thousand() -> None:
    terminated(times=100, at_least=10_000, seed=time.time_ns())


def test_sigterm_with_fifty_running_and_fifty_queued() -> None:
    """Not ready within 100 ms; new work is refused; what was accepted is answered; the status is 0."""

    async def test(client: httpx.AsyncClient) -> None:
        accepted = [asyncio.create_task(ask(client, fresh())) for _ in range(100)]

        async def all_in() -> bool:
            return await pending(client) == 100

        await until(all_in)
        told = time.monotonic()
        service.process.send_signal(signal.SIGTERM)
        while (answer := await client.get("/readyz")).status_code == 200:
            assert time.monotonic() < told + 0.1
        print(f"not ready after {1000 * (time.monotonic() - told):.0f} ms")
        assert answer.status_code == 503 and (await client.get("/livez")).status_code == 200
        new = await ask(client, fresh())
        assert (new.status, new.body["code"]) == (503, "unavailable") and int(new.retry_after) >= 1
        assert Counter(each.status for each in await asyncio.gather(*accepted)) == {200: 100}

    with started(rigged={"step_seconds": 0.1}, **MANY) as service:
        run(service.url, test)
        assert service.process.wait(timeout=30) == 0


def test_a_second_sigterm_ends_it_at_once() -> None:
    async def test(client: httpx.AsyncClient) -> None:
        waiting = asyncio.create_task(ask(client, fresh()))
        await until(lambda: pending(client))
        service.process.send_signal(signal.SIGTERM)
        assert (await client.get("/readyz")).status_code == 503
        (worker,) = workers(service)
        told = time.monotonic()
        service.process.send_signal(signal.SIGTERM)
        assert await asyncio.to_thread(service.process.wait, 5) == -signal.SIGTERM
        assert time.monotonic() - told < 1
        assert (await waiting).status == 0
        await until(lambda: not Path(f"/proc/{worker}").exists() or not Path(f"/proc/{worker}/cmdline").read_bytes())

    with started(rigged={"step_seconds": 5}) as service:
        run(service.url, test)


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


def test_models_exchanged_under_load(tmp_path: Path) -> None:
    """By SIGHUP, six times: no request fails, each answer is by one version, and the last ones by the last."""
    model = tmp_path / "model"
    shutil.copytree(FROZEN, model)
    weights = load_weights(FROZEN / "model.safetensors")
    texts = sentences(6)

    def written(change: float) -> list[str]:
        other = {name: tensor * change if "decoder" in name else tensor for name, tensor in weights.items()}
        save_weights(tmp_path / "other", other)
        (tmp_path / "other").replace(model / "model.safetensors")
        return [each.text for each in Translator.load(model, "cpu").translate(texts)]

    def counted(event: str) -> int:
        return sum(line["event"] == event for line in service.logs)

    async def test(client: httpx.AsyncClient) -> None:
        ledger, stop = Ledger(), asyncio.Event()
        asking = asyncio.create_task(keep_asking(client, ledger, 16, stop.is_set, text=lambda: texts))
        versions = [original]
        for number in range(6):
            versions.append(await asyncio.to_thread(written, 0.5 if number % 2 == 0 else 1.0))
            service.process.send_signal(signal.SIGHUP)
            await until(lambda number=number: counted("reloaded") == number + 1)
        await answered(ledger, 64)
        (model / "model.safetensors").write_bytes(b"\x80\x04\x95canary")
        service.process.send_signal(signal.SIGHUP)
        await until(lambda: counted("reload refused"))
        await answered(ledger, 64)
        stop.set()
        await asking
        print(f"6 reloads, 1 refused: {ledger.counted()}")
        assert list(ledger.counted()) == [200]
        assert all(each.text in versions for each in ledger.entries)
        assert versions[0] != versions[1] and ledger.entries[-1].text == versions[-1]

    original = written(1.0)
    with started(model, MT_CACHE_CHARACTERS="0") as service:
        run(service.url, test)


def test_killed_workers_lose_nothing() -> None:
    """kill -9 of the model's process, five times under load: every request is answered, and it comes back by itself."""

    async def test(client: httpx.AsyncClient) -> None:
        ledger, stop = Ledger(), asyncio.Event()
        asking = asyncio.create_task(keep_asking(client, ledger, 32, stop.is_set))
        seen: set[int] = set()
        for _ in range(5):
            await until(lambda: len(workers(service)) == 1 and not seen & set(workers(service)))
            await answered(ledger, 40)
            (worker,) = workers(service)
            seen.add(worker)
            os.kill(worker, signal.SIGKILL)

            async def noticed() -> bool:
                return (await client.get("/readyz")).status_code == 503

            await until(noticed)
            assert (await client.get("/livez")).status_code == 200
        await answered(ledger, 100)
        stop.set()
        await asking
        print(f"5 kills: {ledger.counted()}, slowest {max(each.seconds for each in ledger.entries):.1f} s")
        assert list(ledger.counted()) == [200]
        assert (await figures(client))["mt_worker_restarts_total"] == 5

    with started(rigged={"step_seconds": 0.01}, **MANY) as service:
        run(service.url, test)


BROKEN: dict[str, Callable[[Path], Any]] = {
    "cut short": lambda model: os.truncate(model / "model.safetensors", 1000),
    "a pickle": lambda model: (model / "model.safetensors").write_bytes(
        b"cos\nsystem\n(S'touch " + os.fsencode(model.parent / "canary") + b"'\ntR."
    ),
    "a header of 2^60 bytes": lambda model: (model / "model.safetensors").write_bytes(
        (2**60).to_bytes(8, "little") + b"{}"
    ),
    "a header that is no JSON": lambda model: (model / "model.safetensors").write_bytes(
        (100).to_bytes(8, "little") + b"\xff" * 200
    ),
    "no numbers": lambda model: save_weights(
        model / "model.safetensors",
        {name: each * float("nan") for name, each in load_weights(FROZEN / "model.safetensors").items()},
    ),
    "other keys": lambda model: save_weights(
        model / "model.safetensors",
        {f"x.{name}": each for name, each in load_weights(FROZEN / "model.safetensors").items()},
    ),
    "rubbish for a tokenizer": lambda model: (model / "tokenizer.model").write_bytes(os.urandom(5000)),
    "a tokenizer of another model": lambda model: shutil.copy(
        write_model(model.parent / "small", ["en-de"]) / "tokenizer.model", model
    ),
    "a link that leads nowhere": lambda model: (
        (model / "model.safetensors").unlink(),
        (model / "model.safetensors").symlink_to(model.parent / "nowhere"),
    ),
    "a link to a device": lambda model: (
        (model / "model.safetensors").unlink(),
        (model / "model.safetensors").symlink_to("/dev/zero"),
    ),
    "a folder for a config": lambda model: ((model / "config.json").unlink(), (model / "config.json").mkdir()),
    "a config that is no object": lambda model: (model / "config.json").write_text("[" * 100_000),
    "a path in the config": lambda model: (model / "config.json").write_text(
        (model / "config.json").read_text().replace('"name": "', '"name": "../../../etc/')
    ),
}
HARMLESS = {"a path in the config"}  # a name is a name: nothing is opened by it


@pytest.mark.parametrize("together", [list(BROKEN)[:5], list(BROKEN)[5:9], list(BROKEN)[9:]], ids=["1", "2", "3"])
def test_models_that_cannot_be_served(tmp_path: Path, together: list[str]) -> None:
    """Each is named with what is wrong with it, the status is not 0, nothing is run and nobody reads a traceback."""
    wrong = [how for how in together if how not in HARMLESS]
    for how in together:
        shutil.copytree(FROZEN, tmp_path / how / "model")
        BROKEN[how](tmp_path / how / "model")
    paths = ",".join(str(tmp_path / how / "model") for how in wrong)
    command = [sys.executable, "-m", "service", "--model", paths, "--port", "0", "--device", "cpu"]
    done = subprocess.run(command, cwd=ROOT, env=environment({}), capture_output=True, text=True, timeout=300)
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr and done.stdout == ""
    for how in wrong:
        assert str(tmp_path / how / "model") in done.stderr, how
    print(done.stderr)
    assert not list(tmp_path.rglob("canary"))


LONG = 10_000  # sentences of one client


def test_one_clients_ten_thousand_sentences_are_not_anothers_wait() -> None:
    """The other one's p99 is at most twice what it is when it is alone, and the ten thousand are translated, too."""

    async def measure(client: httpx.AsyncClient, seconds: float) -> list[float]:
        found, end = [], time.monotonic() + seconds
        while time.monotonic() < end:
            each = await ask(client, fresh())
            assert each.status == 200, each.body
            found.append(each.seconds)
        return found

    async def test(client: httpx.AsyncClient) -> None:
        headers = {"X-Forwarded-For": "10.0.0.7"}  # another address is another caller
        async with httpx.AsyncClient(base_url=client.base_url, trust_env=False, timeout=300, headers=headers) as greedy:
            await measure(client, 1)
            alone = await measure(client, 4)
            texts = [[fresh() for _ in range(LONG // 10)] for _ in range(10)]
            long = [asyncio.create_task(ask(greedy, each)) for each in texts]
            await until(lambda: pending(client))
            beside: list[float] = []
            while not all(task.done() for task in long) and len(beside) < 5000:
                beside += await measure(client, 1)
            ratio = percentile(beside, 99) / percentile(alone, 99)
            print(
                f"p99 alone {1000 * percentile(alone, 99):.0f} ms ({len(alone)}), "
                f"beside {1000 * percentile(beside, 99):.0f} ms ({len(beside)}), {ratio:.2f} times"
            )
            assert [each.status for each in await asyncio.gather(*long)] == [200] * 10
            assert ratio <= 2

    limits = {"MT_MAX_TEXTS": str(LONG), "MT_MAX_PENDING_TEXTS": "20000", "MT_TRUSTED_PROXIES": "127.0.0.1"}
    with started(rigged={"step_seconds": 0.02}, **limits) as service:
        run(service.url, test)
