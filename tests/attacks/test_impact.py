"""Requests that could stop the event loop, the worker or a parser, fill the memory, or hold connections."""

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import pytest

from scripts.attack import event_loop, fairness
from scripts.attack.loop_recorder import findings
from scripts.attack.payloads import LARGE_DOCUMENTS, SIZED_DOCUMENTS
from scripts.attack.target import (
    BYSTANDER,
    LIVEZ_SECONDS,
    Response,
    ServiceProcess,
    glossary,
    measure,
    open_socket,
    running,
    together,
)

pytestmark = pytest.mark.attack
Attack = Callable[[ServiceProcess], Response]

SIZE = 200_000  # bytes of a document
FORM = "application/x-www-form-urlencoded"
PUNYCODE = b"a" * 200_000 + b"-" + b"a" * 199_000
FIELDS = "&".join(f"a{number}=" for number in range(7000))
GLOSSARIES = {"nested": {"a " * number + "a": "b" for number in range(1, 200)}}
TEXTS = {"sentences": "The dog sees the house. " * 4000, "no spaces": "a" * 98_000}
MARKUP = {"512 bold": "<b>" * 512 + "x", "entities": "&" * 98_000}


@pytest.fixture(scope="module")
def target() -> Iterator[ServiceProcess]:
    with running({"MT_CACHE_CHARACTERS": "0"}) as service:
        yield service


def body(content: bytes, kind: str, query: str = "") -> Attack:
    return lambda target: target.request("POST", f"/translate{query}", content, {"Content-Type": kind})


def form(charset: str) -> Attack:
    return body(PUNYCODE, f"{FORM}; charset={charset}")


def multipart(charset: str) -> Attack:
    head = b'--b\r\nContent-Disposition: form-data; name="q-"\r\n\r\n'  # in Punycode, too, a name
    return body(head + PUNYCODE + b"\r\n--b--\r\n", f"multipart/form-data; boundary=b; charset={charset}")


def errors(path: str, field: str) -> Attack:
    content = {field: [0] * 40_000, "name": "a", "target_lang": "DE", "source": "en", "target": "de"}
    return lambda target: target.post_json(path, content)


def texts(q: Any, **fields: Any) -> Attack:
    return lambda target: target.translate(q, {"timeout_ms": 10_000, **fields}, timeout=120)


def document(name: str, content: Callable[[int], bytes]) -> Attack:
    """Another caller's document is translated meanwhile."""

    def attack(target: ServiceProcess) -> Response:
        answers, others = [], []
        together(
            lambda: answers.append(target.upload(name, content(SIZE), timeout=120)),
            lambda: others.append(target.upload("b.txt", b"Where is the station?", caller=BYSTANDER, timeout=120)),
        )
        assert others[0].status == 200 and others[0].seconds < 10
        return answers[0]

    return attack


def upload(name: str, content: bytes) -> Attack:
    return lambda target: target.upload(name, content, timeout=120)


def glossaries(target: ServiceProcess) -> Response:
    answers: list[Response] = []

    def store() -> None:
        for _ in range(10):
            answers.append(target.post_json("/v2/glossaries", glossary(9000)))

    together(*[store] * 4)
    return max(answers, key=lambda answer: answer.status)


def send_all(target: ServiceProcess, message: bytes, connections: int) -> None:
    """Send `message` on so many connections, and read the answers for a while."""
    held = [open_socket(target) for _ in range(connections)]
    for connection in held:
        with contextlib.suppress(OSError):
            connection.sendall(message)
    end = time.monotonic() + 3
    for connection in held:
        connection.settimeout(max(0.01, end - time.monotonic()))
        with contextlib.suppress(OSError), connection:
            while connection.recv(1 << 20):
                pass


