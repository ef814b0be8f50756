"""/v2/translate, the lists of languages and /v2/usage."""

import socket
import time
from threading import Timer
from typing import Any

import deepl
import httpx
import pytest

from service.errors import MAX_PROBLEMS, CannotTranslate, DeadlineExceeded, Overloaded
from service.routes.deepl import translate
from tests.service.application import Application, single
from tests.service.doubles import WordModels

BUTTON, BUTTON_DE = '<p>A <b class="x">red</b> button.</p>', '<p>A <b class="x">RED</b> BUTTON.</p>'
XML = "<doc><par>A <keep>small</keep> dog.</par><Par>Another</Par></doc>"
XML_DE = {"text": "<doc><par>A <keep>small</keep> DOG.</par><Par>ANOTHER</Par></doc>"}
FILE, FILE_DE = 'The file <x id="1"></x> is <x id="2">%s</x>.', 'THE FILE <x id="1"></x> IS <x id="2">%s</x>.'
V1, V2 = {"tag_handling_version": "v1"}, {"tag_handling_version": "v2"}
NO_FORMALITY = "Target language PT-PT does not support formality: 'formality' is not supported for given 'target_lang'"
PLAIN = {"text": "the dog", "source_lang": "EN", "target_lang": "DE"}


def translated(raw: httpx.Client, **fields: Any) -> list[dict[str, Any]]:
    response = raw.post("/v2/translate", json=PLAIN | fields)
    assert response.status_code == 200, response.text
    translations: list[dict[str, Any]] = response.json()["translations"]
    return translations


@pytest.mark.parametrize(
    ("more", "added"),
    [
        ({"ignore_tags": ["a", "b"]}, {}),
        ({"text": BUTTON, "tag_handling": "html", "tag_handling_version": "v1"}, {"text": BUTTON_DE} | V1),
        ({"text": XML, "tag_handling": "xml", "tag_handling_version": "v1", "ignore_tags": ["keep"]}, XML_DE | V1),
        ({"text": "é" * 90_000}, {"text": "É" * 90_000}),  # more bytes than DeepL accepts, fewer characters than ours
        ({"text": FILE, "tag_handling": "xml", "ignore_tags": ["x"]}, {"text": FILE_DE} | V2),  # as Weblate asks
        ({"splitting_tags": "a,b"}, {}),
        ({"non_splitting_tags": ["a"], "outline_detection": False}, {}),
        ({"custom_instructions": [], "style_id": ""}, {}),
        ({"context": "a greeting", "preserve_formatting": True}, {}),
        ({"enable_beta_languages": True}, {}),
        ({"tag_handling": "xml"}, V2),
        ({"tag_handling_version": "v1"}, {}),
        ({"model_type": "prefer_quality_optimized"}, {"model_type_used": "quality_optimized"}),
        ({"model_type": "latency_optimized"}, {"model_type_used": "latency_optimized"}),
        ({"model_type": "words-en-de"}, {"model_type_used": "words-en-de"}),
        ({"show_billed_characters": True}, {"billed_characters": 7}),
        ({"text": "\U0001f600", "show_billed_characters": True}, {"text": "\U0001f600", "billed_characters": 1}),
    ],
    ids=lambda value: str(value)[:40],
)
def test_options_that_clients_always_send(raw: httpx.Client, more: dict[str, Any], added: dict[str, Any]) -> None:
    """DeepL's command line, for example, sends its lists of tags without `tag_handling`."""
    plain = {"detected_source_language": "EN", "text": "THE DOG"}
    assert translated(raw, **more) == [plain | added]


@pytest.mark.parametrize(
    ("fields", "texts"),
    [
        ({"text": "a\nb\n\nc", "split_sentences": "1"}, ["a\nb\n\nc"]),
        ({"text": "a\nb\n\nc", "split_sentences": "nonewlines"}, ["a b\n\nc"]),
        ({"text": "\u72ac\u3068\n  \u732b\u3002", "split_sentences": "nonewlines"}, ["\u72ac\u3068\u732b\u3002"]),
        ({"text": "<p>a <x>b</x> c</p>", "tag_handling": "xml"}, ["a b c"]),
        ({"text": "<p>a <x>b</x> c</p>", "tag_handling": "xml", "splitting_tags": "y,x"}, ["a", "b", "c"]),
        ({"text": "<p>a</p><p>b</p>", "tag_handling": "xml"}, ["a", "b"]),
        ({"text": "<p>a</p><p>b</p>", "tag_handling": "xml", "non_splitting_tags": ["p"]}, ["ab"]),
        ({"text": "<p>a <x>b</x><y>c</y></p><p>d</p>", "tag_handling": "xml", "ignore_tags": "x, y"}, ["a bc", "d"]),
        ({"text": "<p>a</p><p>b</p>", "tag_handling": "xml", "outline_detection": False}, ["ab"]),
    ],
    ids=str,
)
def test_texts_for_the_model(raw: httpx.Client, models: WordModels, fields: dict[str, Any], texts: list[str]) -> None:
    translated(raw, source_lang="EN", **fields)
    assert [text.text for call in models.calls for text in call.texts] == texts


