"""The arithmetic of `benchmark.py http`, its client, and the rival that translates one text after another."""

import time
from pathlib import Path
from threading import Thread

import pytest

from mt.errors import DataError
from scripts.benchmarks.http import BULK, Row, cells, compare, distinct
from scripts.benchmarks.load_client import Answers, Load
from scripts.benchmarks.load_client import run as send
from scripts.benchmarks.one_by_one import Server


def test_requests_of_a_load() -> None:
    load = Load(tuple("abcde"), texts_a_request=2, connections=3)
    assert load.requests == [("a", "b"), ("c", "d"), ("e",)]
    assert Answers(2.0, (), tuple("abcde")).rate == 2.5


@pytest.mark.parametrize(("size", "connections"), [(1, 3), (2, 2), (16, 1)])
def test_one_text_after_another_in_order_and_never_two_at_a_time(size: int, connections: int) -> None:
    at_work: list[str] = []
    most = 0

    def backwards(text: str) -> str:
        nonlocal most
        at_work.append(text)
        most = max(most, len(at_work))
        time.sleep(0.001)
        at_work.remove(text)
        return text[::-1]

    texts = tuple(f"text {number} ä" for number in range(20))
    with Server(backwards) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        answers = send(server.server_address[1], Load(texts, size, connections), "en", "de")
        server.shutdown()
    assert answers.translations == tuple(text[::-1] for text in texts)
    assert most == 1
    assert len(answers.latencies) == -(-20 // size) and min(answers.latencies) >= 0.001
    assert answers.seconds >= max(answers.latencies)


def rows_of(bulk: list[float], service: list[float], slow: list[float], waited: float) -> list[Row]:
    """A bulk row and one of the service and of its rival for each size of a request."""
    found = [Row(BULK, rates=bulk, latencies=[()] * 3)]
    for name, rates in (("service", service), ("one by one", slow)):
        found += [Row(name, size, rates=rates, latencies=[(0.1, 0.2, waited)] * 3) for size in (16, 1)]
    compare(found)
    return found


def test_the_cells_and_the_verdict_over_http() -> None:
    bulk, of_16, of_1, slow, _ = rows_of([100.0, 110.0, 90.0], [80.0, 77.0, 72.0], [20.0, 20.0, 20.0], waited=0.9)
    assert cells(bulk) == [BULK, "all", "100.0", "", "", "", "", "", "100.0%", ""]
    compared = ("0.77 (0.70-0.80)", "3.85 (3.60-4.00)", "200", "900", "900", "100.0%")
    assert cells(of_16) == ["service", "16", "77.0", *compared, "missed: 85%, 1 s"]
    assert cells(of_1)[-1] == "met: 60%, 1 s"
    assert cells(slow)[3:5] == ["0.20 (0.18-0.22)", ""] and cells(slow)[-1] == ""
    assert rows_of([100.0] * 3, [99.0] * 3, [20.0] * 3, waited=1.1)[1].verdict == "missed: 85%, 1 s"


def test_what_differs_from_bulk_is_counted() -> None:
    row = Row("service", 1)
    row.add(Answers(2.0, (0.5,) * 4, ("a", "b", "c", "d")), ["a", "b", "c", "x"])
    row.add(Answers(4.0, (0.7,) * 4, ("a", "b", "c", "x")), ["a", "b", "c", "x"])
    assert (row.rates, row.same, row.latency(99)) == ([2.0, 1.0], 0.75, 0.6)


def test_sentences_that_differ(tmp_path: Path) -> None:
    source = tmp_path / "a.en"
    source.write_text("a\n\nb\na\n c \n")
    assert distinct(source, 3) == ("a", "b", "c")
    with pytest.raises(DataError, match="3 different sentences; accepted: 4"):
        distinct(source, 4)
