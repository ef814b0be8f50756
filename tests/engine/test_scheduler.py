"""The scheduler by hand: integers in, integers out."""

from dataclasses import replace

import pytest

from mt.decoding.options import SearchOptions
from mt.engine.requests import Request
from mt.engine.scheduler import BatchKind, Limits, Scheduler

GREEDY = SearchOptions(beam_size=1)
BEAM_4 = SearchOptions(beam_size=4)
SAMPLE = SearchOptions(sample=True)
FOUR_ROWS = BatchKind(rows=4, beams=True)


def request(id: int, options: SearchOptions = BEAM_4, length: int = 5) -> Request:
    return Request(id, tuple(range(length)), options)


def scheduler(*waiting: Request, rows: int = 16, source_tokens: int = 1000) -> Scheduler:
    found = Scheduler(Limits(rows, source_tokens))
    for each in waiting:
        found.add(each)
    return found


def admitted(scheduler: Scheduler, running: BatchKind | None = None, running_rows: int = 0) -> list[int]:
    return [request.id for request in scheduler.admit(running, running_rows)]


def test_kinds() -> None:
    assert BatchKind.of(request(1, BEAM_4)) == FOUR_ROWS
    assert BatchKind.of(request(1, GREEDY)) == BatchKind.of(request(1, SAMPLE)) == BatchKind(rows=1, beams=False)
    assert BatchKind.of(request(1, SearchOptions(sample=True, n_best=4))) == BatchKind(rows=4, beams=False)


def test_first_come_first_served_as_many_as_fit() -> None:
    waiting = scheduler(*(request(id) for id in range(6)), rows=16)
    assert admitted(waiting) == [0, 1, 2, 3]
    assert len(waiting) == 2
    assert admitted(waiting) == [4, 5]
    assert admitted(waiting) == []


@pytest.mark.parametrize(
    ("running_rows", "joining"),
    [(16, []), (13, []), (12, [0]), (9, [0]), (8, [0, 1]), (4, [0, 1, 2])],
)
def test_join_once_a_quarter_of_the_rows_is_free(running_rows: int, joining: list[int]) -> None:
    waiting = scheduler(*(request(id) for id in range(9)), rows=16)
    assert admitted(waiting, FOUR_ROWS, running_rows) == joining


def test_another_kind_waits_and_is_not_overtaken() -> None:
    waiting = scheduler(request(0), request(1, GREEDY), request(2))
    assert admitted(waiting) == [0]
    assert admitted(waiting, FOUR_ROWS, 4) == []
    assert admitted(waiting) == [1]
    assert admitted(waiting) == [2]


def test_padded_source_tokens_are_limited() -> None:
    waiting = scheduler(request(0, length=10), request(1, length=30), request(2, length=40), source_tokens=100)
    assert admitted(waiting) == [0, 1]  # three would be padded to 3 x 40
    assert admitted(waiting) == [2]


def test_what_fits_nowhere_runs_alone() -> None:
    waiting = scheduler(request(0, SearchOptions(beam_size=99)), request(1, SearchOptions(beam_size=99)), rows=16)
    assert admitted(waiting, BatchKind(99, beams=True), 0) == []
    assert admitted(waiting) == [0]
    assert admitted(waiting) == [1]


def test_the_isolated_run_one_by_one_before_all_others() -> None:
    waiting = scheduler(request(3))
    waiting.isolate([request(0), request(1)])
    assert len(waiting) == 3
    assert admitted(waiting) == [0]
    assert admitted(waiting, FOUR_ROWS, 4) == []
    assert [admitted(waiting) for _ in range(3)] == [[1], [3], []]


def test_remove() -> None:
    waiting = scheduler(request(0), request(1), request(2))
    waiting.isolate([request(7), request(8)])
    assert waiting.remove(1) and waiting.remove(7)
    assert not waiting.remove(1) and not waiting.remove(99)
    assert [admitted(waiting), admitted(waiting)] == [[8], [0, 2]]


def test_callers_take_turns_and_a_short_sentence_passes_long_ones_but_not_for_ever() -> None:
    waiting = scheduler(rows=4)
    for id in range(4):
        waiting.add(replace(request(id, length=5), caller=1))  # tags 20, 40, 60, 80
    waiting.add(replace(request(10, length=6), caller=2))  # 24
    waiting.add(replace(request(11, length=12), caller=3))  # 48
    assert [admitted(waiting) for _ in range(2)] == [[0], [10]]  # now 24
    waiting.add(replace(request(12, length=5), caller=4))  # 24 + 20 = 44
    assert [admitted(waiting) for _ in range(5)] == [[1], [12], [11], [2], [3]]


def test_what_is_forgotten_is_not_admitted_and_an_empty_queue_forgets_the_past() -> None:
    waiting = scheduler(*(request(id) for id in range(3)), rows=4)
    assert waiting.remove(0) and waiting.remove(2) and not waiting.remove(2)
    assert [admitted(waiting), admitted(waiting)] == [[1], []]
    waiting.add(replace(request(3, length=50), caller=1))
    waiting.add(replace(request(4, length=5), caller=2))
    assert admitted(waiting) == [4]
