"""Some hundred documents, memories and requests of the fuzzers; `python -m scripts.attack.fuzz_...` runs thousands."""

import time

import pytest

from scripts.attack import fuzz_documents, fuzz_requests
from scripts.attack.mutations import mutate
from service.parsers.frames import Status
from service.parsers.process import run

pytestmark = pytest.mark.attack


def test_mutated_documents_are_rendered_or_refused() -> None:
    cases = list(fuzz_documents.run(f"1/{number}" for number in range(300)))
    assert [str(case) for case in cases if case.outcome.startswith("FAILED")] == []
    assert {case.outcome for case in cases} == {"rendered", "refused"}


def test_uploads_of_mutated_documents_harm_nobody() -> None:
    """A leak of 70 KB an upload would exceed the growth of memory that is allowed."""
    assert fuzz_documents.upload_all((f"2/{number}" for number in range(300)), warm_up=300) == []


def test_no_request_hangs_or_breaks_the_service() -> None:
    assert fuzz_requests.run(count=400, seed=1, warm_up=100) == []


UNIT = '<tu><tuv xml:lang="en"><seg>The <ph/>dog</seg></tuv><tuv xml:lang="de"><seg>Der Hund &amp;</seg></tuv></tu>\n'
SEEDS = {
    "a.tmx": f'<?xml version="1.0"?><tmx version="1.4"><header/><body>{UNIT * 4}</body></tmx>'.encode(),
    "a.xliff": b'<xliff version="1.2"><file source-language="en" target-language="de"><body>'
    + b'<trans-unit id="1"><source>Dog</source><target>Hund</target></trans-unit>' * 4
    + b"</body></file></xliff>",
    "a.po": b'msgid ""\nmsgstr "Language: de\\n"\n\n' + b'msgid "Dog"\nmsgstr "Hund"\n\n' * 4,
    "a.tsv": b"Dog\tHund\nCat\tKatze\n" * 4,
}
ACCEPTED = {Status.DONE, Status.REFUSED, Status.LIMIT, Status.NESTING}


def seconds(name: str, content: bytes) -> tuple[Status, float]:
    begin = time.process_time()
    outcome = run("read_units", (name, content, "en", "de", 100_000))
    return outcome.status, time.process_time() - begin


def test_mutated_memories_are_read_or_refused() -> None:
    statuses = set()
    for number in range(600):
        mutated = mutate(SEEDS, f"1/{number}")
        status, used = seconds(mutated.name, mutated.content)
        assert status in ACCEPTED, (number, mutated.steps)
        assert used < 0.3 + 0.02 * len(mutated.content) / 1024, (number, mutated.steps)
        statuses.add(status)
    assert {Status.DONE, Status.REFUSED} <= statuses


@pytest.mark.parametrize(
    ("name", "head", "part", "tail"),
    [
        ("a.tmx", "<tmx><body>", UNIT, "</body></tmx>"),
        ("a.tmx", "<tmx><body>" + "<note/>" * 60_000, UNIT, "</body></tmx>"),
        ("a.tmx", "<tmx><body>", "<tu>" + UNIT, ""),
        ("a.tmx", f"<tmx><body>{UNIT}<tu><tuv xml:lang='en'><seg>", "<ph>a</ph>b", "</seg></tuv></tu></body></tmx>"),
        ("a.tsv", "", "a b c\td e f\n", ""),
        ("a.po", 'msgid ""\nmsgstr "Language: de\\n"\n\n', 'msgid "a"\n"b"\nmsgstr "c"\n\n', ""),
        ("a.po", 'msgid ""\nmsgstr "Language: de\\n"\n\nmsgid "a"\nmsgstr ""\n', '"c d"\n', ""),
    ],
)
def test_reading_takes_time_proportional_to_the_size(name: str, head: str, part: str, tail: str) -> None:
    small, large = (min(seconds(name, (head + part * n + tail).encode())[1] for _ in range(2)) for n in (5000, 20_000))
    assert large < 8 * small + 0.1


def test_entities_do_not_multiply() -> None:
    levels = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 10))
    bomb = f'<!DOCTYPE tmx [<!ENTITY e0 "dog">{levels}]><tmx><body><tu><tuv><seg>&e9;</seg></tuv></tu></body></tmx>'
    status, used = seconds("a.tmx", bomb.encode())
    assert status is Status.REFUSED
    assert used < 5
