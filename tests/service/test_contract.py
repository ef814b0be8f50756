"""LibreTranslate's contract, over HTTP."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from mt import Translator
from tests.conftest import DEVICE

DOG = "The dog sees the cat."
CAT = "The cat follows the dog."


@pytest.fixture(scope="module")
def translator(several_directions: Path) -> Translator:
    return Translator.load(several_directions, device=DEVICE)


def asked(client: httpx.Client, **body: Any) -> Any:
    response = client.post("/translate", json={"source": "en", "target": "de", **body})
    assert response.status_code == 200, response.text
    return response.json()


@pytest.mark.parametrize(
    ("accept", "media_type"),
    [
        ("*/*", "application/problem+json"),
        ("application/problem+json", "application/problem+json"),
        ("application/json, text/plain, */*", "application/json"),
    ],
)
def test_an_error_has_the_media_type_that_the_client_accepts(
    client: httpx.Client, accept: str, media_type: str
) -> None:
    response = client.post("/translate", json={}, headers={"Accept": accept})
    assert (response.status_code, response.headers["content-type"]) == (400, media_type)


def refused(response: httpx.Response, status: int, code: str) -> str:
    """The message of an error, after a look at the whole of it."""
    body = response.json()
    assert response.status_code == status == body["status"]
    assert response.headers["content-type"] == "application/problem+json"
    assert list(body) == ["type", "title", "status", "detail", "instance", "code", "request_id", "error", "message"]
    assert body["detail"] == body["message"]
    assert body["message"] in (
        body["error"],
        f"{body['error']}; accepted: {body['message'].partition('; accepted: ')[2]}",
    )
    assert body["code"] == code
    assert body["request_id"] == response.headers["x-request-id"]
    assert body["instance"] == response.request.url.raw_path.decode().partition("?")[0]
    return str(body["message"])


def invalid(client: httpx.Client, **body: Any) -> str:
    return refused(client.post("/translate", json=body), 400, "invalid_request")


def test_a_string_for_a_string(client: httpx.Client, translator: Translator) -> None:
    expected = translator.translate_many([DOG], source="en", target="de")[0].text
    assert asked(client, q=DOG) == {"translatedText": expected}


def test_a_list_for_a_list(client: httpx.Client, translator: Translator) -> None:
    expected = [found.text for found in translator.translate_many([DOG, CAT], source="en", target="fr")]
    assert asked(client, q=[DOG, CAT], target="fr") == {"translatedText": expected}
    assert asked(client, q=[DOG], target="fr") == {"translatedText": expected[:1]}
    assert asked(client, q=[]) == {"translatedText": []}


def test_alternatives(client: httpx.Client, translator: Translator) -> None:
    options = replace(translator.options, beam_size=4, n_best=4)
    one, two = translator.translate_many([DOG, CAT], source="en", target="de", options=options)
    ranked = [dict.fromkeys(alternative.text for alternative in found.alternatives) for found in (one, two)]
    expected = [list(texts)[1:] for texts in ranked]
    assert asked(client, q=DOG, alternatives=3) == {"translatedText": one.text, "alternatives": expected[0]}
    assert asked(client, q=[DOG, CAT], alternatives=3)["alternatives"] == expected
    assert asked(client, q="", alternatives=3) == {"translatedText": "", "alternatives": []}


@pytest.mark.parametrize("blank", ["", " ", "\n", "\r\n\r\n", " \t\n ", "\u2028"])
def test_nothing_stays_nothing(client: httpx.Client, blank: str) -> None:
    assert asked(client, q=blank) == {"translatedText": blank}
    assert asked(client, q=[blank, blank]) == {"translatedText": [blank, blank]}


@pytest.mark.parametrize("line_break", ["\n", "\r\n", "\r", "\n\n", "\n \n", "\u2029"])
def test_each_line_by_itself_and_line_breaks_as_they_were(client: httpx.Client, line_break: str) -> None:
    dog, cat = asked(client, q=[DOG, CAT])["translatedText"]
    text = f"{line_break}  {DOG}{line_break}{CAT} {line_break}"
    assert asked(client, q=text)["translatedText"] == f"{line_break}  {dog}{line_break}{cat} {line_break}"


def test_alternatives_of_several_lines(client: httpx.Client) -> None:
    found = asked(client, q=f"{DOG}\n\n{CAT}", alternatives=2)
    assert all(text.count("\n") == 2 for text in (found["translatedText"], *found["alternatives"]))
    assert found["translatedText"] not in found["alternatives"]


def test_auto(client: httpx.Client) -> None:
    found = asked(client, q=DOG, source="auto", target="fr")
    told = found.pop("detectedLanguage")
    assert found == asked(client, q=DOG, target="fr")
    assert told["language"] == "en" and 90 < told["confidence"] <= 100
    found = asked(client, q=[DOG, ""], source="auto")
    assert [each["language"] for each in found["detectedLanguage"]] == ["en", "en"]
    assert found["translatedText"] == asked(client, q=[DOG, ""])["translatedText"]


def test_a_text_in_the_target_language_comes_back_as_it_is(client: httpx.Client) -> None:
    for source in ("auto", "en"):
        assert asked(client, q=DOG, source=source, target="en")["translatedText"] == DOG


def test_unknown_fields_are_ignored(client: httpx.Client) -> None:
    assert asked(client, q=DOG, api_key="", format="text", alternatives=0, frontend=True) == asked(client, q=DOG)


def test_languages(client: httpx.Client) -> None:
    assert client.get("/languages").json() == [
        {"code": "de", "name": "German", "native_name": "Deutsch", "targets": []},
        {"code": "en", "name": "English", "native_name": "English", "targets": ["de", "fr"]},
        {"code": "fr", "name": "French", "native_name": "français", "targets": ["de"]},
    ]


def test_detect_takes_a_list(client: httpx.Client) -> None:
    text = "The dog sleeps in the house."
    assert client.post("/detect", json={"q": text}).json()[0]["language"] == "en"
    assert client.post("/detect", json={"q": [text, text]}).json()[0]["language"] == "en"


def test_a_negative_number_of_alternatives_is_none(client: httpx.Client) -> None:
    assert asked(client, q=DOG, alternatives=-1) == asked(client, q=DOG)


def test_models(client: httpx.Client) -> None:
    (model,) = client.get("/models").json()
    facts = ["name", "version", "about", "licence", "scores", "size", "loaded"]
    assert list(model) == [*facts, "sources", "targets", "pairs"]
    assert model["size"] > 1000 and model["loaded"] is True
    assert (model["sources"], model["targets"]) == (["en", "fr"], ["de", "fr"])
    assert sorted(model["pairs"]) == ["en-de", "en-fr", "fr-de"]
    assert model["name"] and model["version"]


def test_health_and_the_front_door(client: httpx.Client) -> None:
    assert client.get("/health").json() == {"status": "ok"}
    assert client.get("/").json()["documentation"] == "/openapi.json"
    docs = client.get("/docs").text
    assert "POST /v2/translate" in docs and "beam_size" in docs and "http" not in docs.replace("http request", "")


@pytest.mark.parametrize(
    ("source", "target", "message"),
    [
        ("zz", "de", "zz is not supported"),
        ("en", "zz", "zz is not supported"),
        ("yy", "zz", "yy is not supported; zz is not supported"),
        ("en", "auto", "auto is not supported"),
        ("de", "fr", "French (fr) is not available as a target language from German (de)"),
        ("fr", "en", "English (en) is not available as a target language from French (fr)"),
        ("auto", "zz", "zz is not supported"),
        ("y", "x" * 5000, "y is not supported; " + "x" * 39 + "… is not supported"),
        ("\ud800", "de", "\ufffd is not supported"),
    ],
)
def test_unsupported_languages(client: httpx.Client, source: str, target: str, message: str) -> None:
    body = json.dumps({"q": DOG, "source": source, "target": target})
    response = client.post("/translate", content=body, headers={"Content-Type": "application/json"})
    problem, _, accepted = refused(response, 400, "unsupported_language").partition("; accepted: ")
    assert problem == message and accepted


def test_what_is_missing_is_named_all_at_once(client: httpx.Client) -> None:
    assert invalid(client, source="en", target="de") == "Invalid request: missing q parameter"
    assert invalid(client, q=DOG, source="en") == "Invalid request: missing target parameter"
    assert invalid(client) == (
        "Invalid request: missing q parameter; missing source parameter; missing target parameter"
    )


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("q", 5, "q must be a string or a list of strings"),
        ("q", None, "missing q parameter"),
        ("q", {"a": 1}, "q must be a string or a list of strings"),
        (
            "q",
            ["a", 1, "b", None],
            "q must be a string or a list of strings; the items at indices 1, 3 are not strings",
        ),
        ("source", 5, "source must be a valid string"),
        ("source", "", "missing source parameter"),
        ("target", None, "missing target parameter"),
        ("format", 1, "format must be a valid string"),
        ("alternatives", "many", "alternatives parameter is not a number"),
        ("alternatives", True, "alternatives parameter is not a number"),
        ("alternatives", 11, "alternatives parameter must be <= 10"),
    ],
)
def test_a_field_of_the_wrong_kind_is_named(client: httpx.Client, field: str, value: Any, message: str) -> None:
    body = {"q": DOG, "source": "en", "target": "de", field: value}
    assert invalid(client, **body) == f"Invalid request: {message}"


def test_wrong_fields_are_named_all_at_once(client: httpx.Client) -> None:
    said = invalid(client, q=5, source="en", format=1, alternatives="many")
    assert all(f"{field} " in said or f" {field}" in said for field in ("q", "target", "format", "alternatives"))


@pytest.mark.parametrize(
    ("body", "kind", "message"),
    [
        (b"", "application/json", "missing q parameter; missing source parameter; missing target parameter"),
        (b'{"q": "a"}', "text/plain", "the body must be a JSON object, sent with Content-Type: application/json"),
        (b'{"q": ', "application/json", "the body is not JSON: Expecting value at character 6"),
        (b'{"q": "\xff"}', "application/json", "the body is not JSON in UTF-8 at byte 7"),
        (b"[" * 10_000, "application/json", "the body is not JSON: it is nested too deeply"),
    ],
)
def test_bodies_that_are_no_json_object(client: httpx.Client, body: bytes, kind: str, message: str) -> None:
    response = client.post("/translate", content=body, headers={"Content-Type": kind})
    assert refused(response, 400, "invalid_request").startswith(f"Invalid request: {message}")


def test_other_paths_and_methods(client: httpx.Client) -> None:
    assert refused(client.get("/nothing/here%20at%20all"), 404, "not_found") == "Not Found"
    response = client.get("/translate")
    assert refused(response, 405, "method_not_allowed") == "Method Not Allowed"
    assert response.headers["allow"] == "POST, OPTIONS"


def test_text_limit(client: httpx.Client) -> None:
    said = invalid(client, q=["a" * 60_000, "b" * 60_000], source="en", target="de")
    assert said == "Invalid request: request (120000) exceeds text limit (100000)"


@pytest.mark.parametrize("chunked", [False, True])
def test_body_limit(client: httpx.Client, chunked: bool) -> None:
    body = b'{"q": "' + b"a" * 1_000_000 + b'"}'
    content = iter([body[:500_000], body[500_000:]]) if chunked else body
    response = client.post("/translate", content=content)
    assert refused(response, 413, "body_too_large") == "Invalid request: the body exceeds the limit of 1000000 bytes"


def test_sentences_are_translated_one_by_one(client: httpx.Client) -> None:
    dog, cat = asked(client, q=[DOG, CAT])["translatedText"]
    assert asked(client, q=f"{DOG}  {CAT} \n{DOG}")["translatedText"] == f"{dog}  {cat} \n{dog}"


def test_a_sentence_that_is_too_long_for_the_model_is_split(client: httpx.Client) -> None:
    half = "the dog " * 150
    expected = asked(client, q=[half.strip(), half.strip()])["translatedText"]
    assert asked(client, q=(half + half).strip())["translatedText"] == " ".join(expected)


def test_request_ids(client: httpx.Client) -> None:
    one, two = (client.get("/health").headers["x-request-id"] for _ in range(2))
    assert one != two
    assert client.get("/health", headers={"X-Request-ID": "a-1"}).headers["x-request-id"] == "a-1"
    for bad in ("a b", "x" * 65, "é"):
        assert client.get("/health", headers={b"X-Request-ID": bad.encode()}).headers["x-request-id"] != bad


def test_openapi_tells_the_truth(client: httpx.Client) -> None:
    document = client.get("/openapi.json").json()
    assert client.get("/spec").json() == document
    translate = document["paths"]["/translate"]["post"]
    answers = translate["responses"]
    assert set(answers) == {"200", "4XX", "5XX"}
    assert all(
        list(answers[status]["content"]) == ["application/problem+json", "application/json"]
        for status in answers
        if status != "200"
    )
    assert set(answers["200"]["content"]) == {"application/json", "text/event-stream"}
    bodies = translate["requestBody"]["content"]
    assert set(bodies) == {"application/json", "application/x-www-form-urlencoded", "multipart/form-data"}
    assert {body["schema"]["$ref"] for body in bodies.values()} == {"#/components/schemas/TranslateRequest"}
    request = document["components"]["schemas"]["TranslateRequest"]
    assert request["required"] == ["q", "source"] and request["properties"]["format"]["enum"]
    for example in request["examples"]:
        assert client.post("/translate", json=example).status_code == 200
    detect = document["components"]["schemas"]["DetectRequest"]
    assert client.post("/detect", json=detect["examples"][0]).status_code == 200
    text = json.dumps(document)
    assert "HTTPValidationError" not in text
    for name in re.findall(r'"#/components/schemas/([^"]+)"', text):
        assert name in document["components"]["schemas"]


POISONS = {
    "lone surrogates": "\ud800 a \udfff",
    "halves of an emoji": "\ud83d\ude00 \ude00\ud83d",
    "NUL": "a\0b\0",
    "byte order mark": "\ufeffa",
    "U+2028": "a\u2028b",
    "right to left": "\u202ea\u200fb\u2066",
    "family": "👩‍👩‍👧‍👦" * 5,
    "combining": "e" + "\u0301" * 10_000,
    "one token": "a" * 99_999,
    "spaces": " " * 99_999,
    "newlines": "\n" * 99_999,
    "space marks": "▁▁ ▁",
    "tags": "<2fr> </s> <s> <pad> <0x0A> <unk>",
    "private": "\ue000\uf8ff\U0010ffff\ufffe",
    "controls": "".join(map(chr, range(32))) + "\x7f\x85",
    "format strings": "%s %n {0} {{ }} ${x} \\x",
}


@pytest.mark.parametrize("text", POISONS.values(), ids=POISONS)
def test_poisonous_text_gets_an_answer(client: httpx.Client, text: str) -> None:
    for q in (text, [text, DOG]):
        body = json.dumps({"q": q, "source": "en", "target": "de"})
        response = client.post("/translate", content=body, headers={"Content-Type": "application/json"})
        assert response.status_code in (200, 400), response.text
        assert len(response.content.decode("utf-8")) < 500_000
    assert asked(client, q=DOG)["translatedText"]
