"""Many sentences in flight give what each gives alone."""

import math
from dataclasses import replace
from random import Random

import pytest

from mt.decoding.hypothesis import Hypothesis
from mt.decoding.options import SearchOptions
from mt.engine.backends.torch import SearchBatch, SearchDecoder
from mt.engine.engine import Engine
from mt.engine.requests import Request, Result
from mt.engine.scheduler import Limits
from tests.decoding.conftest import Ids, TableScorer, random_table
from tests.decoding.reference import decode, drain

VOCABULARY = 12
EOS = 3
BEAM = SearchOptions(beam_size=3, n_best=2, max_length_offset=6)
POISON = 11  # a source that holds it is what the test wants to fail


def sources(count: int, seed: int = 0) -> list[Ids]:
    random = Random(seed)
    return [(*(random.randrange(4, POISON) for _ in range(random.randrange(1, 9))), EOS) for _ in range(count)]


def poisoned(logit: float | None) -> TableScorer:
    """A scorer that gives this number for a source with POISON in it after two tokens, or raises if it is None."""
    good = random_table(VOCABULARY)

    def table(source: Ids, tokens: Ids) -> list[float]:
        if POISON not in source or len(tokens) < 2:
            return good(source, tokens)
        if logit is None:
            raise RuntimeError("cannot do this one")
        return [logit] * VOCABULARY

    return TableScorer(table)


def table_engine(scorer: TableScorer | None = None, limits: Limits | None = None) -> Engine:
    return Engine(SearchDecoder(scorer or TableScorer(random_table(VOCABULARY))), limits)


def alone(source: Ids, options: SearchOptions) -> tuple[Hypothesis, ...]:
    return tuple(decode(TableScorer(random_table(VOCABULARY)), [source], options)[0])


def by_id(results: list[Result]) -> dict[int, Result]:
    assert len({result.id for result in results}) == len(results)
    return {result.id: result for result in results}


KINDS = [
    SearchOptions(beam_size=1),
    BEAM,
    SearchOptions(beam_size=5),
    SearchOptions(sample=True, n_best=3, seed=4),
    SearchOptions(beam_size=2, no_repeat_ngram=2),
]


@pytest.mark.parametrize("rows", [3, 12, 300])
def test_sentences_of_all_kinds_that_join_at_any_time_come_out_as_alone(rows: int) -> None:
    random = Random(rows)
    engine = table_engine(limits=Limits(rows=rows))
    results = []
    for id, source in enumerate(sources(40)):
        engine.submit(Request(id, source, KINDS[id % 5], (5, 6) if id == 7 else ()))
        for _ in range(random.randrange(4)):
            results += engine.step()
    results += engine.drain()
    found = by_id(results)
    assert not engine.busy
    assert all(hypothesis.tokens[:2] == (5, 6) for hypothesis in found.pop(7).hypotheses)
    for id, result in found.items():
        assert result == Result(id, alone(sources(40)[id], KINDS[id % 5]))


@pytest.mark.parametrize("options", [BEAM, SearchOptions(beam_size=1), replace(BEAM, no_repeat_ngram=2)])
def test_a_sentence_beside_a_busy_caller_takes_at_most_twice_its_steps_alone(options: SearchOptions) -> None:
    source = sources(1)[0]
    single = table_engine()
    drain(single, [Request(0, source, options)])
    engine = table_engine(limits=Limits(rows=12))
    kinds = [BEAM, SearchOptions(beam_size=2), SearchOptions(beam_size=4), SearchOptions(beam_size=1)]
    for id, other in enumerate(sources(60)):
        engine.submit(Request(id, other, replace(kinds[id % 4], min_length=8, max_length_offset=20)))
    for _ in range(6):
        engine.step()
    engine.submit(Request(100, source, options, caller=1))
    before, results = engine.steps, by_id(engine.step())
    while 100 not in results:
        results |= by_id(engine.step())
    assert results[100].hypotheses == alone(source, options)
    assert engine.steps - before <= 2 * single.steps + 1
    assert len(by_id([*results.values(), *engine.drain()])) <= 61