@pytest.mark.parametrize(
    ("source", "target", "formality", "direction", "reaches"),
    [
        *(("EN", "PT-PT", formality, "en-pt", None) for formality in ("default", "prefer_less", "prefer_more")),
        *(("EN", "DE", formality, "en-de", "less") for formality in ("less", "prefer_less")),
        *(("EN", "DE", formality, "en-de", "more") for formality in ("more", "prefer_more")),
        ("EN", "DE", "default", "en-de", None),
        *(("DE", target, None, "de-en", None) for target in ("EN-GB", "EN-US", "en-us")),
        ("EN", "PT-BR", None, "en-pb", None),
        ("EN", "ZH-HANS", None, "en-zh", None),
    ],
)
def test_languages_and_formality_that_reach_the_model(
    raw: httpx.Client, models: WordModels, source: str, target: str, formality: str, direction: str, reaches: str | None
) -> None:
    translated(raw, source_lang=source, target_lang=target, formality=formality)
    assert [(str(call.options.direction), call.options.formality) for call in models.calls] == [(direction, reaches)]


def test_where_a_key_may_stand(running: Application) -> None:
    fields = PLAIN | {"auth_key": running.keys["rich"]}
    bare = running.client
    statuses = [
        bare.post("/v2/translate", data=fields).status_code,
        bare.post("/v2/translate", json=fields).status_code,
        bare.post("/v2/translate", data=fields | {"auth_key": "no"}).status_code,
        bare.post("/v2/translate", json=PLAIN).status_code,
        bare.get("/v2/usage", params={"auth_key": running.keys["rich"]}).status_code,
        bare.post("/v2/translate", json=PLAIN | {"auth_key": f" {running.keys['rich']}\n"}).status_code,
        bare.post("/v2/translate", json=fields | {"api_key": " "}).status_code,
    ]
    assert statuses == [200, 200, 403, 403, 200, 200, 200]
    answers = [bare.get(f"/v2/{path}", headers=running.headers("no")) for path in ("usage", "languages", "glossaries")]
    assert [(answer.status_code, answer.json()["message"]) for answer in answers] == [(403, "Invalid API key")] * 3


def test_a_quota_that_is_used_up_is_a_456(running: Application) -> None:
    poor = running.sdk("poor")
    poor.translate_text("x" * 15, source_lang="EN", target_lang="DE")
    with pytest.raises(deepl.QuotaExceededException, match="Quota exceeded: 15 of 20"):
        poor.translate_text("x" * 6, source_lang="EN", target_lang="DE")
    with pytest.raises(deepl.QuotaExceededException):
        poor.translate_document_upload("x" * 6, filename="a.txt", target_lang="DE")
    assert single(poor.translate_text("x" * 5, source_lang="EN", target_lang="DE")).text == "XXXXX"
    assert (poor.get_usage().character.count, poor.get_usage().character.limit) == (20, 20)
    assert not running.sdk().get_usage().any_limit_reached


@pytest.mark.parametrize(
    ("error", "status"), [(CannotTranslate("fails on this text"), 400), (Overloaded(7), 503), (DeadlineExceeded(), 504)]
)
def test_what_fails_costs_nothing(running: Application, raw: httpx.Client, error: Any, status: int) -> None:
    """The SDK repeats after a 5xx: a text that can never be translated must not get one."""
    running.do(lambda: running.models.errors.append(error))
    answer = raw.post("/v2/translate", json=PLAIN)
    assert (answer.status_code, answer.headers.get("retry-after")) == (status, "7" if status == 503 else None)
    assert running.spent("rich") == 0 and len(running.models.calls) == 1


