"""Text that breaks services: through every dialect and format there is an answer, in UTF-8, and of bounded length."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.service.running import FROZEN

MEGABYTE = 1_000_000
WAIT, WARTEN = "Please wait.", "Bitte warten Sie."

TEXTS = {
    "lone surrogates": "\ud800 the dog \udfff",
    "halves of an emoji": "\ud83d\ude00 the dog \ude00\ud83d",
    "NUL": "the\0dog\0",
    "controls": "".join(map(chr, range(1, 32))) + "\x7f\x85 the dog",
    "byte order marks": "\ufeffthe\ufeff dog\ufffe",
    "line and paragraph separators": "the dog\u2028the cat\u2029",
    "right to left": "\u202e\u2066the\u200f dog\u2069 كلب",
    "families": "👩‍👩‍👧‍👦👨🏿‍🦳🏴\U000e0067\U000e007f " * 50,
    "joiners alone": "\u200d" * 1000,
    "combining": "e" + "\u0301" * 10_000,
    "combining alone": "\u0301" * 10_000,
    "one word of a megabyte": "a" * (MEGABYTE - 1000),
    "a megabyte of one letter of another script": "字" * 300_000,
    "words of one letter": "a " * 1_000,
    "full stops": "." * 50_000,
    "sentences of one letter": "A. " * 500,
    "spaces": " " * (MEGABYTE - 1000),
    "newlines": "\n" * 100_000,
    "kinds of space": "\u00a0\u2003\u3000\u200b\t\r\v\f" * 100,
    "space marks of the tokenizer": "▁▁ ▁the▁dog",
    "pieces of the tokenizer": "<2fr> </s> <s> <pad> <0x0A> <unk>",
    "no characters": "\ufffe\uffff\U0010ffff\ufdd0\ue000",
    "format strings": "%s%n%99999999d {0.__class__} {{ }} ${jndi:x} \\x \\u0000",
}
SMALL = {name: text for name, text in TEXTS.items() if len(text) < 20_000}
MARKUP = {
    "not closed": "<p>the <b>dog <i>and",
    "closed too often": "</p></b>the dog</i></p>",
    "crossed": "<b>the <i>dog</b> and</i> the cat",
    "a thousand deep": "<b>" * 1_000 + "the dog" + "</b>" * 1_000,
    "comment without an end": "the dog <!-- and the cat",
    "CDATA": "<![CDATA[the dog]]> the cat",
    "entities": "&amp;amp; &#0; &#xD800; &#x110000; &nosuch; &lt;b&gt; the dog &",
    "a doctype that refers to itself": '<!DOCTYPE a [<!ENTITY b "&b;&b;">]><a>&b; the dog</a>',
    "a file of this machine": '<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]><a>&b; the dog</a>',
    "attributes": "<a href=\"&quot;&lt;\" title='\ud800' \0=1 =2>the dog</a>",
    "many tags": "<br>" * 5_000 + "the dog",
}


@pytest.fixture(scope="module")
def client(start_service: Callable[..., Any]) -> Iterator[httpx.Client]:
    limits = {"MT_MAX_CHARACTERS": str(MEGABYTE), "MT_MAX_BODY_BYTES": "8000000", "MT_CACHE_CHARACTERS": "0"}
    service = start_service(FROZEN, **limits)
    with httpx.Client(base_url=service.url, trust_env=False, timeout=600) as found:
        yield found
    assert service.process.poll() is None
    assert service.events("failed", "worker hangs", "worker restarted", "worker died") == []


def post(client: httpx.Client, path: str, body: dict[str, Any]) -> Any:
    """JSON spells lone surrogates, which httpx's own would refuse to."""
    response = client.post(path, content=json.dumps(body), headers={"Content-Type": "application/json"})
    assert response.status_code in (200, 400), (response.status_code, response.text[:300])
    found = json.loads(response.content.decode("utf-8"))
    if response.status_code == 400:
        assert found["code"] in ("invalid_request", "unsupported_language", "cannot_translate"), found
        return None
    return found


def bounded(text: str, found: str) -> None:
    """In bytes: a character that the model does not know may cost it as many pieces."""
    assert len(found.encode("utf-8")) <= 4 * len(text.encode("utf-8", "surrogatepass")) + 400


@pytest.mark.parametrize(
    "text",
    [text if len(text) < 200_000 else pytest.param(text, marks=pytest.mark.slow) for text in TEXTS.values()],
    ids=TEXTS,
)
def test_plain_text(client: httpx.Client, text: str) -> None:
    found = post(client, "/translate", {"q": [text, WAIT], "source": "en", "target": "de"})
    assert found is not None and len(found["translatedText"]) == 2
    bounded(text, found["translatedText"][0])
    assert found["translatedText"][1] == WARTEN, "and the other text is translated as always"
    if not text.strip():
        assert found["translatedText"][0] == text
    if text in SMALL.values():
        ask_for_all(client, text)


