"""The scheduler by hand: integers in, integers out."""

from dataclasses import replace

import pytest

from mt.decoding.options import SearchOptions
from mt.engine.memory import target_columns
from mt.engine.requests import Request
from mt.engine.scheduler import BatchKind, Limits, RequestClass, Scheduler
from mt.engine.turns import TurnQueue

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


def admitted(scheduler: Scheduler, request_class: RequestClass = RequestClass.BULK) -> list[int]:
    """Admit requests. Return the ids of those of this class."""
    groups = [requests for (found, _), requests in scheduler.admit().items() if found is request_class]
    return [request.id for requests in groups for request in requests]


def release(scheduler: Scheduler, *ids: int) -> None:
    for id in ids:
        scheduler.release(id)


@pytest.mark.parametrize(("running", "joining"), [(16, []), (13, []), (12, [100]), (9, [100]), (8, [100, 101])])
def test_join_once_a_quarter_of_the_rows_is_free(running: int, joining: list[int]) -> None:
    waiting = scheduler(*(request(id, GREEDY) for id in range(running)), rows=16)
    assert len(admitted(waiting)) == running
    for id in range(100, 109):
        waiting.add(request(id))
    assert admitted(waiting) == joining


def test_kinds_share_the_rows_and_keep_their_order() -> None:
    waiting = scheduler(request(0), request(1, GREEDY), request(2), request(3, GREEDY, 9), request(4), rows=12)
    groups = waiting.admit()  # tags 20, 25, 45, 54, 74
    one_row = BatchKind(rows=1, beams=False)
    by_kind = {kind: [request.id for request in group] for (_, kind), group in groups.items()}
    assert by_kind == {FOUR_ROWS: [0, 2], one_row: [1, 3]}
    assert admitted(waiting) == []  # 2 rows are free
    release(waiting, 0)
    assert admitted(waiting) == [4]


def test_padded_source_tokens_are_limited() -> None:
    waiting = scheduler(request(0, length=10), request(1, length=30), request(2, length=40), source_tokens=100)
    assert admitted(waiting) == [0, 1]  # three would be padded to 3 x 40
    assert admitted(waiting) == [2]


@pytest.mark.parametrize(("released", "then"), [([], [[], [], [2]]), ([0, 1], [[2]])], ids=["beside others", "alone"])
def test_steps_follow_a_source_above_the_limit(released: list[int], then: list[list[int]]) -> None:
    waiting = scheduler(*(request(id, GREEDY, length) for id, length in enumerate([10, 250, 300])), source_tokens=100)
    assert [admitted(waiting), admitted(waiting)] == [[0], [1]]
    release(waiting, *released)
    assert [admitted(waiting) for _ in then] == then


def test_the_isolated_run_one_by_one_and_delay_nobody() -> None:
    waiting = scheduler(request(3))
    waiting.isolate([request(0), request(1)])
    assert len(waiting) == 3
    isolated, bulk = ((kind, FOUR_ROWS) for kind in (RequestClass.ISOLATED, RequestClass.BULK))
    assert waiting.admit() == {isolated: [request(0)], bulk: [request(3)]}
    assert admitted(waiting, RequestClass.ISOLATED) == []
    release(waiting, 0)
    assert admitted(waiting, RequestClass.ISOLATED) == [1]
    waiting.isolate([request(7)])
    assert waiting.remove(7) and not waiting.remove(7)


def one_by_one(scheduler: Scheduler, count: int) -> list[int]:
    ids = []
    for _ in range(count):
        (id,) = admitted(scheduler)
        release(scheduler, id)
        ids.append(id)
    return ids


def test_callers_take_turns_and_a_short_sentence_passes_long_ones_but_not_for_ever() -> None:
    waiting = scheduler(rows=4)
    for id in range(4):
        waiting.add(replace(request(id, length=5), caller=1))  # tags 20, 40, 60, 80
    waiting.add(replace(request(10, length=6), caller=2))  # 24
    waiting.add(replace(request(11, length=12), caller=3))  # 48
    assert one_by_one(waiting, 2) == [0, 10]  # now 24
    waiting.add(replace(request(12, length=5), caller=4))  # 24 + 20 = 44
    assert one_by_one(waiting, 5) == [1, 12, 11, 2, 3]


