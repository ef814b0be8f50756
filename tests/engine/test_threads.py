"""Several engines in threads do what one does, and end with whoever owns them."""

import ctypes
import gc
import threading
from collections.abc import Sequence
from dataclasses import replace
from random import Random

import pytest

from mt.decoding.options import SearchOptions
from mt.engine.backends.cpu import CompiledDecoder
from mt.engine.backends.torch import SearchBatch, SearchDecoder
from mt.engine.engine import Engine
from mt.engine.requests import Request, Result
from mt.engine.scheduler import Limits
from mt.engine.threads import AnyEngine, ThreadedEngine
from tests.decoding.conftest import TableScorer, random_table
from tests.decoding.reference import drain
from tests.kernels.conftest import compile_model, odd_model, some_sources

BEAM = SearchOptions(beam_size=3, n_best=2, max_length_factor=1.0, max_length_offset=8)
OPTIONS = [
    BEAM,
    SearchOptions(beam_size=1, max_length_offset=5),
    replace(BEAM, no_repeat_ngram=2),
    replace(BEAM, min_length=7),
    SearchOptions(beam_size=2, n_best=2, max_length=20),
]
PATIENCE = 60  # seconds until a test that waits gives up


def requests(count: int) -> list[Request]:
    return [Request(id, source, OPTIONS[id % len(OPTIONS)]) for id, source in enumerate(some_sources(count))]


def run(engine: AnyEngine, wanted: Sequence[Request], seed: int) -> dict[int, Result]:
    """Requests arrive between steps at random."""
    random, results = Random(seed), []
    for request in wanted:
        engine.submit(request)
        for _ in range(random.randrange(3)):
            results += engine.step()
    results += engine.drain()
    assert len(results) == len(wanted) and not engine.busy
    return {result.id: result for result in results}


@pytest.mark.parametrize("int8", [False, True])
def test_threads_find_what_one_engine_finds(library: ctypes.CDLL, int8: bool) -> None:
    model = compile_model(library, odd_model(), int8)
    wanted = requests(60)
    expected = run(Engine(CompiledDecoder(model), Limits(rows=24)), wanted, 0)
    for threads in (1, 2, 3):
        engine = ThreadedEngine(CompiledDecoder(model), Limits(rows=24), threads)
        assert run(engine, wanted, threads) == expected
        assert engine.steps > 0
        assert list(engine.drain()) == [] and engine.step() == []


class Gate(SearchDecoder):
    """A decoder that begins nothing until it is opened; `error` is what it raises then."""

    def __init__(self, error: BaseException | None = None) -> None:
        super().__init__(TableScorer(random_table(77)))
        self.opened, self.error = threading.Event(), error

    def begin(self, requests: Sequence[Request]) -> SearchBatch:
        assert self.opened.wait(PATIENCE)
        if self.error is not None:
            raise self.error
        return super().begin(requests)


def test_what_is_cancelled_gives_no_result() -> None:
    decoder = Gate()
    engine = ThreadedEngine(decoder, Limits(), 2)
    for request in requests(12):
        engine.submit(request)
    engine.cancel([1, 4, 5, 12345])
    assert engine.busy
    decoder.opened.set()
    assert sorted(result.id for result in engine.drain()) == [0, 2, 3, 6, 7, 8, 9, 10, 11]
    for request in requests(2):
        engine.submit(request)
    engine.cancel([0, 1])
    assert not engine.busy and list(engine.drain()) == []


def test_work_is_divided_and_busy_until_its_last_result() -> None:
    decoder = Gate()
    engine = ThreadedEngine(decoder, Limits(), 3)
    assert not engine.busy and engine.progress == (-1, -1, -1)
    for request in requests(3):
        engine.submit(request)
        assert engine.busy and engine.step() == []
    assert engine.progress == (0, 0, 0), "each thread has work"
    decoder.opened.set()
    assert sorted(result.id for result in engine.drain()) == [0, 1, 2]
    assert not engine.busy and engine.progress == (-1, -1, -1)


def test_threads_go_on_after_a_failure() -> None:
    decoder = Gate(ValueError("not this"))
    decoder.opened.set()
    engine = ThreadedEngine(decoder, Limits(), 2)
    for count in (4, 1):
        assert {result.problem for result in drain(engine, requests(count)).values()} == {"ValueError: not this"}


class Death(BaseException):
    """What no engine catches."""


def test_what_a_thread_dies_of_is_raised_from_then_on() -> None:
    decoder = Gate(Death("memory"))
    decoder.opened.set()
    engine = ThreadedEngine(decoder, Limits(), 2)
    engine.submit(requests(1)[0])
    with pytest.raises(Death, match="memory"):
        list(engine.drain())
    engine.submit(requests(2)[1])
    for _ in range(2):
        with pytest.raises(Death, match="memory"):  # and nobody waits for a result that cannot come
            engine.step()


def test_threads_end_with_their_owner() -> None:
    before = set(threading.enumerate())
    decoder = Gate()
    decoder.opened.set()
    engine = ThreadedEngine(decoder, Limits(), 3)
    for request in requests(9):
        engine.submit(request)
    engine.step()
    mine = [thread for thread in threading.enumerate() if thread not in before]
    assert len(mine) == 3 and all(thread.daemon for thread in mine)
    del engine  # with work left to do
    gc.collect()
    for thread in mine:
        thread.join(PATIENCE)
    assert not any(thread.is_alive() for thread in mine)