def ask_for_all(client: httpx.Client, text: str) -> None:
    """A stream, detection, alternatives, ranges within both texts, and terms that the text itself is."""
    streamed = {"q": text, "source": "en", "target": "de", "stream": True}
    response = client.post("/translate", content=json.dumps(streamed), headers={"Content-Type": "application/json"})
    lines = [line for line in response.text.split("\n") if line.startswith("data: ")]
    *segments, done = [json.loads(line.removeprefix("data: ")) for line in lines]
    assert "".join(segment["translatedText"] for segment in segments) == done["translatedText"]
    more = {"alternatives": 2, "quality": True, "segments": True, "alignment": True}
    terms = {"glossary": {"dog": "Hund"}, "do_not_translate": ["the cat"]}
    found = post(client, "/translate", {"q": text, "source": "auto", "target": "de", **more, **terms})
    assert found is not None
    size = len(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))
    for segment in found["segments"]:
        assert 0 <= segment["source"][0] <= segment["source"][1] <= size
        assert 0 <= segment["target"][0] <= segment["target"][1] <= len(found["translatedText"])
    post(client, "/translate", {"q": text, "source": "en", "target": "de", "glossary": {text: "x", "x": text}})
    post(client, "/translate", {"q": WAIT, "source": "en", "target": "de", "do_not_translate": [text, text[:1]]})
    post(client, "/detect", {"q": text})


@pytest.mark.parametrize("text", [*SMALL.values(), *MARKUP.values()], ids=[*SMALL, *MARKUP])
def test_html(client: httpx.Client, text: str) -> None:
    found = post(client, "/translate", {"q": f"{text}<p>{WAIT}</p>", "source": "en", "target": "de", "format": "html"})
    if found is not None:
        bounded(text, found["translatedText"])
        assert "root:" not in found["translatedText"]


def test_a_sentence_that_stays_is_listed_on_request(client: httpx.Client) -> None:
    text = f"{WAIT} Привет, мир."
    body = {"q": text, "source": "en", "target": "de", "untranslated": True}
    expected = ["Привет, мир."]
    for format in ("text", "html"):
        answer = client.post("/translate", json=body | {"format": format}).json()
        assert (answer["translatedText"], answer["untranslated"]) == (f"{WARTEN} Привет, мир.", expected)
    segments = client.post("/translate", json=body | {"segments": True}).json()["segments"]
    assert [segment.get("untranslated") for segment in segments] == [None, expected]
    deepl = {"text": [text, WAIT], "target_lang": "DE", "source_lang": "EN", "show_untranslated": True}
    translations = client.post("/v2/translate", json=deepl).json()["translations"]
    assert [translation["untranslated"] for translation in translations] == [expected, []]


ADMIN = "an-admin-key-of-32-characters-ab"
UNSTATED = """
[[operations]]  # languages that are served, models, formats of files and of entries, limits of the settings
include-name = [
    "POST /translate", "POST /translate_file", "POST /suggest", "PUT /memories", "POST /v2/translate",
    "POST /v2/document", "POST /v2/glossaries", "POST /v3/glossaries", "PATCH /v3/glossaries/{glossary_id}",
    "GET /v3/glossaries/{glossary_id}/entries", "PUT /v3/glossaries/{glossary_id}/dictionaries",
    "DELETE /v3/glossaries/{glossary_id}/dictionaries", "POST /v3/translation_memories/import",
    "PUT /v3/translation_memories/jobs/{job_id}/file"
]
checks.positive_data_acceptance.enabled = false

[[operations]]  # a form has no types: the wrong type of a list of texts is its one text
include-name = ["POST /translate", "POST /v2/translate"]
checks.negative_data_rejection.enabled = false

[[operations]]  # a time limit of one millisecond
include-name = "POST /translate"
checks.not_a_server_error.expected-statuses = ["2xx", "3xx", "4xx", "504"]

[[operations]]  # a missing key is refused as a wrong one is, with 403 in place of 401
include-name = "POST /admin/reload"
checks.missing_required_header.enabled = false

[[operations]]  # also the path of a memory, whose methods `Allow` lists
include-name = "POST /v3/translation_memories/import"
checks.allow_header_conformance.enabled = false
"""
"""Settings of schemathesis: what the document cannot state, and which check would report it."""


def test_schemathesis_finds_no_more_than_is_explained(start_service: Callable[..., Any], tmp_path: Path) -> None:
    """All phases of its command line, with all other checks."""
    limits = {"MT_MAX_CHARACTERS": "2000", "MT_MAX_BODY_BYTES": "40000", "MT_MAX_GLOSSARIES": "10000"}
    service = start_service(FROZEN, MT_ADMIN_KEY=ADMIN, **limits)
    paths = httpx.get(f"{service.url}/openapi.json", trust_env=False).json()["paths"]
    operations = [operation for methods in paths.values() for operation in methods.values()]
    assert len(operations) >= 30
    assert all({"4XX", "5XX"} <= set(operation["responses"]) for operation in operations)
    (tmp_path / "schemathesis.toml").write_text(UNSTATED, encoding="utf-8")
    done = subprocess.run(
        [
            *(Path(sys.executable).with_name("schemathesis"), "--config-file", tmp_path / "schemathesis.toml"),
            *("run", f"{service.url}/openapi.json", "--continue-on-failure", "--no-color", "--request-timeout", "60"),
            *("--max-examples", "10", "--seed", "1", "--generation-database", "none"),
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"},
    )
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
    assert service.process.poll() is None
    assert service.events("failed") == []
