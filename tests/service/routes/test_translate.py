"""POST /translate of LibreTranslate with our extensions, /detect, /languages and streams."""

import asyncio
import json
import socket
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import httpx
import pytest
from fastapi import Request
from pydantic import BaseModel

import service.routes.deepl.translate as deepl_module
import service.routes.translate as module
from mt.text.formality import Formality
from mt.text.terms import Terms
from service.errors import CannotTranslate, InvalidRequest, Overloaded, Unavailable
from service.routes.translate import MAX_WEIGHTS, check_limits, job_for, stream_events
from service.schemas import TargetResponse, TranslateRequest
from service.settings import Settings
from service.translation.jobs import Answer, Job
from service.translation.service import TranslationService
from tests.service.application import Application
from tests.service.doubles import WordModels

PAIR = {"source": "en", "target": "de"}
FORM = "application/x-www-form-urlencoded"


def asked(native: Application, status: int = 200, **body: Any) -> Any:
    return native.post("/translate", {**PAIR, **body}, status)


def refused(response: httpx.Response, status: int, code: str = "") -> str:
    body = response.json()
    assert response.status_code == status == body["status"], response.text
    assert response.headers["content-type"] == "application/problem+json"
    assert list(body) == ["type", "title", "status", "detail", "instance", "code", "request_id", "error", "message"]
    assert body["detail"] == body["message"] and body["message"].startswith(body["error"])
    assert body["message"].removeprefix(body["error"])[:2] in ("", "; ")
    assert body["request_id"] == response.headers["x-request-id"]
    assert body["instance"] == response.request.url.raw_path.decode().partition("?")[0]
    assert code in ("", body["code"])
    return str(body["message"])


# One request, in every way to send it

FIELDS = {"q": "one  two.", "source": "en", "target": "de", "format": "text", "alternatives": "1", "api_key": ""}
ANSWER = {"translatedText": "ONE  TWO.", "alternatives": ["ONE  TWO.~1"]}


@pytest.mark.parametrize(
    "sent",
    [
        {"json": FIELDS},
        {"json": FIELDS | {"alternatives": 1, "api_key": None}},
        {"json": FIELDS | {"alternatives": 1.0, "frontend": True}},  # JSON of JavaScript does not tell 1.0 from 1
        {"data": FIELDS},
        {"params": FIELDS},
        {"files": {name: (None, value) for name, value in FIELDS.items()}},
        {"params": {"q": "other", "source": "en"}, "data": FIELDS},
        {"content": json.dumps(FIELDS), "headers": {"Content-Type": "application/vnd.x+json; charset=utf-8"}},
    ],
    ids=["json", "types", "fraction", "form", "query", "multipart", "form over query", "json by another name"],
)
def test_the_same_answer_however_it_is_asked(native: Application, sent: dict[str, Any]) -> None:
    for path in ("/translate", "//translate", "/translate/", "///translate//"):
        response = native.client.post(native.url + path, **sent)
        assert (response.status_code, response.json()) == (200, ANSWER)


def test_a_list_in_a_form_is_a_repeated_field(native: Application) -> None:
    form = urlencode([("q", "a"), ("q", "b"), ("source", "en"), ("target", "de"), ("do_not_translate", "b")])
    response = native.client.post("/translate", content=form, headers={"Content-Type": FORM})
    assert response.json() == {"translatedText": ["A", "b"]}
    response = native.client.post("/translate", data=PAIR | {"q": "a b", "glossary": '{"a": "x"}', "quality": "true"})
    assert response.json() == {"translatedText": "x B", "quality": 50.0}


def test_forms_keep_what_they_are_given(native: Application) -> None:
    text = " a\r\n\r\n“b” & c=d;+ 👍%0A \n"
    for way in ("data", "params", "json"):
        sent: dict[str, Any] = {way: PAIR | {"q": text}}
        assert native.client.post("/translate", **sent).json()["translatedText"] == text.upper()


# Answers


def said(text: Any, **more: Any) -> dict[str, Any]:
    return {"translatedText": text, **more}


