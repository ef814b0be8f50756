"""What all routes have in common: bodies, paths, methods, headers, errors and the OpenAPI document."""

import gzip
import json
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import cast

import pytest

from service.access.database import Database
from service.app import create_app
from service.errors import ServiceError
from service.settings import Settings
from service.workers.fleet import Fleet
from tests.service.application import Application
from tests.service.doubles import WordModels
from tests.service.routes.test_translate import FORM, PAIR, refused

JSON = "application/json"
PART = 'multipart/form-data; boundary="x"'
MISSING = "missing q parameter; missing source parameter; missing target parameter"


def part(name: str, value: bytes) -> bytes:
    return f'--x\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n'.encode() + value + b"\r\n--x--\r\n"


@pytest.mark.parametrize(
    ("kind", "body", "problem"),
    [
        (JSON, b"", MISSING),
        ("text/plain", b'{"q": "a"}', "the body must be a JSON object, sent with Content-Type: application/json"),
        (JSON, b'{"q": ', "the body is not JSON: Expecting value at character 6"),
        (JSON, b'{"q": "\xff"}', "the body is not JSON in UTF-8 at byte 7"),
        (JSON, '{"q": "a"}'.encode("utf-16"), "the body is not JSON in UTF-8 at byte 0"),
        (JSON, '{"q": "a"}'.encode("utf-32-be"), "the body is not JSON: "),
        (JSON, b"\x0b", "the body is not JSON: "),
        (JSON, b"[" * 10_000, "the body is not JSON: it is nested too deeply"),
        (JSON, b'{"n": ' + b"9" * 5000 + b"}", "the body is not JSON"),
        ("multipart/form-data", b"--x", ""),
        (PART, b"no part", ""),
        (PART, b'--x\r\nContent-Disposition: form-data; name="q"\r\n\r\n' + b"a" * 99, ""),
        (FORM, b"%zz=%ff&q&&==", ""),
        (FORM, b' {"q": "a", "source": "en", "target": "de"}', ""),
        (FORM, b"q=Das M\xe4dchen&source=en&target=de", "q is not text in UTF-8 at byte 5"),
        (FORM, b"source=en&target=de&q=%93quoted%94", "q is not text in UTF-8 at byte 0"),
        (FORM, b"q=%ED%A0%80&source=en", "q is not text in UTF-8 at byte 0"),
        (FORM, b"q=" + "ä".encode() * 9000 + b"\xc3&source=en", "q is not text in UTF-8 at byte 18000"),
        (FORM, b"q=a&%FF=b", "the name of a field is not text in UTF-8 at byte 0"),
        (PART, part("q", b"caf\xe9"), "q is not text in UTF-8 at byte 3"),
    ],
)
def test_bodies_that_cannot_be_read(native: Application, kind: str, body: bytes, problem: str) -> None:
    for path in ("/translate", "/detect", "/v2/translate"):
        response = native.client.post(path, content=body, headers={"Content-Type": kind})
        if path == "/translate":
            assert refused(response, 400, "invalid_request").startswith(f"Invalid request: {problem}")
        assert response.status_code == 400
        assert "UTF-8" not in problem or problem in response.json()["message"]


def test_a_query_is_in_utf_8(native: Application) -> None:
    response = native.client.post("/translate?q=caf%E9&source=en&target=de")
    assert refused(response, 400, "invalid_request") == "Invalid request: q is not text in UTF-8 at byte 3"


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "zstd", "GZIP", "identity, gzip"])
def test_a_compressed_body_is_unsupported(native: Application, coding: str) -> None:
    content = gzip.compress(json.dumps({"q": "a", **PAIR}).encode())
    headers = {"Content-Type": JSON, "Content-Encoding": coding}
    response = native.client.post("/translate", content=content, headers=headers)
    message = f"Invalid request: the Content-Encoding {coding.lower()} is not supported; accepted: a body as it is"
    assert refused(response, 415, "unsupported_encoding") == message
    assert response.headers["accept-encoding"] == "identity"
    headers["Content-Encoding"] = "identity"
    plain = native.client.post("/translate", content=gzip.decompress(content), headers=headers)
    assert plain.json() == {"translatedText": "A"}


