"""LibreTranslate's whole surface and our extensions of it, over models that a person can follow."""

import asyncio
import io
import json
import socket
import time
from collections.abc import Iterator
from typing import Any, cast
from urllib.parse import quote, urlencode

import httpx
import pytest
from fastapi import Request

from mt.data.translation_memory import read_memory_stream
from mt.text.terms import Terms
from service.errors import Overloaded, StorageFull
from service.glossaries.store import Dictionary, glossary_direction
from service.routes.translate import job_for, stream_events
from service.services import Services
from service.translate_schemas import TranslateRequest
from tests.attacks.payloads import pdf
from tests.service.doubles import Guesses, WordModels, backwards, upper
from tests.service.native import Native
from tests.text.test_tmx import memory

PAIR = {"source": "en", "target": "de"}


@pytest.fixture(scope="module")
def native() -> Iterator[Native]:
    """en-de in capitals, de-fr in reverse order."""
    ways = {"en-de": upper, "de-fr": backwards}
    limits = {
        "max_characters": 5000,
        "max_texts": 50,
        "max_terms": 5,
        "max_stored_file_bytes": 60_000,
        "max_pending_characters": 9000,
    }
    running = Native(lambda: WordModels(ways), {"detector": Guesses}, limits)
    yield running
    running.stop()


@pytest.fixture
def models(native: Native) -> WordModels:
    assert isinstance(native.models, WordModels)
    native.models.calls.clear()
    return native.models


def asked(native: Native, **body: Any) -> Any:
    response = native.client.post("/translate", json={**PAIR, **body})
    assert response.status_code == 200, response.text
    return response.json()


def refused(response: httpx.Response, status: int) -> str:
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    return str(response.json()["message"])


# One request, in every way to send it

FIELDS = {"q": "one  two.", "source": "en", "target": "de", "format": "text", "alternatives": "1", "api_key": ""}
ANSWER = {"translatedText": "ONE  TWO.", "alternatives": ["ONE  TWO.~1"]}


@pytest.mark.parametrize(
    "sent",
    [
        {"json": FIELDS},
        {"json": FIELDS | {"alternatives": 1, "api_key": None}},
        {"data": FIELDS},
        {"params": FIELDS},
        {"files": {name: (None, value) for name, value in FIELDS.items()}},
        {"params": {"q": "other", "source": "en"}, "data": FIELDS},
        {"content": json.dumps(FIELDS), "headers": {"Content-Type": "application/vnd.x+json; charset=utf-8"}},
    ],
    ids=["json", "json types", "form", "query", "multipart", "form over query", "json by another name"],
)
def test_the_same_answer_however_it_is_asked(native: Native, sent: dict[str, Any]) -> None:
    response = native.client.post("/translate", **sent)
    assert (response.status_code, response.json()) == (200, ANSWER)


def test_a_list_in_a_form_is_a_repeated_field(native: Native) -> None:
    form = urlencode([("q", "a"), ("q", "b"), ("source", "en"), ("target", "de"), ("do_not_translate", "b")])
    response = native.client.post(
        "/translate", content=form, headers={"Content-Type": "application/x-www-form-urlencoded"}
    )
    assert response.json() == {"translatedText": ["A", "b"]}
    response = native.client.post("/translate", data=PAIR | {"q": "a b", "glossary": '{"a": "x"}', "quality": "true"})
    assert response.json() == {"translatedText": "x B", "quality": 50.0}


def test_forms_keep_what_they_are_given(native: Native) -> None:
    text = " a\r\n\r\n“b” & c=d;+ 👍%0A \n"
    for way in ("data", "params", "json"):
        sent: dict[str, Any] = {way: PAIR | {"q": text}}
        response = native.client.post("/translate", **sent)
        assert response.json()["translatedText"] == text.upper()


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("multipart/form-data", b"--x"),
        ("multipart/form-data; boundary=x", b"no part"),
        ("multipart/form-data; boundary=x", b'--x\r\nContent-Disposition: form-data; name="q"\r\n\r\n' + b"a" * 99),
        ("application/x-www-form-urlencoded", b"%zz=%ff&q&&=="),
        ("application/x-www-form-urlencoded", b' {"q": "a", "source": "en", "target": "de"}'),
        ("text/plain", b"q=a"),
    ],
)
def test_bodies_that_are_none(native: Native, kind: str, body: bytes) -> None:
    said = refused(native.client.post("/translate", content=body, headers={"Content-Type": kind}), 400)
    assert said.startswith("Invalid request: ")


