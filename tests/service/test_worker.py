"""What happens around the worker: a full queue, clients that leave, a worker that dies."""

import asyncio
import json
import pickle
import socket
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import httpx
import pytest

from mt import Translator
from mt.errors import ModelError
from service.errors import InternalError
from service.languages import Direction
from service.messages import Cancel, Close, Count, Counts, Done, Failed, FromWorker, Ready, Refused, ToWorker, Translate
from service.worker import QueueLimits, ThreadTransport, Worker, where, work
from tests.conftest import sentences

Start = Callable[..., Any]
BODY = {"q": "The dog sees the cat.", "source": "en", "target": "de"}


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(32) as pool:
        yield pool


def post(application: Any, **body: Any) -> httpx.Response:
    return httpx.post(f"{application.url}/translate", json=BODY | body, trust_env=False, verify=False, timeout=60)


def health(application: Any) -> httpx.Response:
    return httpx.get(f"{application.url}/health", trust_env=False, verify=False, timeout=60)


def wait_until(condition: Callable[[], bool]) -> None:
    """Gives up after a minute: a test that fails must not hang."""
    for _ in range(12_000):
        if condition():
            return
        time.sleep(0.005)
    pytest.fail("what the test waits for does not happen")


@pytest.mark.parametrize(
    ("limits", "accepted"),
    [({"max_pending_requests": 5}, 5), ({"max_pending_characters": 80, "max_characters": 80}, 3)],
)
def test_a_full_queue_refuses_and_answers_what_it_accepted(
    in_thread: Start, pool: ThreadPoolExecutor, limits: dict[str, int], accepted: int
) -> None:
    application = in_thread(**limits)
    running = [pool.submit(post, application) for _ in range(accepted)]
    wait_until(lambda: application.worker.pending == accepted)
    for _ in range(10):
        refused = post(application)
        assert refused.status_code == 503
        assert refused.json()["code"] == "overloaded"
        assert int(refused.headers["retry-after"]) >= 1
        assert health(application).status_code == 200  # the decoder stands still all the while
    assert not any(future.done() for future in running)
    application.scorer.open()
    assert [future.result().status_code for future in running] == [200] * accepted
    assert post(application).status_code == 200


def leave(application: Any, **body: Any) -> None:
    """Send a request, and hang up once it has been accepted."""
    before = application.worker.pending
    content = json.dumps(BODY | body).encode()
    head = ["POST /translate HTTP/1.1", "Host: a", "Content-Type: application/json", f"Content-Length: {len(content)}"]
    with socket.create_connection(("127.0.0.1", int(application.url.rpartition(":")[2]))) as client:
        client.sendall("\r\n".join([*head, "", ""]).encode() + content)
        wait_until(lambda: application.worker.pending == before + 1)
    wait_until(lambda: application.worker.pending == before)


def test_a_client_that_leaves_while_it_waits(in_thread: Start, pool: ThreadPoolExecutor) -> None:
    application = in_thread()
    staying = pool.submit(post, application)
    application.scorer.entered.acquire()  # it is being decoded
    leave(application, q=sentences(20))
    counts = application.counts()
    application.scorer.permits.release()  # messages are read after this step
    assert counts.result().working == 1
    application.scorer.open()
    assert staying.result().status_code == 200
    assert application.counts().result().finished == 1


def test_a_client_that_leaves_while_it_is_decoded(in_thread: Start, pool: ThreadPoolExecutor) -> None:
    application = in_thread()
    leave(application, q=sentences(20))
    counts = application.counts()
    application.scorer.open()
    assert counts.result().steps <= 1
    assert (counts.result().finished, counts.result().working) == (0, 0)
    assert post(application).status_code == 200


def test_one_text_that_fails_does_not_touch_the_others(in_thread: Start, pool: ThreadPoolExecutor) -> None:
    application = in_thread()
    request = Translator.load(application.settings.model, "cpu").request("poison")
    assert request is not None
    application.scorer.poison = request.source
    good = [pool.submit(post, application, q=text) for text in sentences(7)]
    bad = pool.submit(post, application, q="The dog. poison")
    wait_until(lambda: application.worker.pending == 8)
    application.scorer.open()
    expected = Translator.load(application.settings.model, "cpu").translate(sentences(7))
    assert [future.result().json()["translatedText"] for future in good] == [found.text for found in expected]
    assert bad.result().json()["code"] == "cannot_translate"


