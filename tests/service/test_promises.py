"""What the service promises, seen from outside: the whole program, many clients, and a ledger of every request.

How it stops: test_stopping.py. Which models it refuses: test_model_files.py. What shows only after a while:
test_endurance.py. What can be seen from inside alone: test_fleet.py, test_worker.py and test_translation.py.
"""

import asyncio
import json
import os
import random
import shutil
import signal
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

from mt import Translator
from tests.conftest import sentences
from tests.service.running import (
    FROZEN,
    MANY,
    Ledger,
    answered,
    ask,
    figures,
    fresh,
    keep_asking,
    pending,
    percentile,
    run,
    started,
    until,
    workers,
)
from tests.weights import load_weights, save_weights

pytestmark = [pytest.mark.system, pytest.mark.slow]  # these bound the clock: for a quiet machine

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
        head = "POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json"
        head += f"\r\nContent-Length: {len(body)}"
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
        return [each.text for each in Translator.load(model, "cpu").translate_many(texts)]

    def counted(event: str) -> int:
        return sum(line["event"] == event for line in service.logs)

    def has_reloaded(times: int) -> bool:
        return counted("reloaded") == times

    async def test(client: httpx.AsyncClient) -> None:
        ledger, stop = Ledger(), asyncio.Event()
        asking = asyncio.create_task(keep_asking(client, ledger, 16, stop.is_set, text=lambda: texts))
        versions = [original]
        for number in range(6):
            versions.append(await asyncio.to_thread(written, 0.5 if number % 2 == 0 else 1.0))
            service.process.send_signal(signal.SIGHUP)
            await until(partial(has_reloaded, number + 1))
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


LONG = 10_000  # sentences of one client
USUAL = 64  # clients with a text each


def test_one_clients_ten_thousand_sentences_are_not_anothers_wait() -> None:
    """The other one's p99 is at most twice what it is when the service is busy with requests of a text each, which fill
    the engine's batches as well; and the ten thousand go on, too.
    """

    async def measure(client: httpx.AsyncClient, count: int) -> list[float]:
        ledger = Ledger()
        await keep_asking(client, ledger, 4, until=lambda: len(ledger.entries) > count)
        assert list(ledger.counted()) == [200]
        return [each.seconds for each in ledger.entries]

    async def test(client: httpx.AsyncClient) -> None:
        headers = {"X-Forwarded-For": "10.0.0.7"}  # another address is another caller
        async with httpx.AsyncClient(base_url=client.base_url, trust_env=False, timeout=300, headers=headers) as greedy:
            stop = asyncio.Event()
            usual = asyncio.create_task(keep_asking(greedy, Ledger(), USUAL, stop.is_set))
            await measure(client, 10)
            without = await measure(client, 60)
            stop.set()
            await usual
            texts = [[fresh() for _ in range(LONG // 10)] for _ in range(10)]
            long = [asyncio.create_task(ask(greedy, each)) for each in texts]
            await until(lambda: pending(client))
            begun = (await figures(client))["mt_texts_finished_total"]
            beside = await measure(client, 60)
            assert not all(task.done() for task in long)
            translated = (await figures(client))["mt_texts_finished_total"] - begun - len(beside)
            ratio = percentile(beside, 99) / percentile(without, 99)
            print(
                f"p99 without {1000 * percentile(without, 99):.0f} ms ({len(without)}), "
                f"beside {1000 * percentile(beside, 99):.0f} ms ({len(beside)}), {ratio:.2f} times; "
                f"meanwhile {translated:.0f} of the ten thousand"
            )
            for task in long:
                task.cancel()
            assert translated > len(beside) and ratio <= 2

    limits: dict[str, Any] = {
        "MT_MAX_TEXTS": str(LONG),
        "MT_MAX_PENDING_TEXTS": "20000",
        "MT_TRUSTED_PROXIES": "127.0.0.1",
    }
    with started(rigged={"step_seconds": 0.02}, **limits) as service:
        run(service.url, test)
