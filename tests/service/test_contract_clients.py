"""Requests and answers of the test suites of LibreTranslate and of DeepL's clients, and of public reports."""

import gzip
import json
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import httpx
import pytest

from service.app import create_app
from service.settings import Settings
from tests.service.test_contract import DOG, asked, refused

SOURCE = {"source": "en", "target": "de"}
MEMORY_LANGUAGES = [("de", False, True), ("en", True, False), ("fr", True, True)]


@pytest.mark.parametrize(
    ("path", "body", "expected"),
    [
        ("/translate", {"q": "Hello", "source": "en", "target": "zz"}, {"error": "zz is not supported"}),
        ("/translate", {"q": "Hello", "source": "zz", "target": "de"}, {"error": "zz is not supported"}),
        ("/translate", {"q": "a", **SOURCE, "format": "xml"}, {"error": "xml format is not supported"}),
        ("/translate", SOURCE, {"error": "Invalid request: missing q parameter"}),
        ("/translate", ["not", "a", "dict"], {"error": "Invalid JSON format"}),
        (
            "/translate",
            {"q": "Hello", **SOURCE, "alternatives": "abc"},
            {"error": "Invalid request: alternatives parameter is not a number"},
        ),
        (
            "/translate",
            {"q": "Hello", "source": "de", "target": "fr"},
            {
                "error": "French (fr) is not available as a target language from German (de)",
                "detail": "French (fr) is not available as a target language from German (de); accepted: none",
            },
        ),
        (
            "/v2/translate",
            {"text": ["Hello"], "target_lang": "DE", "custom_instructions": ["Be kind."], "style_id": "x"},
            {
                "message": "Invalid request: style_id is not supported; leave it out; "
                "custom_instructions is not supported; leave it out"
            },
        ),
    ],
)
def test_clients_compare_these_messages(client: httpx.Client, path: str, body: Any, expected: dict[str, str]) -> None:
    """Requests of the test suites of LibreTranslate and of DeepL's clients, and of their issues."""
    response = client.post(path, json=body)
    answer = response.json()
    assert (response.status_code, {name: answer[name] for name in expected}) == (400, expected)


@pytest.mark.parametrize(
    ("more", "added"),
    [
        ({"ignore_tags": ["a", "b"]}, {}),
        ({"splitting_tags": "a,b"}, {}),
        ({"non_splitting_tags": ["a"], "outline_detection": False}, {}),
        ({"custom_instructions": [], "style_id": ""}, {}),
        ({"tag_handling": "xml"}, {"tag_handling_version": "v2"}),
        ({"tag_handling": "html", "tag_handling_version": "v1"}, {"tag_handling_version": "v1"}),
        ({"tag_handling_version": "v1"}, {}),
        ({"model_type": "prefer_quality_optimized"}, {"model_type_used": "quality_optimized"}),
        ({"show_billed_characters": True}, {"billed_characters": len(DOG)}),
    ],
)
def test_options_that_clients_always_send(client: httpx.Client, more: dict[str, Any], added: dict[str, Any]) -> None:
    """DeepL's command line, for example, sends its lists of tags without `tag_handling`."""
    body = {"text": [DOG], "source_lang": "EN", "target_lang": "DE"}
    (plain,) = client.post("/v2/translate", json=body).json()["translations"]
    (answer,) = client.post("/v2/translate", json=body | more).json()["translations"]
    assert set(plain) == {"detected_source_language", "text"}
    assert answer == plain | added


@pytest.mark.parametrize("include", ["", "&include=beta&include=external", "&include=beta,external"])
def test_languages_of_a_resource(client: httpx.Client, include: str) -> None:
    listed = client.get(f"/v3/languages?resource=translation_memory{include}").json()
    shown = [(one["lang"], one["usable_as_source"], one["usable_as_target"], one["features"]) for one in listed]
    assert shown == [(*language, {}) for language in MEMORY_LANGUAGES]