# LibreTranslate's words

SAID = [
    ({"q": None}, "Invalid request: missing q parameter"),
    ({"source": ""}, "Invalid request: missing source parameter"),
    ({"target": None}, "Invalid request: missing target parameter"),
    ({"format": "xml"}, "xml format is not supported"),
    ({"alternatives": "many"}, "Invalid request: alternatives parameter is not a number"),
    ({"alternatives": 11}, "Invalid request: alternatives parameter must be <= 10"),
    ({"q": "a" * 5001}, "Invalid request: request (5001) exceeds text limit (5000)"),
    ({"q": ["a"] * 51}, "Invalid request: request (51) exceeds text limit (50)"),
    ({"source": "zz"}, "zz is not supported; accepted: de, en, fr"),
    (
        {"target": "en", "source": "fr"},
        "English (en) is not available as a target language from French (fr)",
    ),
]
OURS = [
    ({"beam_size": 11}, "Invalid request: beam_size parameter must be <= 10"),
    ({"beam_size": 0}, "Invalid request: beam_size must be greater than or equal to 1"),
    ({"timeout_ms": "soon"}, "Invalid request: timeout_ms parameter is not a number"),
    ({"timeout_ms": 10**400}, "Invalid request: timeout_ms must be less than or equal to 86400000"),
    ({"glossary": ["a"]}, "Invalid request: glossary must be an object whose values are strings"),
    ({"glossary": {"": "a"}}, "Invalid request: the terms cannot be used:"),
    ({"glossary": {str(n): "a" for n in range(6)}}, "Invalid request: glossary and do_not_translate have 6 terms"),
    ({"do_not_translate": [1]}, "Invalid request: do_not_translate must be a list of strings"),
    ({"quality": "perhaps"}, "Invalid request: quality must be true or false"),
    ({"targets": ["zz"]}, "zz is not supported; accepted: de, en, fr"),
    ({"q": "a" * 5000, "targets": ["fr"]}, "Invalid request: request (5000) exceeds text limit (4500) for 2 targets"),
    ({"glosary": {"a": "b"}}, "Invalid request: unknown parameter glosary; did you mean glossary?"),
    ({"stream": True, "targets": ["fr"]}, "Invalid request: stream and targets cannot be used together"),
]


@pytest.mark.parametrize(("fields", "message"), SAID + OURS)
def test_what_is_said_to_a_wrong_request(native: Native, fields: dict[str, Any], message: str) -> None:
    response = native.client.post("/translate", json={**PAIR, "q": "a", **fields})
    assert refused(response, 400).startswith(message)


def test_a_batch_of_texts_with_markup(native: Native) -> None:
    found = asked(native, q=["<p>a <b>b</b></p>", "&lt;c&gt;"], format="html")
    assert found == {"translatedText": ["<p>A <b>B</b></p>", "&lt;C&gt;"]}


def test_auto_names_the_language_of_each(native: Native) -> None:
    assert asked(native, q="the dog", source="auto") == {
        "translatedText": "THE DOG",
        "detectedLanguage": {"confidence": 90.0, "language": "en"},
    }
    found = asked(native, q=["the dog", "der Hund"], source="auto")
    assert found["translatedText"] == ["THE DOG", "der Hund"]
    assert [each["language"] for each in found["detectedLanguage"]] == ["en", "de"]


def test_detect(native: Native) -> None:
    for way in ("json", "data", "params"):
        sent: dict[str, Any] = {way: {"q": "le chien"}}
        found = native.client.post("/detect", **sent).json()
        assert found[0] == {"confidence": 90.0, "language": "fr"}
    assert native.client.post("/detect", json={"q": "123"}).json() == [{"confidence": 0.0, "language": "en"}]
    assert refused(native.client.post("/detect", json={}), 400) == "Invalid request: missing q parameter"


def test_languages_and_those_behind_a_bridge(native: Native) -> None:
    assert native.client.get("/languages").json() == [
        {"code": "de", "name": "German", "native_name": "Deutsch", "targets": ["fr"]},
        {"code": "en", "name": "English", "native_name": "English", "targets": ["de", "fr"]},
        {"code": "fr", "name": "French", "native_name": "français", "targets": []},
    ]


