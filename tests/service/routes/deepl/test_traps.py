"""What the official SDK does that a server must know."""

import asyncio
import io
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Event, Thread, Timer

import deepl
import httpx
import pytest

from service.errors import CannotTranslate, Overloaded
from service.translation.service import TranslationService
from tests.service.capitals import Running, several, single
from tests.service.doubles import Guesses, WordModels


def test_trap_it_takes_billed_characters_for_an_int_always(raw: httpx.Client, client: deepl.DeepLClient) -> None:
    results = several(client.translate_text(["", "\U0001f600", "é"], target_lang="DE"))
    assert [result.billed_characters for result in results] == [0, 1, 1]


def test_trap_it_sends_a_type_in_the_body_of_a_get(running: Running) -> None:
    request = httpx.Request(
        "GET",
        f"{running.url}/v2/languages",
        content=b"type=target",
        headers={
            "Authorization": f"DeepL-Auth-Key {running.keys['rich']}",
            "Content-Type": "application/x-www-form-urlencoded",
        },
    )
    with httpx.Client(trust_env=False) as bare:
        assert "EN-GB" in [each["language"] for each in bare.send(request).json()]


def test_trap_it_adds_detail_to_a_string(raw: httpx.Client) -> None:
    for answer in (
        raw.post("/v2/translate", json={}),
        raw.get("/v2/languages?type=both"),
        raw.get("/v3/glossaries/x/entries"),
        raw.get("/v2/nothing"),
        raw.delete("/v2/translate"),
        raw.post("/v2/document", data={"target_lang": "DE"}),
    ):
        assert answer.status_code in (400, 404, 405)
        assert isinstance(answer.json()["detail"], str)
        assert isinstance(answer.json()["message"], str)


def test_trap_it_repeats_a_5xx_so_a_bad_text_gets_none(running: Running, client: deepl.DeepLClient) -> None:
    running.core.failing = [CannotTranslate("the model fails on this text")] * 6
    with pytest.raises(deepl.DeepLException, match="the model fails on this text") as caught:
        client.translate_text("poison", target_lang="DE")
    assert (caught.value.http_status_code, len(running.core.jobs)) == (400, 1)


def test_trap_it_repeats_when_the_service_is_busy(
    running: Running, client: deepl.DeepLClient, quick_retries: None
) -> None:
    running.core.failing = [Overloaded(1)] * 2
    assert single(client.translate_text("dog", target_lang="DE")).text == "DOG"
    assert len(running.core.jobs) == 3


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reads for 0.3 s in place of 10."""
    monkeypatch.setattr(deepl.http_client._BackoffTimer, "get_timeout", lambda self: 0.3)


@pytest.mark.parametrize(("patience", "goes_on"), [(0.1, True), (9.0, False)])
def test_trap_it_gives_up_reading_after_10_s(
    start: Callable[..., Running], monkeypatch: pytest.MonkeyPatch, impatient: None, patience: float, goes_on: bool
) -> None:
    """Whoever waited that long comes back; whoever leaves earlier does not."""
    running = start(gives_up_after=patience)
    running.hold()
    monkeypatch.setattr(deepl.http_client, "max_network_retries", 0)
    with pytest.raises(deepl.ConnectionException):
        running.client().translate_text("dog", target_lang="DE")
    running.wait(asyncio.sleep(0.2))
    assert bool(running.detached_work._detached) == goes_on


def test_trap_it_asks_again_for_what_is_still_in_work(
    start: Callable[..., Running], impatient: None, quick_retries: None
) -> None:
    """The same request, again and again: one computation answers it."""
    models = WordModels()
    models.gate.clear()
    running = start(gives_up_after=0.1, translations=TranslationService(models, detector=Guesses))
    opening = Timer(1.0, lambda: running.do(models.gate.set))
    opening.start()
    result = running.client().translate_text("the dog", source_lang="EN", target_lang="DE")
    assert single(result).text == "THE DOG"
    opening.join()
    assert [call.cancelled for call in models.calls] == [False]


def test_trap_two_that_ask_at_once_are_one_computation(start: Callable[..., Running]) -> None:
    models = WordModels()
    models.gate.clear()
    running = start(translations=TranslationService(models, detector=Guesses))
    with ThreadPoolExecutor(4) as pool:
        asked = [
            pool.submit(running.client().translate_text, "the dog", source_lang="EN", target_lang="DE")
            for _ in range(4)
        ]
        Event().wait(0.5)
        running.do(models.gate.set)
        assert [single(each.result()).text for each in asked] == ["THE DOG"] * 4
    assert len(models.calls) == 1


def test_trap_it_cannot_read_a_time_without_a_fraction(running: Running, client: deepl.DeepLClient) -> None:
    made = client.create_glossary("x", "EN", "DE", {"a": "b"})
    running.store.run_sync(
        lambda connection: connection.execute("UPDATE glossaries SET created = 1000000000").fetchone()
    )
    assert client.get_glossary(made.glossary_id).creation_time.timestamp() == 1_000_000_000


def test_trap_it_asks_for_a_document_only_every_5_s(running: Running, client: deepl.DeepLClient) -> None:
    def release_later() -> None:
        Event().wait(0.3)
        running.release()

    running.hold()
    handle = client.translate_document_upload("A dog.", filename="a.txt", target_lang="DE")
    releasing = Thread(target=release_later)
    releasing.start()
    assert client.translate_document_get_status(handle).done
    releasing.join()


def test_trap_it_names_a_stream_file(client: deepl.DeepLClient) -> None:
    """Of a stream without a name, it sends the name "file"; a `filename` among the fields then helps."""
    with pytest.raises(deepl.DeepLException, match="file extension"):
        client.translate_document_upload(io.BytesIO(b"A dog."), target_lang="DE")
    named = {"filename": "a.txt"}
    handle = client.translate_document_upload(io.BytesIO(b"A dog."), target_lang="DE", extra_body_parameters=named)
    assert client.translate_document_wait_until_done(handle).done


def test_trap_it_writes_tsv_without_quotes(client: deepl.DeepLClient) -> None:
    entries = {'"quoted"': 'a "b', "it's": 'so "'}
    assert client.get_glossary_entries(client.create_glossary("x", "EN", "DE", entries)) == entries


def test_every_answer_has_a_trace_id(raw: httpx.Client) -> None:
    for answer in (
        raw.get("/v2/usage"),
        raw.get("/v2/nothing"),
        raw.get("/v3/glossaries"),
        raw.post("/v2/translate", content=b"{"),
        raw.post("/v2/translate", content=b"x" * 400_000),
        raw.get("/v2/usage", headers={"Authorization": "DeepL-Auth-Key no"}),
    ):
        assert answer.headers["X-Trace-ID"] == answer.headers["X-Request-ID"] != ""
