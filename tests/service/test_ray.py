"""The service on Ray: three replicas on one machine keep its contract, and the death of any is nobody's business.

The contract is that of test_contract.py and its kin: their tests are collected here once more, for another client.
"""

import asyncio
import json
import os
import shutil
import signal
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator
from contextlib import ExitStack
from importlib.util import find_spec
from itertools import cycle
from pathlib import Path
from typing import Any

import httpx
import pytest

from mt import Translator
from tests.conftest import sentences
from tests.service.ray_cluster import Cluster, RayService, cluster, served, started
from tests.service.routes.deepl.test_started import (  # noqa: F401
    real,
    test_real_documents,
    test_real_glossaries,
    test_real_keys,
    test_real_texts,
)
from tests.service.running import FROZEN, Ledger, answered, ask, figures, keep_asking, pending, run, until
from tests.service.test_clients_libretranslate import *  # noqa: F403
from tests.service.test_contract import *  # noqa: F403
from tests.service.workers.test_fleet import other_weights

pytestmark = [
    pytest.mark.system,
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("ray") is None, reason="ray is not installed: pip install 'mt-service[ray]'"),
]

Start = Callable[..., RayService]
ADMIN = "the key of an administrator"


@pytest.fixture(scope="module")
def machine() -> Iterator[Cluster]:
    with cluster() as found:
        yield found


@pytest.fixture(scope="module")
def start_service(machine: Cluster) -> Iterator[Start]:
    """Starts a service with three replicas, in the place of the last one."""
    with ExitStack() as stack:

        def start(model: Path, least: int = 3, **settings: str) -> RayService:
            stack.close()
            return stack.enter_context(served(machine, model, least, **settings))

        yield start


@pytest.fixture(scope="module")
def client(start_service: Start, several_directions: Path) -> Iterator[httpx.Client]:
    service = start_service(several_directions)
    assert len(service.replicas("models")) == 3 and len(service.replicas("front")) == 1
    with httpx.Client(base_url=service.url, trust_env=False, timeout=60) as client:
        yield client


@pytest.fixture(scope="module")
def frozen(start_service: Start) -> RayService:
    """With room for many at a time, and no cache: what is asked is translated."""
    return start_service(FROZEN, MT_MAX_PENDING_REQUESTS="5000", MT_CACHE_CHARACTERS="0", MT_GRACE_SECONDS="120")


def expected_texts(texts: list[str], model: Path = FROZEN) -> dict[str, str]:
    found = Translator.load(model, "cpu", threads=1).translate(texts)
    return {text: each.text for text, each in zip(texts, found, strict=True)}


def asked_under_load(
    url: str,
    meanwhile: Callable[[httpx.AsyncClient, Ledger], Coroutine[Any, Any, None]],
    clients: int = 24,
    length: int = 1,
) -> Ledger:
    """All that so many clients asked in the meantime, texts of so many sentences, and until all of it was answered."""
    ledger = Ledger()
    alone = sentences(2000, seed=time.time_ns())
    texts = cycle([" ".join(alone[begin : begin + length]) for begin in range(0, len(alone), length)])

    async def test(client: httpx.AsyncClient) -> None:
        ended = False
        asking = asyncio.create_task(keep_asking(client, ledger, clients, lambda: ended, lambda: next(texts)))
        await meanwhile(client, ledger)
        ended = True
        await asking

    run(url, test)
    slowest = max(each.seconds for each in ledger.entries)
    print(f"{ledger.counted()}; the slowest took {slowest:.1f} s", flush=True)
    return ledger


def killed_under_load(service: RayService, deployment: str) -> list[str]:
    """Kill each of its replicas, one after the other; return the requests that were lost and replicas that survived."""
    victims = service.replicas(deployment)

    async def kill(_: httpx.AsyncClient, ledger: Ledger) -> None:
        for victim in victims:
            await answered(ledger, 60)
            os.kill(victim, signal.SIGKILL)
            print(f"killed one of {deployment} after {ledger.counted()}", flush=True)
        await answered(ledger, 60)

    ledger = asked_under_load(service.url, kill)
    right = expected_texts(sorted({each.q for each in ledger.entries}))
    lost = [f"{each.status} {each.body}" for each in ledger.entries if each.status != 200 or each.text != right[each.q]]
    return lost + [f"{victim} runs" for victim in victims if victim in service.replicas(deployment)]


def test_replicas_killed_under_load_lose_nothing(frozen: RayService) -> None:
    assert killed_under_load(frozen, "models") == []


def test_the_front_killed_under_load_loses_nothing(frozen: RayService) -> None:
    assert killed_under_load(frozen, "front") == []


def test_metrics_are_of_all_replicas(frozen: RayService) -> None:
    async def test(client: httpx.AsyncClient) -> None:
        await asyncio.gather(*(ask(client, text) for text in sentences(30)))
        found = await figures(client)
        assert found["mt_decoder_steps_total"] > 0 and found["mt_pending_requests"] == 0

    run(frozen.url, test)