def test_frontend_settings(native: Native) -> None:
    found = native.client.get("/frontend/settings").json()
    formats = found.pop("supportedFilesFormat")
    assert {".txt", ".html", ".docx", ".srt"} <= set(formats)
    assert found == {
        "charLimit": 5000,
        "frontendTimeout": 500,
        "apiKeys": False,
        "keyRequired": False,
        "suggestions": False,
        "filesTranslation": True,
        "language": {"source": {"code": "auto", "name": "Auto Detect"}, "target": {"code": "de", "name": "German"}},
    }


# Extensions


def test_a_bridge_is_said(native: Native) -> None:
    assert asked(native, q="one two.", target="fr") == {"translatedText": "TWO ONE.", "bridge": "de"}
    found = asked(native, q=["the a", "der b"], target="fr", source="auto")
    assert found["translatedText"] == ["A THE", "b der"] and found["bridge"] == ["de", None]


def test_several_targets(native: Native) -> None:
    found = asked(native, q=["a b"], targets=["fr", "de"])
    assert found == {
        "translatedText": ["A B"],
        "translations": {
            "fr": {"translatedText": ["B A"], "bridge": ["de"]},
            "de": {"translatedText": ["A B"]},
        },
    }
    response = native.client.post("/translate", json={"q": "a b", "source": "en", "targets": ["fr"]})
    assert response.json()["translatedText"] == "B A"


def test_terms(native: Native) -> None:
    found = asked(native, q="cat dog Rex", glossary={"cat": "Katze"}, do_not_translate=["Rex"])
    assert found["translatedText"] == "Katze DOG Rex"


def test_a_glossary_that_is_kept_here(native: Native) -> None:
    animals = Dictionary(glossary_direction("en", "de"), (("cat", "Katze"), ("dog", "Hund")))
    made = native.glossaries.create("127.0.0.1", "animals", [animals])
    kept = native.wait(made)
    found = asked(native, q="cat dog Rex", glossary_id=kept.id, glossary={"cat": "Kater"})
    assert found["translatedText"] == "Kater Hund REX"
    unknown = native.client.post("/translate", json={**PAIR, "q": "cat", "glossary_id": "another"})
    assert (unknown.status_code, unknown.json()["code"]) == (404, "not_found")
    auto = native.client.post("/translate", json={"source": "auto", "target": "de", "q": "cat", "glossary_id": kept.id})
    assert auto.status_code == 400 and "glossary_id needs a source language" in auto.json()["error"]


def test_segments_quality_and_alignment(native: Native, models: WordModels) -> None:
    found = asked(native, q="👍 one. Two!", quality=True, segments=True, alignment=True, alternatives=1)
    assert found["quality"] == 50.0
    assert found["segments"] == [
        {
            "source": [0, 6],
            "target": [0, 6],
            "quality": 50.0,
            "alternatives": ["👍 ONE.~1"],
            "alignment": [[[0, 1], [0, 1]], [[2, 5], [2, 5]]],
        },
        {
            "source": [7, 11],
            "target": [7, 11],
            "quality": 50.0,
            "alternatives": ["TWO!~1"],
            "alignment": [[[7, 10], [7, 10]]],
        },
    ]
    assert "segments" in asked(native, q="a", attention=True) and models.calls[-1].options.attention
    assert asked(native, q=["a"], segments=True)["segments"] == [[{"source": [0, 1], "target": [0, 1], "quality": 50}]]


def test_sentences_and_beams(native: Native, models: WordModels) -> None:
    asked(native, q="One. Two.", split_sentences=False, beam_size=3)
    assert (models.calls[-1].options.split_sentences, models.calls[-1].options.beam_size) == (False, 3)
    asked(native, q="One. Two.")
    assert (models.calls[-1].options.split_sentences, models.calls[-1].options.beam_size) == (True, None)


def test_a_deadline(native: Native, models: WordModels) -> None:
    native.do(models.gate.clear)
    begun = time.monotonic()
    response = native.client.post("/translate", json={**PAIR, "q": "late", "timeout_ms": 100})
    native.do(models.gate.set)
    assert refused(response, 504) == "The translation did not finish in time"
    assert time.monotonic() - begun >= 0.1
    assert models.calls[-1].cancelled