AUTO = {"source": "auto"}
FRENCH = {"target": "fr"}
HTML = {"format": "html"}
ENGLISH, _ = BOTH = [{"confidence": 90.0, "language": code} for code in ("en", "de")]
BRIDGED = said(["B A"], bridge=["de"])
RANKED = "<p>A~1</p><b>B~1</b>"
TITLE = '<p title="a b">one <b>two</b> &lt;i&gt; <!-- no --></p>'
SENTENCES = [
    {"source": [0, 6], "target": [0, 6], "alternatives": ["👍 ONE.~1"], "alignment": [[[0, 1]] * 2, [[2, 5]] * 2]},
    {"source": [7, 11], "target": [7, 11], "alternatives": ["TWO!~1"], "alignment": [[[7, 10]] * 2]},
]
RATED = {"quality": 50, "segments": [{**one, "quality": 50} for one in SENTENCES]}
ANSWERS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"q": ["a", ""]}, said(["A", ""])),
    ({"q": []}, said([])),
    ({"q": "a", "alternatives": -1}, said("A")),
    ({"q": ["a", ""], "alternatives": 1}, said(["A", ""], alternatives=[["A~1"], []])),
    *(({"q": text}, said(text)) for text in ("", " ", "\r\n\r\n", " \t\n ", "\u2028")),
    ({"q": ["<p>a <b>b</b></p>", "&lt;c&gt;"], **HTML}, said(["<p>A <b>B</b></p>", "&lt;C&gt;"])),
    *(({"q": "the dog", "source": auto}, said("THE DOG", detectedLanguage=ENGLISH)) for auto in ("auto", "AUTO")),
    ({"q": ["the dog", "der Hund"], **AUTO}, said(["THE DOG", "der Hund"], detectedLanguage=BOTH)),
    ({"q": '<p class="der der">the</p>', **AUTO, **HTML}, said('<p class="der der">THE</p>', detectedLanguage=ENGLISH)),
    ({"q": TITLE, "source": "de", **FRENCH, **HTML}, said('<p title="b a">&lt;i&gt; <b>two</b> one <!-- no --></p>')),
    ({"q": "the dog", "target": "en"}, said("the dog")),
    ({"q": "a &lt; b", "source": "de", **HTML}, said("a &lt; b")),
    ({"q": "<p>a</p><b>b</b>", **HTML, "alternatives": 1}, said("<p>A</p><b>B</b>", alternatives=[RANKED])),
    ({"q": "a b", "api_key": "", "format": "text", "alternatives": 0, "frontend": 1}, said("A B")),
    *(({"q": "a b", "source": code}, said("A B")) for code in ("en_US", "EN-GB", "eng", "en-Latn-GB", " en")),
    *(({"q": "a b", "target": code}, said("A B")) for code in ("de_DE", "de-CH", "deu", "ger", "de ")),
    ({"q": "one two.", **FRENCH}, said("TWO ONE.", bridge="de")),
    ({"q": ["the a", "der b"], **FRENCH, **AUTO}, said(["A THE", "b der"], bridge=["de", None], detectedLanguage=BOTH)),
    ({"q": ["a b"], "targets": ["fr", "de"]}, said(["A B"], translations={"fr": BRIDGED, "de": said(["A B"])})),
    ({"q": "cat dog Rex", "glossary": {"cat": "Katze"}, "do_not_translate": ["Rex"]}, said("Katze DOG Rex")),
    ({"q": "a b", "model": "words-en-de"}, said("A B", models=["words-en-de"])),
    ({"q": "a b", "model": "default", **FRENCH}, said("B A", bridge="de", models=["words-en-de", "words-de-fr"])),
    ({"q": ["a", ""], "model": "words-en-de"}, said(["A", ""], models=[["words-en-de"]] * 2)),
    ({"q": ["a"], "segments": True}, said(["A"], segments=[[{"source": [0, 1], "target": [0, 1], "quality": 50}]])),
    (
        {"q": "👍 one. Two!", "quality": True, "segments": True, "alignment": True, "alternatives": 1},
        said("👍 ONE. TWO!", **RATED, alternatives=["👍 ONE. TWO!~1"]),
    ),
]


@pytest.mark.parametrize(("fields", "answer"), ANSWERS, ids=lambda value: str(value)[:50])
def test_answers(native: Application, fields: dict[str, Any], answer: dict[str, Any]) -> None:
    assert asked(native, **fields) == answer


def test_the_first_of_several_targets_may_stand_alone(native: Application) -> None:
    assert native.post("/translate", {"q": "a b", "source": "en", "targets": ["fr"]})["translatedText"] == "B A"


