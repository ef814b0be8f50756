"""POST /translate_file and the downloads of translated files."""

import io
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import AsyncExitStack
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from mt.data.translation_memory import read_memory_stream
from scripts.attack.payloads import pdf
from service.parsers.pool import SMALL_FILE
from service.translation.documents import MAX_LARGE
from tests.service.application import Application
from tests.service.routes.test_translate import PAIR, refused


def upload(native: Application, name: str, content: bytes, **fields: str) -> httpx.Response:
    return native.client.post("/translate_file", data={**PAIR, **fields}, files={"file": (name, content)})


def fetched(native: Application, name: str, content: bytes, **fields: str) -> bytes:
    return native.client.get(upload(native, name, content, **fields).json()["translatedFileUrl"]).content


CP1252, CP1251, UTF16 = "cp1252", "cp1251", "utf-16-be"


@pytest.mark.parametrize(
    ("name", "content", "fields", "translated"),
    [
        ("a.html", b"<p>the <b>dog</b>", {"source": "auto"}, b"<p>THE <b>DOG</b>"),
        ("a.csv", b"id,name\na,the dog\n", {"columns": " name ,"}, b"id,name\na,THE DOG\n"),
        ("a.txt", "Käse\n".encode(CP1252), {}, "KÄSE\n".encode(CP1252)),
        ("a.txt", "Хлеб\n".encode(CP1251), {"encoding": CP1251}, "ХЛЕБ\n".encode(CP1251)),
        ("a.txt", "Käse\n".encode(UTF16), {"encoding": "UTF-16"}, "KÄSE\n".encode(UTF16)),
        ("a.txt", b"one two\npoison\n\nthree\n", {}, b"ONE TWO\npoison\n\nTHREE\n"),
        ("a.txt", b"a dog of X.", {"glossary": '{"dog": "Hund"}', "do_not_translate": '["of"]'}, b"A Hund of X."),
    ],
)
def test_translations(
    native: Application, name: str, content: bytes, fields: dict[str, str], translated: bytes
) -> None:
    assert fetched(native, name, content, **fields) == translated


def test_the_address_and_the_name_of_a_file(native: Application) -> None:
    address = upload(native, "a letter.html", b"<p>the dog", source="auto").json()["translatedFileUrl"]
    assert address.startswith(native.url + "/download_file/")
    assert quote(address, safe=":/%") == address, "it is an address as it stands, for clients that mend nothing"
    name = "filename=\"a letter_de.html\"; filename*=utf-8''a%20letter_de.html"
    assert native.client.get(address).headers["content-disposition"] == f"attachment; {name}"
    stored = upload(native, "Re\u0301sume\u0301 हिन्दी.txt", b"x").json()["translatedFileUrl"]
    named = native.client.get(stored).headers["content-disposition"]
    assert named.endswith(f"filename*=utf-8''{quote('Résumé हिन्दी_de.txt')}")
    assert len({upload(native, "a.txt", b"x").json()["translatedFileUrl"] for _ in range(3)}) == 3
    answer = upload(native, "a.PDF", pdf(b"BT /F 12 Tf 72 700 Td (the dog) Tj ET"))
    assert answer.json()["translatedFileUrl"].endswith(".a_de.PDF.docx")


def test_few_large_files_are_in_work_at_a_time(native: Application) -> None:
    """64 files of 600 KB with a word a line took 2 GB of memory."""
    turns, stack = native.services.translations.documents.turns, AsyncExitStack()
    for number in range(MAX_LARGE):
        native.wait(stack.enter_async_context(turns.held(f"caller {number}", SMALL_FILE + 1)))
    with ThreadPoolExecutor(1) as pool:
        large = pool.submit(upload, native, "large.json", b"[" * (SMALL_FILE + 1))
        assert upload(native, "small.txt", b"A dog.").status_code == 200
        wait([large], 0.3)
        assert not large.done()
        native.wait(stack.aclose())
        assert large.result().status_code >= 400


def test_how_many_sentences_are_doubtful(native: Application) -> None:
    """The models of the test have a confidence of 0.5, and cannot translate poison."""
    for quality, counts in (("true", (4, 4)), ("false", (None, None))):
        answer = upload(native, "a.txt", b"One two. Three\npoison\n\nthe dog\n", quality=quality).json()
        assert (answer.get("sentences"), answer.get("doubtful")) == counts


def test_the_sentences_of_a_file_as_tmx(native: Application) -> None:
    text = "<p>The dog. <b>Two</b> cats &amp; one.</p><p>Three.</p>"
    assert upload(native, "a.html", text.encode()).json().keys() == {"translatedFileUrl"}
    answer = upload(native, "a.html", text.encode(), tmx="true").json()
    memory = native.client.get(answer["tmxUrl"])
    assert 'filename="a_de.tmx"' in memory.headers["content-disposition"]
    units = read_memory_stream(io.BytesIO(memory.content), "a.tmx", "en", "de")
    sentences = ["The dog.", "Two cats & one.", "Three."]
    assert [(unit.source, unit.target) for unit in units] == [(text, text.upper()) for text in sentences]


@pytest.mark.parametrize(
    ("name", "content", "fields", "message"),
    [
        ("a.exe", b"x", {}, "Invalid request: file format not supported; accepted: .arb, .csv, "),
        ("a.docx", b"x", {}, "a.docx"),
        ("a.txt", b"\xff\xfe\xfa", {}, "a.txt"),
        ("a.json", b"{", {}, "a.json"),
        ("a.txt", b"x", {"target": "zz"}, "zz is not supported; accepted: de, fr"),
        ("a.txt", b"da ist der Hund", {"source": "auto"}, "Source and target language are equal: German (de); acc"),
        ("a.txt", b"da ist der Hund", {"source": "de"}, "Source and target language are equal: German (de)"),
        ("a.txt", b"x", {"encoding": "klingon"}, "the encoding 'klingon' is unknown; accepted: such as utf-16, cp1252"),
        ("a.csv", b"id,name\na,b\n", {"columns": "size"}, "no column 'size'; accepted: a number from 1 to 2, or id, n"),
        ("a.txt", b"x", {"source": "auto", "glossary_id": "unknown"}, "request: glossary_id needs a source language"),
        ("a.txt", b"x", {"glossary": "dog"}, "glossary"),
        ("a.txt", b"x", {"beam_size": "2"}, "a request cannot set beam_size; accepted: glossary, glossary_id, do_"),
        ("a.txt", b"x", {"formallity": "more"}, "unknown parameter formallity; did you mean formality?"),
    ],
)
def test_refused_files(native: Application, name: str, content: bytes, fields: dict[str, Any], message: str) -> None:
    assert message in refused(upload(native, name, content, **fields), 400)


def test_missing_fields_are_named(native: Application) -> None:
    message = refused(native.client.post("/translate_file", data={"target": "de"}), 400)
    assert "missing file parameter" in message and "missing source parameter" in message


@pytest.mark.parametrize("name", ["..%2f..%2fetc%2fpasswd", "%2e%2e", "a.txt", "x" * 1000])
def test_no_other_file_can_be_fetched(native: Application, name: str) -> None:
    assert native.client.get(f"/download_file/{name}").status_code == 404


def test_a_file_that_cannot_be_stored_costs_nothing(native: Application) -> None:
    native.database.outcomes = ("refused",)
    refused(upload(native, "a.txt", b"the dog", api_key=native.keys["rich"]), 503)
    assert native.spent("rich") == 0