def test_a_closed_connection_cancels_the_translation(native: Native, models: WordModels) -> None:
    address = (native.client.base_url.host, native.client.base_url.port)
    for more in ({}, {"stream": True}):
        body = json.dumps({**PAIR, "q": "left", **more})
        head = (
            f"POST /translate HTTP/1.1\r\nHost: test\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
        )
        models.calls.clear()
        native.do(models.gate.clear)
        with socket.create_connection(address) as connection:
            connection.sendall(f"{head}\r\n\r\n{body}".encode())
            while not models.calls:
                time.sleep(0.01)
            assert not models.calls[0].cancelled
        deadline = time.monotonic() + 60
        while not models.calls[0].cancelled and time.monotonic() < deadline:
            time.sleep(0.01)
        native.do(models.gate.set)
        assert [call.cancelled for call in models.calls] == [True]


# Models


def test_a_model_is_selected_by_name_and_the_answer_names_it(native: Native) -> None:
    assert asked(native, q="a b", model="words-en-de") == {"translatedText": "A B", "models": ["words-en-de"]}
    assert asked(native, q="a b", model="default", target="fr") == {
        "translatedText": "B A",
        "bridge": "de",
        "models": ["words-en-de", "words-de-fr"],
    }
    assert asked(native, q=["a", ""], model="words-en-de")["models"] == [["words-en-de"]] * 2
    assert "models" not in asked(native, q="a")


def test_a_model_that_does_not_translate_the_request(native: Native) -> None:
    def answer(**body: Any) -> str:
        return refused(native.client.post("/translate", json={**PAIR, "q": "a", **body}), 400)

    assert answer(model="other") == "model other is not served; accepted: words-de-fr, words-en-de"
    assert answer(model="words-de-fr") == "en is not supported; accepted: de, fr"
    assert answer(model="words-en-de", target="fr") == "fr is not supported; accepted: de, en"


# Streams


def events(text: str) -> list[tuple[str, Any]]:
    found = []
    for block in text.strip().split("\n\n"):
        name, data = block.split("\n")
        found.append((name.removeprefix("event: "), json.loads(data.removeprefix("data: "))))
    return found


def test_a_stream_of_sentences(native: Native) -> None:
    text = "One two.\n\n- Three!"
    response = native.client.post("/translate", json={**PAIR, "q": text, "stream": True, "quality": True})
    assert response.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert events(response.text) == [
        ("segment", {"index": 0, "source": [0, 8], "translatedText": "ONE TWO.", "quality": 50.0}),
        ("segment", {"index": 1, "source": [8, 18], "translatedText": "\n\n- THREE!", "quality": 50.0}),
        ("done", asked(native, q=text, quality=True)),
    ]


def test_a_stream_of_several_texts(native: Native) -> None:
    response = native.client.post("/translate", json={**PAIR, "q": ["a", "", "b"], "stream": True})
    found = events(response.text)
    assert found == [
        ("segment", {"text": 0, "index": 0, "source": [0, 1], "translatedText": "A"}),
        ("segment", {"text": 1, "index": 0, "source": [0, 0], "translatedText": ""}),
        ("segment", {"text": 2, "index": 0, "source": [0, 1], "translatedText": "B"}),
        ("done", {"translatedText": ["A", "", "B"]}),
    ]


def test_an_error_before_the_first_sentence_is_an_answer_and_later_an_event(native: Native, models: WordModels) -> None:
    native.do(lambda: models.errors.append(Overloaded(7)))
    response = native.client.post("/translate", json={**PAIR, "q": "a", "stream": True})
    assert refused(response, 503) and response.headers["retry-after"] == "7"
    response = native.client.post("/translate", json={**PAIR, "q": "One. A poison.", "stream": True})
    assert response.status_code == 200
    name, body = events(response.text)[-1]
    assert name == "error" and body["status"] == 400 and body["request_id"] == response.headers["x-request-id"]


def test_a_stream_that_fails_or_is_left_pays_for_what_was_sent(native: Native) -> None:
    key = native.keys["rich"]
    before = native.spent("rich")
    fields: dict[str, Any] = {**PAIR, "q": "One. A poison.", "stream": True, "api_key": key}
    assert events(native.client.post("/translate", json=fields).text)[-1][0] == "error"
    assert native.spent("rich") - before == len("One.")
    body = TranslateRequest(**{**fields, "q": "One two. Three four. Five."})

    async def leave() -> None:
        caller = await native.access.admit(key, "")
        services = cast(Services, native.services)
        job = job_for(body, "de", caller, Terms(), services)
        stream = stream_events(body, Request({"type": "http"}), services, caller, job)
        await anext(stream)
        await stream.aclose()

    native.wait(leave())
    assert native.spent("rich") - before == len("One.") + len("One two.")