@pytest.mark.parametrize(
    ("accept", "media_type"),
    [
        ("*/*", "application/problem+json"),
        ("application/problem+json", "application/problem+json"),
        ("application/json, text/plain, */*", "application/json"),
    ],
)
def test_an_error_has_the_media_type_that_the_client_accepts(native: Application, accept: str, media_type: str) -> None:
    response = native.client.post("/translate", json={}, headers={"Accept": accept})
    assert (response.status_code, response.headers["content-type"]) == (400, media_type)


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (["not", "a", "dict"], "Invalid JSON format"),
        (PAIR, "Invalid request: missing q parameter"),
        (PAIR | {"q": "a", "source": "zz"}, "zz is not supported"),
        (PAIR | {"q": "a", "target": "zz"}, "zz is not supported"),
        (PAIR | {"q": "a", "format": "xml"}, "xml format is not supported"),
        (PAIR | {"q": "a", "alternatives": "abc"}, "Invalid request: alternatives parameter is not a number"),
    ],
    ids=str,
)
def test_refusals_in_the_words_of_libretranslate(native: Application, body: object, error: str) -> None:
    assert native.post("/translate", body, 400)["error"] == error


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
def test_allow_lists_all_methods_of_a_path(native: Application, path: str, methods: str) -> None:
    options, trace, head = (native.client.request(method, path) for method in ("OPTIONS", "TRACE", "HEAD"))
    assert (options.status_code, options.headers["allow"], options.content) == (204, methods, b"")
    assert refused(trace, 405, "method_not_allowed") == "Method Not Allowed"
    assert trace.headers["allow"] == methods
    assert head.content == b"" and (head.headers.get("allow") == methods) == ("HEAD" not in methods)


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("/nothing/here%20at%20all", "Not Found"),
        ("/v2/write/rephrase", "Rephrasing and correction"),
        ("/v3/style_rules", "Style rules"),
        ("/v3/style_rules/x/custom_instructions/y", "Style rules"),
        ("/v1/quality-evaluation", "The evaluation of given translations"),
        ("/v2/admin/analytics", "The administration of keys"),
        ("/v1/jobs/voice/translate", "Voice"),
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE"])
def test_what_is_not_offered_says_why(native: Application, method: str, path: str, reason: str) -> None:
    assert refused(native.client.request(method, path), 404, "not_found").startswith(reason)


@pytest.mark.parametrize("path", ["/languages", "/v2/languages", "/web/style/docs.css", "/docs", "/"])
def test_slashes_are_merged(native: Application, path: str) -> None:
    answer = native.client.get(path)
    assert answer.status_code == 200
    for written in (path + "/", "/" + path, path.replace("/", "//")):
        response = native.client.get(native.url + written)
        assert (response.status_code, response.content) == (200, answer.content)


def test_request_ids(native: Application) -> None:
    one, two = (native.client.get("/livez").headers["x-request-id"] for _ in range(2))
    assert one != two
    assert native.client.get("/livez", headers={"X-Request-ID": "a-1"}).headers["x-request-id"] == "a-1"
    for bad in ("a b", "x" * 65, "é"):
        assert native.client.get("/livez", headers={b"X-Request-ID": bad.encode()}).headers["x-request-id"] != bad