def test_many_names_of_one_language_are_one_target(native: Application, monkeypatch: pytest.MonkeyPatch) -> None:
    built, build = list[Sequence[Answer]](), TargetResponse.of.__func__  # type: ignore[attr-defined]

    def counted(model: type[TargetResponse], request: TranslateRequest, answers: Sequence[Answer]) -> TargetResponse:
        built.append(answers)
        response: TargetResponse = build(model, request, answers)
        return response

    monkeypatch.setattr(TargetResponse, "of", classmethod(counted))
    names = ["de", "DE", "de-AT", "de_CH", "deu", "ger", "fr", "fra", "fr-CH"]
    answer = asked(native, q=["many names a", "b"], target="de-LI", targets=[*names, "de"], segments=True)
    assert len(built) == 2
    german, french = (asked(native, q=["many names a", "b"], target=code, segments=True) for code in ("de", "fr"))
    assert answer == german | {"translations": {name: german if name[0].lower() in "dg" else french for name in names}}


def test_a_long_answer_is_written_in_small_pieces(native: Application, monkeypatch: pytest.MonkeyPatch) -> None:
    """A call of pydantic keeps the interpreter lock until it ends: the event loop waits for it."""
    sizes, write = list[int](), BaseModel.model_dump_json

    def counted(model: BaseModel, **options: Any) -> str:
        written = write(model, **options)
        sizes.append(len(written))
        return written

    monkeypatch.setattr(BaseModel, "model_dump_json", counted)
    sent = PAIR | {"q": "One. Two three. " * 150, "alternatives": 2, "alignment": True, "quality": True}
    response = native.client.post("/translate", json=sent)
    assert len(response.json()["segments"]) == 300
    assert max(sizes) < len(response.content) / 4
    sizes.clear()
    *_, done = native.client.post("/translate", json=sent | {"stream": True}).text.strip().split("\n\n")
    assert json.loads(done.partition("data: ")[2]) == response.json()
    assert max(sizes) < len(response.content) / 4


@pytest.mark.parametrize(
    ("size", "targets", "alternatives", "limit"),
    [
        (100_000, 1, 10, None),
        (50_000, 20, 0, None),
        (50_000, 20, 3, 25_000),
        (9_000, 20, 10, None),
        (9_100, 20, 10, 9090),
    ],
)
def test_limit_of_an_answer(size: int, targets: int, alternatives: int, limit: int | None) -> None:
    names = [f"a{number}" for number in range(targets)]
    body = TranslateRequest.model_validate(
        {"q": "a" * size, "source": "en", "targets": names, "alternatives": alternatives}
    )
    settings = Settings(model=(Path("unused"),))
    if limit is None:
        check_limits(body, settings)
        return
    message = rf"request \({size}\) exceeds text limit \({limit}\) for {targets * (1 + alternatives)} translations"
    with pytest.raises(InvalidRequest, match=message):
        check_limits(body, settings)


@pytest.mark.parametrize(
    ("fields", "reaches"),
    [
        ({}, {"split_sentences": True, "beam_size": None, "n_best": 1, "attention": False, "terms": Terms()}),
        ({"split_sentences": False}, {"split_sentences": False}),
        ({"beam_size": 3}, {"beam_size": 3}),
        ({"beam_size": 2, "alternatives": 3}, {"beam_size": 4, "n_best": 4}),  # so the search is as wide
        ({"attention": True}, {"attention": MAX_WEIGHTS}),
        ({"formality": "more"}, {"formality": Formality.MORE}),
        ({"formality": "prefer_less"}, {"formality": Formality.LESS}),
        ({"formality": ""}, {"formality": None}),
        ({"glossary": {"cat": "Katze"}, "do_not_translate": ["dog"]}, {"terms": Terms((("cat", "Katze"),), ("dog",))}),
    ],
)
def test_model_options(
    native: Application, models: WordModels, fields: dict[str, Any], reaches: dict[str, Any]
) -> None:
    asked(native, q=f"One. Two. {fields}", **fields)
    (call,) = models.calls
    assert {name: getattr(call.options, name) for name in reaches} == reaches
    assert not call.texts[0].aligned