REFUSED, TRANSLATED = {400, 413, 422}, {200, 400, 413, 504}
ATTACKS: dict[str, tuple[Attack, set[int]]] = {
    **{
        f"{kind.__name__}: {charset}": (kind(charset), {400})
        for charset in ("punycode", "utf-7", "idna", "unicode_escape", "rot13")
        for kind in (form, multipart)
    },
    "fields of a query": (body(b"", FORM, f"?{FIELDS}"), {400}),
    "fields of a form": (body(FIELDS.encode(), FORM), {400}),
    "errors of dictionaries": (errors("/v3/glossaries", "dictionaries"), {400}),
    "errors of text": (errors("/v2/translate", "text"), {400}),
    "errors of q": (errors("/translate", "q"), {400}),
    "texts beyond the limit": (texts(["a"] * 1999, source="auto"), REFUSED),
    "attention": (texts([f"{'house ' * 150}{number}" for number in range(60)], attention=True), TRANSLATED),
    "glossaries of one caller": (glossaries, {201}),
    **{
        f"{name}, {words} words": (texts("a " * words, glossary=terms, timeout_ms=20_000), TRANSLATED)
        for name, terms in GLOSSARIES.items()
        for words in (1000, 20_000)
    },
    **{name: (texts(text), TRANSLATED) for name, text in TEXTS.items()},
    **{name: (texts([text] * 6, format="html"), TRANSLATED) for name, text in MARKUP.items()},
    **{name: (document(*row), {200, *REFUSED}) for name, row in SIZED_DOCUMENTS.items()},
    **{name: (upload(*row), REFUSED) for name, row in LARGE_DOCUMENTS.items()},
}
"""Requests by name, and the statuses that they may have."""

MEMORY = {"errors": 40_000_000, "attention": 200_000_000, **dict.fromkeys(LARGE_DOCUMENTS, 100_000_000)}
"""Bytes by which an attack may let the memory grow, by the first word of its name."""

BYTES = {"errors": 16_384, "attention": 30_000_000}
"""Bytes that an answer may have."""


@pytest.mark.parametrize("name", ATTACKS)
def test_others_notice_nothing(target: ServiceProcess, name: str) -> None:
    attack, statuses = ATTACKS[name]
    before, answers = target.memory(), list[Response]()
    impact = measure(target, lambda: answers.append(attack(target)))
    print(impact, f"{answers[0].seconds:.1f} s, status {answers[0].status}")
    assert impact.problems() == []
    assert answers[0].status in statuses
    kind = name.partition(" ")[0]
    assert len(answers[0].body) <= BYTES.get(kind, 10_000_000)
    if kind in MEMORY:
        assert target.memory() - before < MEMORY[kind]


HEAD = b"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
CONNECTIONS: dict[str, tuple[bytes, int]] = {
    "chunks of a byte": (CHUNKED + b"1\r\na\r\n" * 800_000, 4),  # 0.5 s for each packet
    "headers": (HEAD + b"a:\r\n" * 16_000 + b"\r\n", 60),
    "trailers": (CHUNKED + b"0\r\n" + b"a:\r\n" * 16_000 + b"\r\n", 60),
    "/livez": (b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n" * 20, 400),
    "/metrics": (b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n" * 5, 400),
}


@pytest.mark.parametrize(("message", "connections"), CONNECTIONS.values(), ids=CONNECTIONS)
def test_what_arrives_at_once_delays_no_probe(target: ServiceProcess, message: bytes, connections: int) -> None:
    impact = measure(target, lambda: send_all(target, message, connections))
    print(impact)
    assert impact.work < LIVEZ_SECONDS and not impact.failures


@pytest.mark.parametrize(("load", "kind"), fairness.ROWS)
def test_single_sentence_beside_a_busy_caller(target: ServiceProcess, load: str, kind: str) -> None:
    row = fairness.measure(target, load, kind, count(10_000_000))
    assert row.within, str(row)


LONGEST_MILLISECONDS = 25.0  # on a slow processor; most of the attacks cause no callback of 5 ms


@pytest.mark.parametrize("name", event_loop.ATTACKS)
def test_no_callback_of_the_event_loop_takes_long(name: str) -> None:
    with event_loop.recorded() as (target, file):
        event_loop.ATTACKS[name](target)
        assert target.request("GET", "/livez").status == 200
        assert [callback for callback in findings(file) if callback[0] > LONGEST_MILLISECONDS] == []


@pytest.mark.skipif("RECORDED_LOOP" in os.environ, reason="asyncio's own loop stops accepting without descriptors")
def test_idle_connections_leave_descriptors_for_probes() -> None:
    with running(descriptors=64) as target:
        held = [open_socket(target) for _ in range(150)]
        before = len(target.logs)
        answers = [target.request("GET", "/livez", caller=BYSTANDER, timeout=15) for _ in range(5)]
        assert [answer.status for answer in answers] == [200] * 5
        assert max(answer.seconds for answer in answers) < 1
        time.sleep(3)
        assert len(target.logs) - before < 200
        assert held