def test_a_wrong_target_is_refused_before_another_is_translated(native: Native, models: WordModels) -> None:
    before = len(models.calls)
    wrong = native.client.post("/translate", json={**PAIR, "q": "one target", "source": "en", "targets": ["de", "zz"]})
    assert refused(wrong, 400).startswith("zz is not supported")
    assert len(models.calls) == before


def test_every_request_has_a_deadline(native: Native, models: WordModels) -> None:
    """It also ends work before the queue, such as look-ups in a memory."""
    for fields, seconds in (({}, native.settings.request_timeout_seconds), ({"timeout_ms": 5000}, 5)):
        begun = time.monotonic()
        asked(native, q=f"deadline {seconds}", **fields)
        deadline = models.calls[-1].deadline
        assert deadline is not None and begun + seconds <= deadline <= time.monotonic() + seconds


# Files


def upload(native: Native, name: str, content: bytes, **fields: str) -> httpx.Response:
    return native.client.post("/translate_file", data={**PAIR, **fields}, files={"file": (name, content)})


def test_a_file(native: Native) -> None:
    response = upload(native, "a letter.html", b"<p>the <b>dog</b>", source="auto")
    address = response.json()["translatedFileUrl"]
    assert address.startswith(native.url + "/download_file/")
    fetched = native.client.get(address)
    assert fetched.content == b"<p>THE <b>DOG</b>"
    assert quote(address, safe=":/%") == address, "it is an address as it stands, for clients that mend nothing"
    name = "filename=\"a letter_de.html\"; filename*=utf-8''a%20letter_de.html"
    assert fetched.headers["content-disposition"] == f"attachment; {name}"
    assert len({upload(native, "a.txt", b"x").json()["translatedFileUrl"] for _ in range(3)}) == 3


def test_columns_of_a_file(native: Native) -> None:
    table = b"id,name\na,the dog\n"
    answer = upload(native, "a.csv", table, source="en", columns=" name ,")
    assert native.client.get(answer.json()["translatedFileUrl"]).content == b"id,name\na,THE DOG\n"
    assert "no column 'size'; accepted: a number from 1 to 2, or id, name" in refused(
        upload(native, "a.csv", table, source="en", columns="size"), 400
    )


@pytest.mark.parametrize(
    ("encoding", "content", "written"),
    [
        ("", "Käse\n".encode("cp1252"), "KÄSE\n".encode("cp1252")),
        ("cp1251", "Хлеб\n".encode("cp1251"), "ХЛЕБ\n".encode("cp1251")),
        ("UTF-16", "Käse\n".encode("utf-16-be"), "KÄSE\n".encode("utf-16-be")),
    ],
)
def test_the_encoding_of_a_file(native: Native, encoding: str, content: bytes, written: bytes) -> None:
    answer = upload(native, "a.txt", content, source="en", encoding=encoding)
    assert native.client.get(answer.json()["translatedFileUrl"]).content == written


def test_an_unknown_encoding_of_a_file(native: Native) -> None:
    problem = refused(upload(native, "a.txt", b"x", source="en", encoding="klingon"), 400)
    assert "the encoding 'klingon' is unknown; accepted: such as utf-16, cp1252 or gb18030" in problem


def test_the_sentences_of_a_file_as_tmx(native: Native) -> None:
    text = "<p>The dog. <b>Two</b> cats &amp; one.</p><p>Three.</p>"
    assert upload(native, "a.html", text.encode()).json().keys() == {"translatedFileUrl"}
    answer = upload(native, "a.html", text.encode(), source="en", tmx="true").json()
    fetched = native.client.get(answer["tmxUrl"])
    assert 'filename="a_de.tmx"' in fetched.headers["content-disposition"]
    units = read_memory_stream(io.BytesIO(fetched.content), "a.tmx", "en", "de")
    assert [(unit.source, unit.target) for unit in units] == [
        ("The dog.", "THE DOG."),
        ("Two cats & one.", "TWO CATS & ONE."),
        ("Three.", "THREE."),
    ]