def test_long_terms_and_xml_are_checked_in_a_thread(native: Application, monkeypatch: pytest.MonkeyPatch) -> None:
    """The event loop took 450 ms for one term of 300,000 characters."""
    threads = list[bool]()

    def recorded(function: Callable[..., Any], *arguments: Any) -> Any:
        threads.append(threading.current_thread() is native._thread)
        return function(*arguments)

    for owner, name in ((module, "merged_terms"), (deepl_module, "check_xml")):
        monkeypatch.setattr(owner, name, partial(recorded, getattr(owner, name)))
    for terms in ({"glossary": {"cat": "Katze"}}, {"do_not_translate": [f"Rex {number}" for number in range(99)]}):
        asked(native, q="One.", **terms)
    long = {"q": "One.", "source": "en", "target": "de", "glossary": {"a\u0301" * 2000: "b"}}
    assert native.client.post("/translate", json=long).status_code == 400
    for text in ("<a>", "<a>" * 1000):
        native.post("/v2/translate", {"text": text, "target_lang": "DE", "tag_handling": "xml"}, 400)
    assert threads == [True, False, False, True, False]


def test_a_glossary_that_is_kept_here(native: Application) -> None:
    entries = {"name": "animals", "entries": "cat\tKatze\ndog\tHund", "entries_format": "tsv"}
    made = native.post("/v2/glossaries", entries | {"source_lang": "en", "target_lang": "de"}, 201)["glossary_id"]
    answer = asked(native, q="cat dog Rex", glossary_id=made, glossary={"cat": "Kater"})
    assert answer["translatedText"] == "Kater Hund REX"
    for unknown in ("another", "operator"):  # this service has no `page_glossary`
        assert f"no glossary {unknown}" in asked(native, 404, q="cat", glossary_id=unknown)["error"]
        fields, file = PAIR | {"glossary_id": unknown}, ("a.txt", b"cat")
        answer = native.client.post("/translate_file", data=fields, files={"file": file})
        assert f"no glossary {unknown}" in refused(answer, 404, "not_found")
    assert "glossary_id needs a source language" in asked(native, 400, **AUTO, q="cat", glossary_id=made)["error"]


def test_detect(native: Application) -> None:
    for way in ("json", "data", "params"):
        sent: dict[str, Any] = {way: {"q": "le chien"}}
        assert native.client.post("/detect", **sent).json()[0] == {"confidence": 90.0, "language": "fr"}
    assert native.post("/detect", {"q": ["the dog", "the dog"]})[0] == ENGLISH
    assert native.post("/detect", {"q": "123"}) == [{"confidence": 0.0, "language": "en"}]
    assert native.post("/detect", {}, 400)["error"] == "Invalid request: missing q parameter"


def test_lists_for_the_page(native: Application) -> None:
    assert native.client.get("/languages").json() == [
        {"code": "de", "name": "German", "native_name": "Deutsch", "targets": ["fr"]},
        {"code": "en", "name": "English", "native_name": "English", "targets": ["de", "fr"]},
        {"code": "fr", "name": "French", "native_name": "français", "targets": []},
    ]
    settings = native.client.get("/frontend/settings").json()
    assert {".txt", ".html", ".docx", ".srt"} <= set(settings.pop("supportedFilesFormat"))
    assert settings == {
        "charLimit": 5000,
        "frontendTimeout": 500,
        "apiKeys": True,
        "keyRequired": False,
        "suggestions": True,
        "filesTranslation": True,
        "language": {"source": {"code": "auto", "name": "Auto Detect"}, "target": {"code": "de", "name": "German"}},
        "glossary": [],
        "memories": [],
        "formality": ["de", "fr"],
    }


# Refusals