def test_openapi_tells_the_truth(native: Application) -> None:
    document = native.client.get("/openapi.json").json()
    assert native.client.get("/spec").json() == document
    translate = document["paths"]["/translate"]["post"]
    answers = translate["responses"]
    assert set(answers) == {"200", "4XX", "5XX"}
    problems = [list(answers[status]["content"]) for status in ("4XX", "5XX")]
    assert problems == [["application/problem+json", "application/json"]] * 2
    assert set(answers["200"]["content"]) == {"application/json", "text/event-stream"}
    bodies = translate["requestBody"]["content"]
    assert set(bodies) == {"application/json", "application/x-www-form-urlencoded", "multipart/form-data"}
    names = ["TranslateRequest", "TranslateRequestForm", "TranslateRequestForm"]
    assert [body["schema"]["$ref"].rpartition("/")[2] for body in bodies.values()] == names
    schemas = document["components"]["schemas"]
    request = schemas["TranslateRequest"]
    fields = request["properties"]
    assert request["required"] == ["q", "source"] and fields["format"]["anyOf"][0]["enum"]
    assert all({"type": "null"} in fields[name]["anyOf"] for name in fields if name not in ("q", "source"))
    for path, examples in (("/translate", request["examples"]), ("/detect", schemas["DetectRequest"]["examples"])):
        for example in examples:
            assert native.client.post(path, json=example).status_code == 200
    form = schemas["TranslateRequestForm"]  # the values of a form are texts: a null would be the word
    assert form["required"] == request["required"] and list(form["properties"]) == list(request["properties"])
    assert "null" not in json.dumps(form) and fields["stream"]["anyOf"][0]["type"] == "boolean"
    assert [form["properties"][name]["minimum"] for name in ("timeout_ms", "beam_size")] == [1, 1]
    sent = {"q": "House.", "source": "en", "target": "de"}
    for value in form["properties"]["stream"]["enum"]:
        assert native.client.post("/translate", data={**sent, "stream": value}).status_code == 200
    for refused_unless_empty in ("style_id", "custom_instructions"):
        assert {"const": ""} in schemas["TranslateBodyForm"]["properties"][refused_unless_empty]["anyOf"]
    for body, fields in (("TranslateRequest", ("target", "targets")), ("ChangeBody", ("name", "dictionaries"))):
        assert schemas[body]["anyOf"] == [{"required": [name]} for name in fields]
    queries = document["paths"]["/v3/translation_memories"]["get"]["parameters"]
    assert queries and "null" not in json.dumps(queries)
    text = json.dumps(document)
    assert "HTTPValidationError" not in text
    assert set(re.findall(r'"#/components/schemas/([^"]+)"', text)) <= set(schemas)


def test_the_page_about_security_names_statuses_of_errors() -> None:
    errors = [ServiceError]
    for error in errors:
        errors += error.__subclasses__()
    page = (Path(__file__).parents[3] / "docs" / "security.md").read_text("utf-8")
    assert set(re.findall(r"\b[45]\d\d\b", page)) <= {str(error.status) for error in errors[1:]}


@pytest.mark.parametrize("require_key", [False, True])
def test_the_document_states_whether_a_key_is_required(require_key: bool) -> None:
    """Also to those who ask at once for the first time."""
    settings = Settings(model=(Path("unused"),), database=Path("keys"), require_key=require_key)
    with Database.open(None) as database, ThreadPoolExecutor(4) as pool:
        app = create_app(settings, cast(Fleet, WordModels()), database)
        first, *others = pool.map(lambda _: json.dumps(app.openapi()), range(4))
    assert others == [first] * 3
    paths = json.loads(first)["paths"]
    security: list[dict[str, list[str]]] = [{"ApiKey": []}] if require_key else [{}, {"ApiKey": []}]
    assert paths["/translate"]["post"]["security"] == paths["/v2/usage"]["get"]["security"] == security
    assert paths["/metrics"]["get"]["security"] == [{}, {"Operator": []}]
    assert paths["/admin/reload"]["post"]["security"] == [{"Operator": []}]


def test_models_and_the_front_door(native: Application) -> None:
    models = native.client.get("/models").json()
    facts = ["name", "version", "about", "licence", "bundled", "scores", "size", "loaded"]
    facts += ["sources", "targets", "pairs"]
    assert [list(model) for model in models] == [facts] * 2
    stated = [[model[fact] for fact in ("name", "bundled", "loaded", "pairs")] for model in models]
    assert stated == [[f"words-{way}", False, True, [way]] for way in ("en-de", "de-fr")]
    docs = native.client.get("/docs").text
    assert "POST /v2/translate" in docs and "beam_size" in docs and "http" not in docs.replace("http request", "")


def test_headers_for_browsers_and_for_those_who_trace(native: Application) -> None:
    client = native.client
    large = client.post("/translate", content=b"a" * 2_000_000)
    for response in (client.get("/livez"), client.get("/nothing"), large):
        policy = response.headers["content-security-policy"]
        assert "default-src 'self'" in policy and "frame-ancestors 'none'" in policy
        assert "http" not in policy and "unsafe" not in policy
        assert response.headers["x-content-type-options"] == "nosniff"
        assert "x-trace-id" not in response.headers
    key = native.headers()
    for response in (
        *(client.get(path, headers=key) for path in ("/v2/usage", "/v2/nothing", "/v2/translate", "/v3/glossaries")),
        client.post("/v2/translate", content=b"{"),
        client.post("/v2/translate", content=b"x" * 400_000),
        client.get("/v2/usage", headers=native.headers("no")),
    ):
        assert response.headers["x-trace-id"] == response.headers["x-request-id"] != ""
