"""Bounds of request bodies before and while they are parsed; the header that names a download."""

import asyncio
import gc
import json
import threading
import time
import weakref
from contextlib import suppress
from io import BytesIO
from typing import Any

import pytest
from fastapi import Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel
from starlette.datastructures import UploadFile
from starlette.requests import ClientDisconnect

import service.http.bodies as bodies
from service.errors import DeadlineExceeded, InvalidRequest
from service.fair_semaphore import FairSemaphore
from service.http.admission import Disconnection
from service.http.attachments import attachment
from service.http.bodies import FORM_CHUNK, check_fields, parse_body, read_fields, read_form
from service.logs import start_record
from service.routes.deepl.glossaries import MultilingualBody
from service.routes.deepl.translate import TranslateBody
from service.schemas import FileRequest, TranslateRequest

FORM = "multipart/form-data; boundary=b"
URLENCODED = "application/x-www-form-urlencoded"


def request(content_type: str, body: bytes, query: bytes = b"") -> Request:
    headers = [(b"content-type", content_type.encode())]
    scope = {"type": "http", "method": "POST", "headers": headers}
    state = {"body": bytearray(body), "query": query, "parsing": FairSemaphore(2)}
    return Request({**scope, "state": {**state, "disconnection": Disconnection(), "deadline": time.monotonic() + 60}})


def fields(content_type: str, body: bytes, query: bytes = b"") -> dict[str, Any]:
    return asyncio.run(read_fields(request(content_type, body, query)))


def part(name: str, value: str, more: str = "") -> bytes:
    return f'--b\r\nContent-Disposition: form-data; name="{name}"{more}\r\n\r\n{value}\r\n'.encode()


@pytest.mark.parametrize(("model", "field"), [(TranslateRequest, "q"), (FileRequest, "tmx")])
def test_a_refused_body_is_freed_without_a_garbage_collection(model: type[BaseModel], field: str) -> None:
    """The web process collects garbage rarely, and a collection stops the event loop."""
    content = BytesIO()
    freed = weakref.ref(content)
    gc.disable()
    try:
        with suppress(RequestValidationError):
            parse_body(model, {field: [1, content], "file": content})
        del content
        assert freed() is None
    finally:
        gc.enable()


def test_fields_of_forms_and_queries() -> None:
    assert fields(URLENCODED, "q=a+b&q=%C3%A4&q=ä&e=".encode()) == {"q": ["a b", "ä", "ä"], "e": ""}
    assert fields(FORM, part("q", "ä") + part("q", "b") + b"--b--\r\n", b"q=c&x=1") == {"q": ["ä", "b"], "x": "1"}
    assert fields("", b"", b"q=a") == {"q": "a"}


def test_a_long_query_is_parsed_in_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """The event loop took 5 ms for 64 KB."""
    threads, pairs = list[bool](), bodies._pairs

    def recorded(query: bytes | bytearray) -> list[tuple[str, str]]:
        threads.append(threading.current_thread() is threading.main_thread())
        return pairs(query)

    monkeypatch.setattr(bodies, "_pairs", recorded)
    assert fields("", b"", b"q=" + b"%41" * FORM_CHUNK) == {"q": "A" * FORM_CHUNK}
    assert fields("", b"", b"q=%41") == {"q": "A"}
    assert threads == [False, True]


def test_the_content_of_an_uploaded_file_is_not_copied() -> None:
    body = part("file", "a" * 100_000, '; filename="a.txt"') + b"--b--\r\n"
    file = fields(FORM, body)["file"]
    assert bodies.uploaded_content(file) == b"a" * 100_000
    assert bodies.uploaded_content(file) is bodies.uploaded_content(file)


@pytest.mark.parametrize("kind", [FORM, URLENCODED])
@pytest.mark.parametrize(("charset", "accepted"), [("utf-8", True), ("US-ASCII", True), ("punycode", False)])
def test_a_form_is_utf8_or_ascii(kind: str, charset: str, accepted: bool) -> None:
    if accepted:
        check_fields(f"{kind}; charset={charset}", b"")
    else:
        with pytest.raises(InvalidRequest, match="the charset of the form is punycode; accepted: utf-8 or us-ascii"):
            check_fields(f'{kind}; CHARSET="{charset}"', b"")


def test_at_most_a_thousand_fields() -> None:
    assert len(fields(URLENCODED, b"&".join(b"a%d=1" % number for number in range(1000)))) == 1000
    with pytest.raises(InvalidRequest, match="more than 1000 fields"):
        fields(URLENCODED, b"a=1&" * 1001)
    with pytest.raises(InvalidRequest, match="Maximum number of fields is 1000"):
        fields(FORM, part("a", "b") * 1001)
    with pytest.raises(InvalidRequest, match="the query has more than 1000 fields"):
        check_fields("", b"a&" * 1000)


def test_the_head_of_a_part_is_short() -> None:
    with pytest.raises(InvalidRequest, match="a header of a part, with its file name, is longer than 1000 bytes"):
        asyncio.run(read_fields(request(FORM, part("file", "House", f'; filename="{"a" * 2000}.txt"') + b"--b--\r\n")))


EN_DE = {"source": "en", "target": "de"}
MANY = list(map(str, range(20_001)))
FILE = UploadFile(BytesIO(b"a"), filename="a.csv")