INVALID = "Invalid request: "
WRONG_Q = INVALID + "q must be a string or a list of strings"
REFUSALS = [
    ({"q": None}, INVALID + "missing q parameter"),
    ({"q": 5}, WRONG_Q),
    ({"q": {"a": 1}}, WRONG_Q),
    ({"q": ["a", 1, "b", None]}, WRONG_Q + "; the items at indices 1, 3 are not strings"),
    ({"source": 5}, INVALID + "source must be a valid string"),
    ({"source": ""}, INVALID + "missing source parameter"),
    ({"target": None}, INVALID + "missing target parameter"),
    ({"q": None, "source": None, "target": None}, INVALID + "missing q parameter; missing source parameter; missing t"),
    ({"format": 1, "alternatives": "many"}, INVALID + "format must be a valid string; alternatives parameter is not a"),
    ({"format": "xml"}, "xml format is not supported"),
    ({"alternatives": "many"}, INVALID + "alternatives parameter is not a number"),
    ({"alternatives": True}, INVALID + "alternatives parameter is not a number"),
    ({"alternatives": 1.5}, INVALID + "alternatives parameter is not a number; accepted: a whole number"),
    ({"alternatives": 11}, INVALID + "alternatives parameter must be <= 10"),
    ({"q": "a" * 5001}, INVALID + "request (5001) exceeds text limit (5000); accepted: at most 5000 characters"),
    ({"q": ["a"] * 1001}, INVALID + "request (1001) exceeds text limit (1000); accepted: at most 1000 texts"),
    ({"source": "zz"}, "zz is not supported; accepted: de, en, fr"),
    ({"source": "yy", "target": "zz"}, "yy is not supported; zz is not supported; accepted: de, en, fr"),
    ({"source": "auto", "target": "zz"}, "zz is not supported; accepted: de, en, fr"),
    ({"target": "auto"}, "auto is not supported; accepted: de, fr"),
    ({"source": "fr", "target": "en"}, "English (en) is not available as a target language from French (fr); accepted"),
    ({"source": "y", "target": "x" * 5000}, "y is not supported; " + "x" * 39 + "… is not supported; accepted: "),
    ({"source": "\ud800"}, "\ufffd is not supported; accepted: "),
    *(({"source": code}, f"{code} is not supported") for code in ("en-Cyrl", "zh-DE", "e", "en-u-hc-h12", "x-en")),
    ({"beam_size": 11}, INVALID + "beam_size parameter must be <= 10"),
    ({"beam_size": 0}, INVALID + "beam_size is 0; accepted: a whole number from 1"),
    ({"timeout_ms": "soon"}, INVALID + "timeout_ms is 'soon'; accepted: a whole number from 1 to 86400000"),
    ({"timeout_ms": 10**400}, INVALID + "timeout_ms is 100000000000000000...0000000000000000000; accepted: a whole n"),
    ({"memory_threshold": 0.7}, INVALID + "memory_threshold is 0.7; accepted: a whole number from 0 to 100"),
    ({"memory_threshold": [1, 2]}, INVALID + "memory_threshold is [1, 2]; accepted: a whole number from 0 to 100"),
    ({"glossary": ["a"]}, INVALID + "glossary must be an object whose values are strings"),
    ({"glossary": {"": "a"}}, INVALID + "the terms cannot be used:"),
    ({"glossary": {str(n): "a" for n in range(1001)}}, INVALID + "glossary and do_not_translate have 1001 terms"),
    ({"do_not_translate": [1]}, INVALID + "do_not_translate must be a list of strings"),
    ({"formality": "rude"}, INVALID + "formality must be"),
    ({"quality": "perhaps"}, INVALID + "quality must be true or false"),
    ({"targets": ["zz"]}, "zz is not supported; accepted: de, fr"),
    ({"q": "a" * 5000, "targets": ["fr"]}, INVALID + "request (5000) exceeds text limit (4500) for 2 targets"),
    ({"glosary": {"a": "b"}}, INVALID + "unknown parameter glosary; did you mean glossary?"),
    ({"glosary\ud800": {}}, INVALID + "unknown parameter glosary\ufffd; did you mean glossary?"),
    ({"length_penalty": 0.5, "seed": 1}, INVALID + "a request cannot set length_penalty, seed; accepted: glossar"),
    ({"stream": True, "targets": ["fr"]}, INVALID + "stream and targets cannot be used together"),
    ({"targets": ["de", "zz"]}, "zz is not supported"),
    ({"model": "other"}, "model other is not served; accepted: words-de-fr, words-en-de"),
    ({"model": "words-de-fr"}, "en is not supported; accepted: de, fr"),
    ({"model": "words-en-de", "target": "fr"}, "fr is not supported; accepted: de"),
]