def test_when_the_worker_dies(in_thread: Start, pool: ThreadPoolExecutor) -> None:
    application = in_thread()
    waiting = [pool.submit(post, application) for _ in range(3)]
    wait_until(lambda: application.worker.pending == 3)
    assert health(application).status_code == 200
    application.scorer.dying = True
    application.scorer.open()
    for response in [future.result() for future in waiting] + [post(application), health(application)]:
        assert response.status_code == 503
        assert response.json()["code"] == "unavailable"
        assert int(response.headers["retry-after"]) >= 1
    assert application.worker.pending == 0
    assert application.problems[0].startswith("SystemExit at ")
    assert "a worker that dies" not in application.problems[0]


def talk(translator: Translator, messages: list[ToWorker]) -> list[FromWorker]:
    """What a worker answers to these, each of which goes through pickle both ways."""
    inbox: SimpleQueue[bytes] = SimpleQueue()
    outbox: list[bytes] = []
    for message in (*messages, Close()):
        inbox.put(pickle.dumps(message))

    def receive(wait: bool) -> list[ToWorker]:
        return [pickle.loads(inbox.get())] if wait or len(outbox) > len(messages) else []

    work(lambda: translator, receive, lambda answers: outbox.extend(map(pickle.dumps, answers)))
    return [pickle.loads(answer) for answer in outbox]


def test_the_worker_speaks_in_messages_that_can_cross_a_process(small_model: Path) -> None:
    translator = Translator.load(small_model, "cpu")
    options, direction = translator.options, Direction("en", "de")
    expected, two = (translator.translate([text])[0] for text in ("The dog sees the cat.", "The dog. The cat."))
    before = translator.engine.steps
    said = talk(
        translator,
        [
            Translate(1, "The dog sees the cat.", direction, options),
            Translate(2, " ", direction, options),
            Translate(3, "The dog sees the cat.", Direction("de", "en"), options),
            Translate(4, "The dog. The cat.", direction, options),
            Cancel((77,)),
            Count(5),
        ],
    )
    assert said[0] == Ready((direction,), options)
    assert said[1] == Done(1, expected)
    assert isinstance(said[2], Done) and said[2].translation.text == " "
    assert isinstance(said[3], Failed) and said[3].code == "cannot_translate"
    assert "accepted: en-de" in said[3].message
    assert said[4] == Done(4, two)
    assert isinstance(said[5], Counts) and said[5].steps > before and said[5].finished == 2 and said[5].working == 0


def test_a_tokenizer_that_breaks_on_a_text_is_no_end(small_model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    translator = Translator.load(small_model, "cpu")

    def encode(text: str) -> list[int]:
        raise ValueError(f"secret {text}")

    monkeypatch.setattr(translator.tokenizer, "encode", encode)
    failed = talk(translator, [Translate(1, "text", Direction("en", "de"), translator.options)])[1]
    assert isinstance(failed, Failed) and failed.code == InternalError.code
    assert failed.message.startswith("ValueError at ") and "secret" not in failed.message


def test_a_model_that_cannot_be_loaded(tmp_path: Path) -> None:
    def load() -> Translator:
        return Translator.load(tmp_path, "cpu")

    said: list[FromWorker] = []
    work(load, lambda wait: [], said.extend)
    assert len(said) == 1 and isinstance(said[0], Refused) and "no model here" in said[0].message

    async def start() -> None:
        async with Worker(ThreadTransport(load), QueueLimits(1, 1), lambda _: None):
            pass

    with pytest.raises(ModelError, match="no model here"):
        asyncio.run(start())


def test_a_loader_that_breaks() -> None:
    def load() -> Translator:
        raise MemoryError

    async def start() -> None:
        async with Worker(ThreadTransport(load), QueueLimits(1, 1), lambda _: None):
            pass

    with pytest.raises(RuntimeError, match=r"stopped before the model was loaded: MemoryError at .*test_worker\.py"):
        asyncio.run(start())


def test_where_says_the_place_and_not_the_message() -> None:
    with pytest.raises(ValueError, match="secret") as caught:
        int("my secret text")
    assert "test_worker.py:" in where(caught.value) and "secret" not in where(caught.value)