@pytest.mark.parametrize(
    ("model", "body", "message"),
    [
        (TranslateBody, {"text": [0] * 40_000, "target_lang": "DE"}, "must be a list of strings"),
        (TranslateBody, {"text": ["a"], "target_lang": "DE", "ignore_tags": [0] * 40_000}, "must be a list of strings"),
        (MultilingualBody, {"name": "a", "dictionaries": [0] * 400_000}, "Input should be"),
        (TranslateBody, {"text": ["a"], "target_lang": "DE", "ignore_tags": "a," * 1001}, "accepted: at most 1000"),
        (
            TranslateBody,
            {"text": ["a"], "target_lang": "DE", "splitting_tags": ["a,b"] * 501},
            "accepted: at most 1000",
        ),
        (FileRequest, EN_DE | {"file": FILE, "columns": "1," * 1001}, "accepted: at most 1000"),
        (TranslateRequest, EN_DE | {"q": "a", "targets": json.dumps(MANY)}, "more than 20000 items"),
        (
            TranslateRequest,
            EN_DE | {"q": "a", "glossary": json.dumps(dict.fromkeys(MANY))},
            "more than 20000 items",
        ),
    ],
)
def test_a_list_of_wrong_values_is_one_problem(model: Any, body: dict[str, Any], message: str) -> None:
    with pytest.raises(RequestValidationError) as caught:
        parse_body(model, body)
    (problem,) = caught.value.errors()
    assert message in problem["msg"]


async def test_callers_take_turns_to_have_long_bodies_parsed() -> None:
    """150 forms of one address kept another's JSON of 20 KB waiting for up to 29 s."""
    body = b"q=" + b"a" * FORM_CHUNK
    mine, others = request(URLENCODED, body), request(URLENCODED, body)
    turns = others.scope["state"]["parsing"] = mine.scope["state"]["parsing"]
    await turns.acquire("a")
    start_record("a")
    waiting = asyncio.create_task(read_fields(mine))
    start_record("b")
    assert len((await read_fields(others))["q"]) == FORM_CHUNK
    await asyncio.sleep(0.05)
    assert not waiting.done()
    turns.release("a")
    await waiting


async def test_a_long_body_waits_for_its_turn_until_its_client_leaves_or_its_time_is_over() -> None:
    left, late = (request(URLENCODED, b"q=" + b"a" * FORM_CHUNK) for _ in range(2))
    turns = late.scope["state"]["parsing"] = left.scope["state"]["parsing"]
    late.scope["state"]["deadline"] = time.monotonic() + 0.05
    start_record("a")
    async with turns.held("a"):
        reading = [asyncio.create_task(read_fields(one)) for one in (left, late)]
        await asyncio.sleep(0)
        left.scope["state"]["disconnection"].leave()
        async with asyncio.timeout(5):
            errors = await asyncio.gather(*reading, return_exceptions=True)
    assert list(map(type, errors)) == [ClientDisconnect, DeadlineExceeded]


async def test_a_form_is_parsed_until_its_client_leaves() -> None:
    left = request(FORM, part("q", "a" * 10 * FORM_CHUNK) + b"--b--\r\n")
    parsing = asyncio.create_task(read_fields(left))
    await asyncio.sleep(0)
    left.scope["state"]["disconnection"].leave()
    with pytest.raises(ClientDisconnect):
        await parsing


async def test_a_long_form_is_parsed_in_chunks() -> None:
    parsing = asyncio.create_task(read_form(request(FORM, part("q", "a" * 10 * FORM_CHUNK) + b"--b--\r\n")))
    turns = 0
    while not parsing.done():
        turns += 1
        await asyncio.sleep(0)
    assert turns >= 10


@pytest.mark.parametrize(
    "body",
    [
        b'{"q": [' + b"1," * 450_000 + b"1]}",
        b'{"q": [' + b'"",' * 300_000 + b'""]}',
        b'{"q": "' + b'","' * 300_000 + b'"}',
        b"[" * 900_000,
        b'{"a":' * 150_000,
    ],
)
def test_json_of_many_values_is_refused_before_it_is_parsed(body: bytes) -> None:
    with pytest.raises(InvalidRequest, match=r"the body has more than 20000 strings, commas and brackets"):
        fields("application/json", body)


def test_json_of_long_texts_is_parsed() -> None:
    text = ',[{\\"' * 100_000
    assert fields("application/json", b'{"q": "' + text.encode() + b'"}') == {"q": ',[{"' * 100_000}


@pytest.mark.parametrize(
    ("name", "plain", "quoted"),
    [
        ("note_de.txt", "note_de.txt", "note_de.txt"),
        ("a letter.html", "a letter.html", "a%20letter.html"),
        ("Ä.docx", "_.docx", "%C3%84.docx"),
        ('a"b\\c%41\r\n.txt', "a_b_c_41.txt", "a%22b%5Cc%2541.txt"),
        ("a\u202etxt.exe", "atxt.exe", "atxt.exe"),
        ("../a", ".._a", "..%2Fa"),
    ],
)
def test_names_a_download_for_every_client(name: str, plain: str, quoted: str) -> None:
    header = attachment(name)["Content-Disposition"]
    assert header == f"attachment; filename=\"{plain}\"; filename*=utf-8''{quoted}"