@pytest.mark.parametrize(
    ("path", "methods"),
    [
        ("/translate", "POST, OPTIONS"),
        ("/languages", "GET, HEAD, OPTIONS"),
        ("/memories", "GET, PUT, HEAD, OPTIONS"),
        ("/memories/x", "GET, DELETE, HEAD, OPTIONS"),
        ("/v2/glossaries", "GET, POST, HEAD, OPTIONS"),
        ("/v2/languages", "GET, POST, HEAD, OPTIONS"),
        ("/v3/glossaries", "GET, POST, HEAD, OPTIONS"),
        ("/v3/glossaries/x", "GET, PATCH, DELETE, HEAD, OPTIONS"),
        ("/v3/glossaries/x/dictionaries", "PUT, DELETE, OPTIONS"),
        ("/v3/translation_memories/x", "GET, DELETE, HEAD, OPTIONS"),
        ("/", "GET, HEAD, OPTIONS"),
    ],
)
def test_allow_lists_all_methods_of_a_path(client: httpx.Client, path: str, methods: str) -> None:
    options, trace, head = (client.request(method, path) for method in ("OPTIONS", "TRACE", "HEAD"))
    assert (options.status_code, options.headers["allow"], options.content) == (204, methods, b"")
    assert (trace.status_code, trace.headers["allow"]) == (405, methods)
    assert head.content == b"" and (head.headers.get("allow") == methods) == ("HEAD" not in methods)


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("/v2/write/rephrase", "Rephrasing and correction"),
        ("/v2/write/correct", "Rephrasing and correction"),
        ("/v3/style_rules", "Style rules"),
        ("/v3/style_rules/x/custom_instructions/y", "Style rules"),
        ("/v1/quality-evaluation", "The evaluation of given translations"),
        ("/v1/quality-evaluation/x", "The evaluation of given translations"),
        ("/v2/admin/developer-keys", "The administration of keys"),
        ("/v2/admin/analytics", "The administration of keys"),
        ("/v3/voice/realtime", "Voice"),
        ("/v1/jobs/voice/translate", "Voice"),
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE"])
def test_what_is_not_offered_says_why(client: httpx.Client, method: str, path: str, reason: str) -> None:
    assert refused(client.request(method, path), 404, "not_found").startswith(reason)


FORM = "application/x-www-form-urlencoded"
PART = 'multipart/form-data; boundary="x"'


def part(name: str, value: bytes) -> bytes:
    return f'--x\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n'.encode() + value + b"\r\n--x--\r\n"


@pytest.mark.parametrize(
    ("kind", "body", "query", "problem"),
    [
        (FORM, b"q=Das M\xe4dchen&source=en&target=de", "", "q is not text in UTF-8 at byte 5"),
        (FORM, b"q=Das+M%E4dchen&source=en&target=de", "", "q is not text in UTF-8 at byte 5"),
        (FORM, b"source=en&target=de&q=%93quoted%94", "", "q is not text in UTF-8 at byte 0"),
        (FORM, b"q=%ED%A0%80&source=en", "", "q is not text in UTF-8 at byte 0"),
        (FORM, b"q=" + "ä".encode() * 9000 + b"\xc3&source=en", "", "q is not text in UTF-8 at byte 18000"),
        (FORM, b"q=a&%FF=b", "", "the name of a field is not text in UTF-8 at byte 0"),
        (FORM, "q=日本".encode("shift_jis"), "", "q is not text in UTF-8 at byte 0"),
        (FORM, "q=Москва".encode("cp1251"), "", "q is not text in UTF-8 at byte 0"),
        (PART, part("q", b"caf\xe9"), "", "q is not text in UTF-8 at byte 3"),
        (PART, part("q", "中文".encode("gb18030")), "", "q is not text in UTF-8 at byte 0"),
        ("", b"", "?q=caf%E9&source=en&target=de", "q is not text in UTF-8 at byte 3"),
    ],
)
def test_forms_and_queries_are_in_utf_8(client: httpx.Client, kind: str, body: bytes, query: str, problem: str) -> None:
    for path in ("/translate", "/detect", "/v2/translate"):
        response = client.post(path + query, content=body, headers={"Content-Type": kind} if kind else {})
        assert refused(response, 400, "invalid_request") == f"Invalid request: {problem}"


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "zstd", "GZIP", "identity, gzip"])
def test_a_compressed_body_is_unsupported(client: httpx.Client, coding: str) -> None:
    content = gzip.compress(json.dumps({"q": DOG, **SOURCE}).encode())
    headers = {"Content-Type": "application/json", "Content-Encoding": coding}
    response = client.post("/translate", content=content, headers=headers)
    message = f"Invalid request: the Content-Encoding {coding.lower()} is not supported; accepted: a body as it is"
    assert refused(response, 415, "unsupported_encoding") == message
    assert response.headers["accept-encoding"] == "identity"
    headers["Content-Encoding"] = "identity"
    plain = client.post("/translate", content=gzip.decompress(content), headers=headers)
    assert plain.json() == asked(client, q=DOG)


