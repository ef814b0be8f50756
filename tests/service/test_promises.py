"""What the service promises, seen from outside: the whole program, many clients, and a ledger of every request.

How it stops: test_stopping.py. Which models it refuses: test_model_files.py. What can be seen from inside alone:
test_fleet.py, test_worker.py and test_translation.py.
"""

import asyncio
import json
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
from tests.service.running import FROZEN, Ledger, answered, fresh, keep_asking, percentile, run, started, until
from tests.weights import load_weights, save_weights

pytestmark = [pytest.mark.system, pytest.mark.slow]  # these bound the clock: for a quiet machine


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