@pytest.mark.parametrize(("fields", "message"), REFUSALS, ids=lambda value: str(value)[:50])
def test_wrong_requests_are_refused_at_once(
    native: Application, models: WordModels, fields: dict[str, Any], message: str
) -> None:
    content = json.dumps({**PAIR, "q": "a refused text", **fields})  # httpx does not write lone surrogates
    response = native.client.post("/translate", content=content, headers={"Content-Type": "application/json"})
    assert refused(response, 400).startswith(message)
    assert models.calls == []


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (CannotTranslate("fails on this text"), 400, "cannot_translate"),
        (Overloaded(7), 503, "overloaded"),
        (Unavailable(), 503, "unavailable"),
        (OSError("a reason"), 500, "internal_error"),
    ],
)
def test_errors_of_the_models(native: Application, error: Exception, status: int, code: str) -> None:
    native.do(lambda: native.models.errors.append(error))
    response = native.client.post("/translate", json={**PAIR, "q": f"an error {code}"})
    assert "a reason" not in refused(response, status, code)
    assert code != "overloaded" or response.headers["retry-after"] == "7"


# Deadlines and clients that leave


def test_a_deadline(native: Application, models: WordModels) -> None:
    native.do(models.opened.clear)
    begun = time.monotonic()
    response = native.client.post("/translate", json={**PAIR, "q": "late", "timeout_ms": 100})
    native.do(models.opened.set)
    assert refused(response, 504) == "The translation did not finish in time"
    assert time.monotonic() - begun >= 0.1 and models.calls[-1].cancelled


def test_every_request_has_a_deadline(native: Application, monkeypatch: pytest.MonkeyPatch) -> None:
    """It also ends work before the queue, such as look-ups in a memory."""
    translations, jobs = native.services.translations, list[Job]()

    async def noted(job: Job) -> list[Answer]:
        jobs.append(job)
        return await TranslationService.translate(translations, job)

    monkeypatch.setattr(translations, "translate", noted)
    for fields, seconds in (({}, native.settings.request_timeout_seconds), ({"timeout_ms": 5000}, 5)):
        begun = time.monotonic()
        asked(native, q=f"deadline {seconds}", **fields)
        deadline = jobs[-1].deadline
        assert deadline is not None and begun + seconds <= deadline <= time.monotonic() + seconds


@pytest.mark.parametrize("stream", [False, True])
def test_a_closed_connection_cancels_the_translation(native: Application, models: WordModels, stream: bool) -> None:
    body = json.dumps({**PAIR, "q": f"left {stream}", "stream": stream})
    kind = f"Content-Type: application/json\r\nContent-Length: {len(body)}"
    native.do(models.opened.clear)
    with socket.create_connection(("127.0.0.1", native.port)) as connection:
        connection.sendall(f"POST /translate HTTP/1.1\r\nHost: localhost\r\n{kind}\r\n\r\n{body}".encode())
        native.until(lambda: models.calls)
        assert not models.calls[0].cancelled
    native.until(lambda: models.calls[0].cancelled)
    assert len(models.calls) == 1


DEEPL = {"source_lang": "EN", "target_lang": "DE"}


@pytest.mark.parametrize("leaves", [False, True])
@pytest.mark.parametrize(
    ("path", "fields"),
    [
        ("/translate", {**PAIR, "q": "cat"}),
        ("/translate", {**PAIR, "q": "cat", "stream": True}),
        ("/translate", {**PAIR, "q": "cat", "targets": ["de"]}),
        ("/v2/translate", {**DEEPL, "text": ["cat"]}),
        ("/translate_file", PAIR),
        ("/v2/document", DEEPL),
    ],
)
def test_terms_are_awaited_until_the_deadline_or_the_end_of_the_client(
    native: Application, monkeypatch: pytest.MonkeyPatch, path: str, fields: dict[str, Any], leaves: bool
) -> None:
    begun, ended = list[bool](), list[bool]()  # whether it was cancelled

    async def terms(*_: Any) -> Terms:
        begun.append(True)
        try:
            await asyncio.sleep(5)
        finally:
            task = asyncio.current_task()
            ended.append(task is not None and task.cancelling() > 0)
        return Terms()

    monkeypatch.setattr(native.services.glossaries, "terms", terms)
    monkeypatch.setitem(native.settings.__dict__, "request_timeout_seconds", 60 if leaves else 0.2)
    fields = {**fields, "glossary_id": "any"}
    upload = {"data": fields, "files": {"file": ("a.txt", b"cat")}}
    sent: dict[str, Any] = {"json": fields} if path.endswith("/translate") else upload
    request = native.client.build_request("POST", path, **sent)
    if leaves:
        headers = "".join(f"{name}: {value}\r\n" for name, value in request.headers.items())
        with socket.create_connection(("127.0.0.1", native.port)) as connection:
            connection.sendall(f"POST {path} HTTP/1.1\r\n{headers}\r\n".encode() + request.read())
            native.until(lambda: begun)
    else:
        assert native.client.send(request).status_code == 504
    native.until(lambda: ended)
    assert ended == [True]