@pytest.mark.parametrize("path", ["//translate", "/translate/", "///translate//", "/translate//"])
def test_slashes_are_merged(client: httpx.Client, path: str) -> None:
    response = client.post(str(client.base_url).rstrip("/") + path, json={"q": DOG, **SOURCE})
    assert response.json() == asked(client, q=DOG)


@pytest.mark.parametrize("path", ["/languages", "/v2/usage", "/web/style/docs.css", "/docs", "/"])
def test_slashes_of_other_paths_are_merged(client: httpx.Client, path: str) -> None:
    address, answer = str(client.base_url).rstrip("/"), client.get(path)
    assert answer.status_code == 200
    for written in (path + "/", "/" + path, path.replace("/", "//")):
        response = client.get(address + written)
        assert (response.status_code, response.content) == (200, answer.content)


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("en-US", "de-AT"),
        ("en_US", "de_DE"),
        ("EN", "DE"),
        ("EN-GB", "de-CH"),
        ("eng", "deu"),
        ("en-Latn-GB", "de-Latn"),
        ("en-029", "ger"),
        ("en-AU", "de-DE-1996"),
        (" en", "de "),
    ],
)
def test_codes_with_regions_name_a_language(client: httpx.Client, source: str, target: str) -> None:
    assert asked(client, q=DOG, source=source, target=target) == asked(client, q=DOG)


@pytest.mark.parametrize("code", ["en-Cyrl", "english", "e", "en-u-hc-h12", "x-en", "zh-DE"])
def test_other_codes_name_none(client: httpx.Client, code: str) -> None:
    body = {"q": DOG, "source": code, "target": "de"}
    assert client.post("/translate", json=body).json()["error"] == f"{code} is not supported"


def test_a_whole_number_may_have_a_fraction(client: httpx.Client) -> None:
    """JSON Schema, and JSON of JavaScript and PHP, do not tell 1.0 from 1."""
    assert asked(client, q=DOG, alternatives=1.0) == asked(client, q=DOG, alternatives=1)
    refusal = client.post("/translate", json={"q": DOG, **SOURCE, "alternatives": 1.5})
    assert refused(refusal, 400, "invalid_request") == "Invalid request: alternatives parameter is not a number"


@pytest.mark.parametrize(("setting", "security"), [("false", [{}, {"ApiKey": []}]), ("true", [{"ApiKey": []}])])
def test_the_document_states_whether_a_key_is_required(setting: str, security: list[dict[str, list[str]]]) -> None:
    settings = Settings(model=(Path("unused"),), database=Path("keys"), require_key=setting == "true")
    paths = create_app(settings, MagicMock(), MagicMock()).openapi()["paths"]
    assert paths["/translate"]["post"]["security"] == paths["/v2/usage"]["get"]["security"] == security
    assert paths["/metrics"]["get"]["security"] == [{}, {"Operator": []}]
    assert paths["/admin/reload"]["post"]["security"] == [{"Operator": []}]


@pytest.mark.parametrize("auto", ["AUTO", "Auto"])
def test_auto_in_any_case(client: httpx.Client, auto: str) -> None:
    assert asked(client, q=DOG, source=auto) == asked(client, q=DOG, source="auto")