def test_an_empty_queue_forgets_the_past() -> None:
    waiting = scheduler(request(1), rows=4)
    assert one_by_one(waiting, 1) == [1]
    waiting.add(replace(request(3, length=50), caller=1))
    waiting.add(replace(request(4, length=5), caller=2))
    assert admitted(waiting) == [4]


def test_another_caller_needs_no_free_row_beside_a_busy_one() -> None:
    waiting = scheduler(*(request(id) for id in range(9)), rows=32)
    assert len(admitted(waiting)) == 8  # all rows
    for id in range(100, 103):
        waiting.add(replace(request(id), caller=1))
    assert admitted(waiting, RequestClass.INTERACTIVE) == [100]  # 4 rows of 32 for one caller
    waiting.add(replace(request(200, GREEDY), caller=2))
    waiting.add(replace(request(300), caller=3))
    assert admitted(waiting, RequestClass.INTERACTIVE) == [200]  # 8 rows of 32 for all callers
    release(waiting, 100)
    assert admitted(waiting, RequestClass.INTERACTIVE) == [101]
    assert len(waiting) == 3


def long(id: int, length: int, options: SearchOptions = BEAM_4) -> Request:
    """A request whose translation needs at most `length` columns."""
    limited = replace(options, max_length_factor=0, max_length_offset=length - 1, max_length=length - 1)
    return replace(request(id, limited), source=(5,) * 32)


def test_memory_bounds_the_rows_of_long_sentences() -> None:
    """Cells of n sentences with 4 rows, 128 columns and 128 source tokens: n * (4 * 128 + 128) = n * 640."""
    waiting = Scheduler(Limits(rows=100, source_tokens=1000, cells=3 * 640))
    for id in range(5):
        waiting.add(long(id, 64))
    assert admitted(waiting) == [0, 1, 2]
    assert admitted(waiting) == []
    release(waiting, 1)
    assert admitted(waiting) == [3]


def test_memory_is_counted_by_the_longest_sentence() -> None:
    """Beside one of 256 columns, one of 32 needs 256 too: 2 * (4 * 256 + 128) = 2,304."""
    for cells, expected in ((2304, [0, 1]), (2303, [0])):
        waiting = Scheduler(Limits(rows=100, source_tokens=1000, cells=cells))
        for id, columns in enumerate((256, 32)):
            waiting.add(long(id, columns))
        assert admitted(waiting) == expected
    release(waiting, 0)
    assert admitted(waiting) == [1]


@pytest.mark.parametrize(
    ("longest", "max_length", "columns"),
    [(127, 512, 128), (128, 512, 256), (511, 512, 512), (512, 512, 544), (1024, 1024, 1056), (60, 60, 128)],
)
def test_columns_are_a_power_of_two_or_as_many_as_needed(longest: int, max_length: int, columns: int) -> None:
    assert target_columns(SearchOptions(max_length=max_length), longest) == columns


@pytest.mark.parametrize(
    ("limits", "request_"),
    [
        (Limits(rows=16, source_tokens=1000), request(0, SearchOptions(beam_size=99))),
        (Limits(rows=100, source_tokens=1000, cells=100), long(0, 64)),
    ],
    ids=["rows", "memory"],
)
def test_what_fits_nowhere_runs_alone(limits: Limits, request_: Request) -> None:
    waiting = Scheduler(limits)
    for id in range(2):
        waiting.add(replace(request_, id=id))
    assert admitted(waiting) == [0]
    assert admitted(waiting) == []
    release(waiting, 0)
    assert admitted(waiting) == [1]


def test_callers_take_turns_and_keep_their_order() -> None:
    queue: TurnQueue[int, str] = TurnQueue()
    for key, value in enumerate(["a1", "a2", "a3", "b1", "c1", "b2"]):
        queue.put(value[0], key, value)
    assert queue.pop() == (0, "a1")
    assert 4 in queue and 0 not in queue
    assert queue.remove(4) == "c1" and queue.remove(4) is None
    queue.put("d", 9, "d1")
    assert [queue.pop()[1] for _ in range(len(queue))] == ["b1", "a2", "d1", "b2", "a3"]
    assert not queue