# Streams


def streamed(native: Application, **body: Any) -> tuple[httpx.Response, list[tuple[str, Any]]]:
    response = native.client.post("/translate", json={**PAIR, "stream": True, **body})
    blocks = [block.split("\n") for block in response.text.strip().split("\n\n")] if response.is_success else []
    return response, [(name.removeprefix("event: "), json.loads(data.removeprefix("data: "))) for name, data in blocks]


def test_a_stream_of_sentences(native: Application) -> None:
    text = "One two.\n\n- Three!"
    response, events = streamed(native, q=text, quality=True)
    assert response.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert events == [
        ("segment", {"index": 0, "source": [0, 8], "translatedText": "ONE TWO.", "quality": 50.0}),
        ("segment", {"index": 1, "source": [8, 18], "translatedText": "\n\n- THREE!", "quality": 50.0}),
        ("done", asked(native, q=text, quality=True)),
    ]


def test_a_stream_of_several_texts(native: Application) -> None:
    assert streamed(native, q=["a", "", "b"])[1] == [
        ("segment", {"text": 0, "index": 0, "source": [0, 1], "translatedText": "A"}),
        ("segment", {"text": 1, "index": 0, "source": [0, 0], "translatedText": ""}),
        ("segment", {"text": 2, "index": 0, "source": [0, 1], "translatedText": "B"}),
        ("done", {"translatedText": ["A", "", "B"]}),
    ]


def test_an_error_before_the_first_sentence_is_an_answer_then_an_event(native: Application, models: WordModels) -> None:
    native.do(lambda: models.errors.append(Overloaded(7)))
    response, _ = streamed(native, q="an error")
    assert refused(response, 503) and response.headers["retry-after"] == "7"
    response, events = streamed(native, q="One. A poison.")
    name, body = events[-1]
    assert name == "error" and body["status"] == 400 and body["request_id"] == response.headers["x-request-id"]


def test_a_stream_that_fails_or_is_left_pays_for_what_was_sent(native: Application) -> None:
    key = native.keys["rich"]
    fields: dict[str, Any] = {**PAIR, "q": "One. A poison.", "stream": True, "api_key": key}
    assert streamed(native, **fields)[1][-1][0] == "error"
    assert native.spent("rich") == len("One.")
    body = TranslateRequest(**{**fields, "q": "One two. Three four. Five."})

    async def leave() -> None:
        services = native.services
        caller = await services.access.admit(key, "")
        job = await job_for(body, "de", caller, services, time.monotonic() + 60)
        stream = stream_events(body, Request({"type": "http"}), services, caller, job)
        await anext(stream)
        await stream.aclose()

    native.wait(leave())
    assert native.spent("rich") == len("One.") + len("One two.")


# Keys


def test_a_text_costs_its_characters_for_each_target(native: Application) -> None:
    key = native.keys["rich"]
    asked(native, q=["12345", "123"], targets=["fr", "de"], api_key=key)
    files = {"file": ("a.txt", b"one\ntwo")}
    native.client.post("/translate_file", data={**PAIR, "api_key": key}, files=files)
    asked(native, 400, q="poison", api_key=key)
    streamed(native, q="il gatto", source="auto", api_key=key)
    assert native.spent("rich") == 8 * 2 + 6, "what fails, and what stays unchanged, costs nothing"


def test_keys_are_asked_for(native: Application) -> None:
    wrong = {"api_key": "mt_wrong"}
    files = {"file": ("a.txt", b"x")}
    for response in (
        native.client.post("/translate", json={**PAIR, "q": "a", **wrong}),
        native.client.post("/detect", data={"q": "a", **wrong}),
        native.client.post("/translate_file", data={**PAIR, **wrong}, files=files),
        native.client.post("/suggest", data={**PAIR, "q": "a", "s": "b", **wrong}),
        native.client.get("/memories", headers=native.headers("mt_wrong")),
    ):
        assert refused(response, 403, "invalid_key") == "Invalid API key"
    poor = native.keys["poor"]
    assert asked(native, 403, q="a" * 21, api_key=poor)["code"] == "quota_exceeded"
    asked(native, q="a" * 20, api_key=poor)