class CostlyGreedyDecoder(SearchDecoder):
    """A decoder in which a step of greedy search takes four times as long as a step of another search."""

    def cost(self, request: Request) -> int:
        return 4 if request.options.rows == 1 else 1


@pytest.mark.parametrize(("decoder", "bulk_steps"), [(SearchDecoder, 10), (CostlyGreedyDecoder, 25)])
def test_a_busy_caller_keeps_half_of_the_work_beside_another(decoder: type[SearchDecoder], bulk_steps: int) -> None:
    engine = Engine(decoder(TableScorer(random_table(VOCABULARY))), Limits(rows=12))
    for id, source in enumerate(sources(40)):
        engine.submit(Request(id, source, replace(BEAM, min_length=8)))
    engine.step()
    id, asked, rows = 100, False, []
    for _ in range(200):
        if not asked:
            engine.submit(Request(id := id + 1, (5, EOS), SearchOptions(beam_size=1), caller=1))
        before = engine.rows
        asked = id not in by_id(engine.step())
        rows.append(engine.rows - before)
    # A single row counts as 3 rows: 4 steps for one with 12 rows. With four times the cost, 1 step.
    assert sum(number > 1 for number in rows[:50]) == bulk_steps


def test_an_interactive_batch_takes_all_steps_of_its_turn_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, advance = list[tuple[int, int]](), SearchBatch.advance

    def several(batch: SearchBatch, steps: int = 1) -> list[int]:
        """Take several steps in one call."""
        asked.append((batch.search.tokens.shape[0], steps))
        return next((finished for _ in range(steps) if (finished := advance(batch))), [])

    monkeypatch.setattr(SearchBatch, "advance", several)
    engine = table_engine(limits=Limits(rows=24, small_divisor=12))
    for id, source in enumerate(sources(8)):
        engine.submit(Request(id, source, replace(BEAM, min_length=8)))
    engine.step()
    engine.submit(Request(100, sources(1)[0], SearchOptions(beam_size=1), caller=1))
    results = by_id(list(engine.drain()))
    assert asked[:4] == [(24, 1), (1, 12), (24, 1), (1, 12)]  # a row counts as 2 rows: 12 steps for one with 24 rows
    assert all(steps == 1 for rows, steps in asked if rows > 1)
    assert results[100].hypotheses == alone(sources(1)[0], SearchOptions(beam_size=1))
    assert results[7].hypotheses == alone(sources(8)[7], replace(BEAM, min_length=8))


def test_cancelled_sentences_leave_and_the_others_do_not_notice() -> None:
    engine = table_engine(limits=Limits(rows=18))  # six sentences; the others wait
    for id, source in enumerate(sources(10)):
        engine.submit(Request(id, source, replace(BEAM, min_length=5)))
    results = engine.step()
    engine.cancel([1, 3, 8, 12345])
    results += engine.drain()
    assert sorted(by_id(results)) == [0, 2, 4, 5, 6, 7, 9]
    assert all(result.hypotheses == alone(sources(10)[result.id], replace(BEAM, min_length=5)) for result in results)


@pytest.mark.parametrize("logit", [None, math.nan])
def test_a_failed_sentence_fails_alone_and_the_engine_goes_on(logit: float | None) -> None:
    texts = sources(8)
    texts[5] = (5, POISON, EOS)
    engine = table_engine(poisoned(logit))
    for _ in range(2):
        found = drain(engine, [Request(id, source, BEAM) for id, source in enumerate(texts)])
        assert ("RuntimeError: cannot do this one" if logit is None else "not finite") in found[5].problem
        assert not found.pop(5).hypotheses
        for id in found:
            assert found[id] == Result(id, alone(texts[id], BEAM))