@pytest.mark.parametrize(
    ("fields", "status", "message"),
    [
        ({"target_lang": None, "text": None}, 400, "missing target_lang parameter; missing text parameter"),
        ({"text": []}, 400, "text"),
        ({"target_lang": 3}, 400, "target_lang"),
        ({"target_lang": "TLH"}, 400, "'target_lang' not supported: 'TLH'; accepted: DE, EN-GB"),
        ({"tag_handling": "md"}, 400, "tag_handling must be 'xml' or 'html'"),
        ({"tag_handling": "xml", "tag_handling_version": "v9"}, 400, "tag_handling_version must be"),
        ({"tag_handling": "xml", "text": "<a>b"}, 400, "text 0 is not well-formed XML: mismatched tag"),
        ({"split_sentences": "2"}, 400, "split_sentences must be"),
        ({"glossary_id": "g", "source_lang": None}, 400, "source_lang is required for a glossary"),
        ({"ignore_tags": [1]}, 400, "ignore_tags"),
        ({"outline_detection": "maybe"}, 400, "outline_detection"),
        ({"formality": "rude"}, 400, "formality must be"),
        ({"model_type": "other"}, 400, "model other is not served; accepted: words-de-en, words-en-de"),
        ({"text": "x" * 100_001}, 413, "has 100001 characters"),
        ({"text": "x" * 400_000}, 413, ""),
    ],
    ids=lambda value: str(value)[:40],
)
def test_refusals(raw: httpx.Client, models: WordModels, fields: dict[str, Any], status: int, message: str) -> None:
    body = {name: value for name, value in (PLAIN | fields).items() if value is not None}
    answer = raw.post("/v2/translate", json=body)
    assert (answer.status_code, message in answer.json()["message"]) == (status, True), answer.text
    assert isinstance(answer.json()["detail"], str), "the SDK adds it to a string"
    assert models.calls == []


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        *(({"target_lang": "PT-PT", "formality": formality}, NO_FORMALITY) for formality in ("less", "more")),
        ({"style_id": "x"}, "Invalid request: style_id is not supported; leave it out"),
        ({"custom_instructions": ["x"]}, "Invalid request: custom_instructions is not supported; leave it out"),
    ],
    ids=str,
)
def test_words_of_a_refusal(raw: httpx.Client, fields: dict[str, Any], error: str) -> None:
    """DeepL's clients and their tests look for them."""
    answer = raw.post("/v2/translate", json=PLAIN | fields)
    assert (answer.status_code, answer.json()["error"]) == (400, error)


def test_the_first_problems_are_listed(raw: httpx.Client) -> None:
    answer = raw.post("/v2/translate", json=PLAIN | {"text": ["<a>"] * 40, "tag_handling": "xml"})
    assert (answer.status_code, answer.json()["message"].count("is not well-formed XML")) == (400, MAX_PROBLEMS)


def test_who_asks_again_gets_the_same_work(
    running: Application, raw: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The SDK gives up reading after 10 s and repeats its request."""
    monkeypatch.setattr(translate, "CLIENT_SECONDS", 0.1)
    models, request = running.models, raw.build_request("POST", "/v2/translate", json=PLAIN)
    head = "".join(f"{name}: {value}\r\n" for name, value in request.headers.items())
    running.do(models.opened.clear)
    with socket.create_connection(("127.0.0.1", running.port)) as first:
        first.sendall(f"POST /v2/translate HTTP/1.1\r\n{head}\r\n".encode() + request.content)
        running.until(lambda: models.calls)
        time.sleep(0.2)
    opening = Timer(0.5, lambda: running.do(models.opened.set))
    opening.start()
    assert raw.post("/v2/translate", json=PLAIN).json()["translations"][0]["text"] == "THE DOG"
    opening.join()
    assert [call.cancelled for call in models.calls] == [False]


# Languages


def test_lists_come_by_post_and_with_the_type_in_the_body_of_a_get(raw: httpx.Client) -> None:
    listed = raw.get("/v2/languages?type=target").json()
    assert [one["language"] for one in listed if one["supports_formality"]] == ["DE"]
    assert raw.post("/v2/languages", data={"type": "target"}).json() == listed
    kind = {"Content-Type": "application/x-www-form-urlencoded"}
    assert raw.request("GET", "/v2/languages", content=b"type=target", headers=kind).json() == listed
    assert raw.post("/v2/usage").json() == raw.get("/v2/usage").json()


def test_languages_of_a_resource(raw: httpx.Client) -> None:
    def languages(resource: str) -> dict[str, tuple[str, bool, bool, list[str]]]:
        listed = raw.get(f"/v3/languages?resource={resource}").json()
        assert {each["status"] for each in listed} <= {"stable"}
        return {
            each["lang"]: (each["name"], each["usable_as_source"], each["usable_as_target"], [*each["features"]])
            for each in listed
        }

    text = languages("translate_text")
    both, target = ["tag_handling", "glossary", "auto_detection"], ["tag_handling", "glossary"]
    assert text["de"] == ("German", True, True, ["tag_handling", "glossary", "formality", "auto_detection"])
    assert text["en"] == ("English", True, False, both)
    assert text["en-GB"] == ("English (British)", False, True, target)
    assert list(text) == ["de", "en", "en-GB", "en-US", "fr", "pt-BR", "pt-PT", "zh"]
    assert languages("translate_document")["en-GB"] == ("English (British)", False, True, ["glossary"])
    assert languages("glossary")["fr"] == ("French", True, False, [])
    memory = languages("translation_memory")
    assert memory == languages("translation_memory&include=beta&include=external")
    assert memory == languages("translation_memory&include=beta,external")
    assert memory["fr"] == ("French", True, False, []) and memory["de"] == ("German", True, True, [])
    assert languages("write") == languages("voice") == {}
    for query in ("", "?resource=speech"):
        answer = raw.get(f"/v3/languages{query}")
        assert answer.status_code == 400 and "resource" in answer.json()["message"]