def test_sigterm_loses_nothing(frozen: RayService) -> None:
    """What was accepted is answered, what is new is refused, and the status is 0. The last test with this service."""
    texts = [" ".join(sentences(100, seed=number)) for number in range(100)]

    async def test(client: httpx.AsyncClient) -> None:
        accepted = [asyncio.create_task(ask(client, text, beam_size=8)) for text in texts]

        async def all_in() -> bool:
            return await pending(client) + sum(each.done() for each in accepted) >= 100

        await until(all_in)
        print(f"SIGTERM with {await pending(client):.0f} of 100 not answered")
        assert await pending(client) > 10
        frozen.process.send_signal(signal.SIGTERM)
        while (await client.get("/readyz")).status_code == 200:
            await asyncio.sleep(0.01)
        new = await ask(client, "The dog.")
        assert (new.status, new.body["code"]) == (503, "unavailable") and int(new.retry_after) >= 1
        assert Counter(each.status for each in await asyncio.gather(*accepted)) == {200: 100}

    run(frozen.url, test)
    assert frozen.process.wait() == 0
    assert not frozen.events("not answered in time") and frozen.events("stopped")
    assert frozen.replicas("") == []


def test_a_new_model_under_load(start_service: Start, tmp_path: Path) -> None:
    """Nothing fails; each answer is by one of the two models, and after the reload by the new one."""
    model = tmp_path / "model"
    shutil.copytree(FROZEN, model)
    service = start_service(model, MT_ADMIN_KEY=ADMIN, MT_CACHE_CHARACTERS="0")
    switched = 0

    async def reload(client: httpx.AsyncClient, ledger: Ledger) -> None:
        nonlocal switched
        await answered(ledger, 60)
        other_weights(model, 0.9)
        found = await client.post("/admin/reload", headers={"Authorization": f"Bearer {ADMIN}"})
        assert found.status_code == 200 and found.json()["models"][0]["changed"], found.text
        switched = len(ledger.entries)
        await answered(ledger, 200)

    ledger = asked_under_load(service.url, reload)
    assert set(ledger.counted()) == {200}
    asked = sorted({each.q for each in ledger.entries})
    before, after = expected_texts(asked), expected_texts(asked, model)
    assert all(each.text in (before[each.q], after[each.q]) for each in ledger.entries)
    assert sum(before[text] != after[text] for text in asked) > 10
    late = [each for each in ledger.entries if each.begun > ledger.entries[switched].ended]
    assert late and all(each.text == after[each.q] for each in late)


def test_what_does_not_fit_is_refused_at_once(start_service: Start) -> None:
    """By the application and not by Serve: with the time to wait; probes are never refused."""
    service = start_service(FROZEN, MT_MAX_PENDING_REQUESTS="10", MT_CACHE_CHARACTERS="0")
    texts = [" ".join(sentences(40, seed=number)) for number in range(60)]

    async def test(client: httpx.AsyncClient) -> None:
        asked = [asyncio.create_task(ask(client, text, beam_size=8)) for text in texts]
        assert (await client.get("/readyz")).status_code == 200
        found = await asyncio.gather(*asked)
        refused = [each for each in found if each.status == 503]
        assert {each.status for each in found} == {200, 503}
        assert all(each.body["code"] == "overloaded" and int(each.retry_after) >= 1 for each in refused)

    run(service.url, test)


def test_load_brings_more_replicas(start_service: Start) -> None:
    service = start_service(FROZEN, least=1, MT_MAX_PENDING_REQUESTS="5000", MT_CACHE_CHARACTERS="0")
    assert len(service.replicas("models")) == 1

    async def grow(client: httpx.AsyncClient, ledger: Ledger) -> None:
        while len(service.replicas("models")) < 3:
            await answered(ledger, 1)

    ledger = asked_under_load(service.url, grow, clients=100, length=40)
    assert set(ledger.counted()) == {200}


def test_a_model_that_cannot_be_loaded_is_an_error_message(
    machine: Cluster, start_service: Start, tmp_path: Path
) -> None:
    with pytest.raises(AssertionError, match=r"'error: .*no model here"):
        start_service(tmp_path)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_nothing_stays_on_the_cluster_of_what_is_stopped_too_early(number: signal.Signals) -> None:
    """While it waits for room for its second replica."""
    with cluster(cpus=1) as machine:
        service = started(machine, FROZEN, least=2)
        while not service.replicas("models"):
            assert service.process.poll() is None, service.logs
            time.sleep(0.1)
        service.process.send_signal(number)
        assert service.process.wait() == 130
        assert machine.processes("ray::Serve") == [] and machine.processes("ray::ProxyActor") == []


def test_a_stream_comes_sentence_by_sentence_from_a_replica(start_service: Start) -> None:
    service = start_service(FROZEN, MT_CACHE_CHARACTERS="0")
    alone = sentences(5)
    body = {"q": " ".join(alone), "source": "en", "target": "de"}
    with httpx.Client(base_url=service.url, trust_env=False, timeout=60) as client:
        whole = client.post("/translate", json=body).json()["translatedText"]
        events = client.post("/translate", json={**body, "stream": True}).text.split("\n\n")[:-1]
    found = [json.loads(event.partition("data: ")[2]) for event in events]
    assert [event.partition("\n")[0] for event in events] == 5 * ["event: segment"] + ["event: done"]
    assert "".join(each["translatedText"] for each in found[:-1]) == whole == found[-1]["translatedText"]