def test_terms_apply_to_a_file(native: Native) -> None:
    fields = {"glossary": '{"dog": "Köter"}', "do_not_translate": '["Acme"]', "source": "en"}
    address = upload(native, "a.txt", b"the dog of Acme", **fields).json()["translatedFileUrl"]
    written = native.client.get(address).text
    assert "Köter" in written and "Acme" in written
    said = refused(upload(native, "a.txt", b"x", source="auto", glossary_id="unknown"), 400)
    assert said == "Invalid request: glossary_id needs a source language"
    assert "glossary" in refused(upload(native, "a.txt", b"x", source="en", glossary="dog"), 400)


def test_a_memory_gets_the_target_language(native: Native) -> None:
    content = memory('<tu><tuv xml:lang="en"><seg>the dog</seg></tuv></tu>').encode()
    address = upload(native, "a.tmx", content, source="en").json()["translatedFileUrl"]
    assert '<tuv xml:lang="de"><seg>THE DOG</seg></tuv>' in native.client.get(address).text


def test_a_pdf_file_becomes_a_word_document(native: Native) -> None:
    answer = upload(native, "a.PDF", pdf(b"BT /F 12 Tf 72 700 Td (the dog) Tj ET"), source="en")
    assert answer.json()["translatedFileUrl"].endswith(".a_de.PDF.docx")


@pytest.mark.parametrize("name", ["..%2f..%2fetc%2fpasswd", "%2e%2e", "a.txt", "x" * 1000])
def test_no_other_file_can_be_fetched(native: Native, name: str) -> None:
    assert native.client.get(f"/download_file/{name}").status_code == 404


def test_only_so_many_files_are_kept(native: Native) -> None:
    first = upload(native, "a.txt", b"A dog.\n" * 5000).json()["translatedFileUrl"]
    second = upload(native, "a.txt", b"A cat.\n" * 5000).json()["translatedFileUrl"]
    assert [native.client.get(address).status_code for address in (first, second)] == [404, 200]


def test_a_file_that_cannot_be_stored_costs_nothing(native: Native, monkeypatch: pytest.MonkeyPatch) -> None:
    async def full(*_: object) -> str:
        raise StorageFull

    monkeypatch.setattr(native.documents, "put", full)
    before = native.spent("rich")
    refused(upload(native, "a.txt", b"the dog", source="en", api_key=native.keys["rich"]), 507)
    assert native.spent("rich") == before


def test_files_that_are_refused(native: Native) -> None:
    said = refused(upload(native, "a.exe", b"x"), 400)
    assert said.startswith("Invalid request: file format not supported; accepted: .arb, .csv, ")
    assert refused(upload(native, "a.docx", b"x"), 400).startswith("a.docx")
    assert refused(upload(native, "a.txt", b"x", target="zz"), 400) == "zz is not supported; accepted: de, en, fr"
    missing = native.client.post("/translate_file", data={"target": "de"})
    assert "missing file parameter" in refused(missing, 400) and "missing source parameter" in missing.text


# Keys


def test_a_text_costs_its_characters_for_each_target(native: Native) -> None:
    key = native.keys["rich"]
    before = native.spent("rich")
    asked(native, q=["12345", "123"], targets=["fr", "de"], api_key=key)
    upload(native, "a.txt", b"one\ntwo", api_key=key)
    native.client.post("/translate", json={**PAIR, "q": "poison", "api_key": key})
    assert native.spent("rich") - before == 8 * 2 + 6, "what fails costs nothing"


def test_keys_are_asked_for(native: Native) -> None:
    wrong = {"api_key": "mt_wrong"}
    assert refused(native.client.post("/translate", json={**PAIR, "q": "a", **wrong}), 403) == "Invalid API key"
    assert refused(native.client.post("/detect", data={"q": "a", **wrong}), 403) == "Invalid API key"
    assert refused(upload(native, "a.txt", b"x", **wrong), 403) == "Invalid API key"
    poor = native.keys["poor"]
    assert refused(native.client.post("/translate", json={**PAIR, "q": "a" * 21, "api_key": poor}), 403)
    assert native.client.post("/translate", json={**PAIR, "q": "a" * 20, "api_key": poor}).status_code == 200


def test_many_at_once_get_their_own(native: Native) -> None:
    async def ask() -> list[str]:
        async with httpx.AsyncClient(base_url=native.url, trust_env=False, timeout=60) as client:
            answers = await asyncio.gather(
                *(client.post("/translate", json={**PAIR, "q": f"text {number % 20}"}) for number in range(100))
            )
            return [answer.json()["translatedText"] for answer in answers]

    assert asyncio.run(ask()) == [f"TEXT {number % 20}" for number in range(100)]
