"""Steps over static slots find what the plain path finds, run as they stand and replayed from a recording."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mt.config import ModelConfig
from mt.decoding.hypothesis import Hypothesis
from mt.decoding.options import SearchOptions, SpecialIds
from mt.decoding.scorer import ModelScorer
from mt.engine.backends.cuda import GraphBatch, GraphDecoder
from mt.engine.backends.static_batch import GraphLimits
from mt.engine.engine import Engine
from mt.engine.requests import Request
from mt.kernels.cuda.graphs import CudaGraphs, Eager
from mt.model.transformer import Transformer
from tests.decoding.reference import decode, drain
from tests.hypotheses import assert_same
from tests.recording import Recording

CPU = torch.device("cpu")
VOCABULARY = 50
PLAIN = SearchOptions(beam_size=4, n_best=4, max_length_factor=1.0, max_length_offset=8)
GREEDY = SearchOptions(beam_size=1, max_length_factor=1.0, max_length_offset=8)
SMALL = GraphLimits(rows=32)
Ids = tuple[int, ...]

on_gpu = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")]


def tiny(seed: int = 0, **changes: Any) -> Transformer:
    """A random model whose translations differ from sentence to sentence."""
    torch.manual_seed(seed)
    numbers = {"encoder_layers": 1, "decoder_layers": 2, "d_model": 16, "d_ff": 24, "heads": 4, "max_length": 64}
    model = Transformer(ModelConfig.model_validate({**numbers, "dropout": 0.0, **changes}), VOCABULARY).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 1:
                parameter.add_(torch.randn_like(parameter), alpha=0.1)
    return model


def sources(count: int, longest: int = 20, seed: int = 1) -> list[Ids]:
    random = Random(seed)
    return [(*(random.randrange(4, VOCABULARY) for _ in range(random.randint(1, longest))), 3) for _ in range(count)]


def ask(wanted: Sequence[tuple[Ids, SearchOptions, Ids]]) -> list[Request]:
    return [Request(number, *asked) for number, asked in enumerate(wanted)]


def plain(model: Transformer, requests: Sequence[Request]) -> list[list[Hypothesis]]:
    """What each finds alone on the plain path."""
    scorer = ModelScorer(model, device=next(model.parameters()).device)
    return [decode(scorer, [request.source], request.options, [request.prefix])[0] for request in requests]


def assert_plain(found: Mapping[int, Sequence[Hypothesis]], model: Transformer, requests: Sequence[Request]) -> None:
    """Assert that each request found what it finds alone on the plain path."""
    expected = plain(model, requests)
    assert_same([found[request.id] for request in requests], expected)


def run(
    decoder: GraphDecoder, waves: Sequence[Sequence[Request]], gap: int, drop: Callable[[int], bool] = lambda step: True
) -> dict[int, list[Hypothesis]]:
    """Waves of requests, one every `gap` steps, all in one batch; the finished leave when `drop` says so."""
    batch: GraphBatch | None = None
    inside: list[int] = []
    found: dict[int, list[Hypothesis]] = {}
    coming = list(waves)
    for step in range(2000):
        if coming and step % gap == 0:
            wave = coming.pop(0)
            joined = begin(decoder, wave)
            if batch is None:
                batch = joined
            else:
                batch.extend(joined)
            inside += [request.id for request in wave]
        assert batch is not None
        places = batch.advance()
        for place, hypotheses in zip(places, batch.results(places), strict=True):
            assert inside[place] not in found  # told once
            found[inside[place]] = hypotheses
        if drop(step):
            left = [place for place, number in enumerate(inside) if number not in found]
            batch.select(left)
            inside = [inside[place] for place in left]
        if len(found) == sum(map(len, waves)):
            return found
    raise AssertionError(f"only {sorted(found)} finished")


def begin(decoder: GraphDecoder, requests: Sequence[Request]) -> GraphBatch:
    batch = decoder.begin(requests)
    assert isinstance(batch, GraphBatch)
    return batch


Build = Callable[..., GraphDecoder]


@pytest.fixture(params=["eager", "recording", pytest.param("cuda", marks=on_gpu)])
def decoders(request: pytest.FixtureRequest) -> Build:
    def build(model: Transformer, limits: GraphLimits = SMALL) -> GraphDecoder:
        if request.param == "cuda":
            device = torch.device("cuda")
            return GraphDecoder(model.to(device), SpecialIds(), device, CudaGraphs(device), limits)
        executor = Recording(CPU) if request.param == "recording" else Eager(CPU)
        return GraphDecoder(model, SpecialIds(), CPU, executor, limits)

    return build


FEATURES = [
    (PLAIN, ()),
    (PLAIN, (7, 8, 9)),
    (replace(PLAIN, no_repeat_ngram=2), ()),
    (replace(PLAIN, no_repeat_ngram=1, min_length=6), (5,)),
    (PLAIN, ()),
]
LEARNED = {"positions": "learned", "embedding_norm": True}


@pytest.mark.parametrize(
    ("changes", "searches", "gap"),
    [
        ({"norm": "post"}, [(replace(PLAIN, length_penalty=0.6, beam_size=2, n_best=1), ())] * 7, 0),
        ({"norm": "pre"}, [(GREEDY, ())] * 7, 0),
        (LEARNED, [(PLAIN, (9,))] * 7, 0),
        (LEARNED, [(GREEDY, (9,))] * 7, 0),
        ({}, FEATURES, 4),
    ],
    ids=["length penalty", "greedy", "learned positions", "learned positions, greedy", "features join and leave"],
)
def test_equal_to_the_plain_path(
    decoders: Build, changes: dict[str, Any], searches: list[tuple[SearchOptions, Ids]], gap: int
) -> None:
    model = tiny(**changes)
    requests = ask([(source, *search) for source, search in zip(sources(len(searches)), searches, strict=True)])
    waves = [[request] for request in requests] if gap else [requests]
    assert_plain(run(decoders(model), waves, gap or 1), model, requests)


@pytest.mark.parametrize("options", [PLAIN, GREEDY])
def test_sentences_outgrow_their_static_batch(decoders: Build, options: SearchOptions) -> None:
    model = tiny()
    short, long = sources(6, longest=4), sources(4, longest=60, seed=2)
    requests = ask([(source, options, ()) for source in [*short, *long, *sources(3, seed=3)]])
    decoder = decoders(model, GraphLimits(rows=2))
    waves = [requests[:2], requests[2:6], requests[6:10], requests[10:]]
    found = run(decoder, waves, gap=5)
    assert len({static.shape.slots for static in decoder.pool.idle}) > 1
    keys = [key for _, key in decoder.pool.programs]
    assert len({key.slots for key in keys}) > 1 and {key.width for key in keys} == {32, 64}
    assert_plain(found, model, requests)


@pytest.mark.parametrize(("length", "columns"), [(40, 128), (130, 160)])
def test_long_translations_fill_their_columns(decoders: Build, length: int, columns: int) -> None:
    model = tiny(max_length=length if length > 64 else 64)
    options = replace(PLAIN, min_length=length, max_length=length, max_length_offset=200)
    requests = ask([((5, 6, 3), options, ()), ((7, 3), replace(options, min_length=0), ())])
    decoder = decoders(model)
    found = run(decoder, [requests], gap=1, drop=lambda step: False)
    assert [static.shape.columns for _, static in decoder.pool.lent] == [columns]
    assert len(found[0][0].tokens) == length - 1
    assert_plain(found, model, requests)


def finished(batch: GraphBatch, count: int) -> dict[int, list[Hypothesis]]:
    """What `count` sentences of a batch find, by their places."""
    found: dict[int, list[Hypothesis]] = {}
    while len(found) < count:
        places = batch.advance()
        found.update(zip(places, batch.results(places), strict=True))
    return found


def test_two_batches_that_have_begun_become_one(decoders: Build) -> None:
    model = tiny()
    requests = ask([(source, PLAIN, ()) for source in sources(5, longest=12)])
    decoder = decoders(model)
    first, second = begin(decoder, requests[:2]), begin(decoder, requests[2:])
    assert [first.advance() for _ in range(6)] == [[]] * 6
    assert [second.advance() for _ in range(2)] == [[]] * 2
    first.extend(second)
    del second
    assert_plain(finished(first, 5), model, requests)


def test_samples_are_drawn_by_the_reference() -> None:
    model, options = tiny(), replace(GREEDY, sample=True, n_best=3, seed=5)
    decoder = GraphDecoder(model, SpecialIds(), CPU, limits=SMALL)
    requests = ask([(source, options, ()) for source in sources(3)])
    assert decoder.cost(requests[0]) > decoder.cost(ask([((5, 3), GREEDY, ())])[0])
    results = drain(Engine(decoder), requests)
    assert_plain({id: result.hypotheses for id, result in results.items()}, model, requests)


def test_scores_that_are_not_finite_stay_with_their_sentence(decoders: Build) -> None:
    model = tiny(tie_source=False)
    with torch.no_grad():
        model.get_parameter("source_embedding.tokens.weight")[49] = torch.nan
    requests = ask([(source, PLAIN, ()) for source in ((5, 49, 3), (5, 6, 7, 3), (8, 9, 3), (4, 3))])
    found = run(decoders(model), [requests[:2], requests[2:3], requests[3:]], gap=9)  # the third takes the slot
    assert found[0] == []
    assert_plain(found, model, requests)


def test_cancelled_sentences_leave_nothing_behind(decoders: Build) -> None:
    model = tiny()
    requests = ask([(source, PLAIN, ()) for source in sources(4)])
    decoder = decoders(model)
    batch = begin(decoder, requests)
    batch.select([0, 1, 2])  # before the first step, 3 gets no slot
    for _ in range(3):
        assert batch.advance() == []
    batch.select([2, 0])  # 1 is given up, the others change places
    batch.extend(begin(decoder, requests[3:]))
    found = finished(batch, 3)
    assert_plain({id: found[place] for place, id in enumerate((2, 0, 3))}, model, [requests[n] for n in (0, 2, 3)])


arrivals = st.lists(st.tuples(st.integers(1, 3), st.integers(1, 25)), min_size=1, max_size=5)


@settings(max_examples=6)
@given(arrivals, st.integers(1, 7), st.integers(1, 200), st.integers(1, 5))
@example([(3, 24), (1, 18), (1, 5), (2, 24)], 7, 1, 5)  # the longest leaves, and fewer columns are needed
def test_any_arrivals_find_the_same(waves: list[tuple[int, int]], gap: int, rows: int, drop: int) -> None:
    model = tiny()
    texts = [sources(count, longest, seed=number) for number, (count, longest) in enumerate(waves)]
    requests = ask([(source, PLAIN, ()) for wave in texts for source in wave])
    coming = iter(requests)
    grouped = [[next(coming) for _ in wave] for wave in texts]
    decoder = GraphDecoder(model, SpecialIds(), CPU, limits=GraphLimits(rows=rows))
    assert_plain(run(decoder, grouped, gap, lambda step: step % drop == 0), model, requests)


def test_what_is_lent_comes_back_and_idle_memory_is_bounded() -> None:
    requests = ask([(source, PLAIN, ()) for source in sources(6)])
    decoder = GraphDecoder(tiny(), SpecialIds(), CPU, limits=GraphLimits(rows=4, programs=2))
    batch = begin(decoder, requests[:3])
    batch.advance()
    pool = decoder.pool
    assert not pool.idle and [static.bytes > 0 for _, static in pool.lent] == [True]
    batch.select([])
    assert pool.idle_bytes > 0
    again = begin(decoder, requests[:3])
    again.advance()
    assert len(pool.lent) == 1 and not pool.idle  # the same
    del again  # as after an error: its static batch is lent to the next
    begin(decoder, requests[:3]).advance()
    assert len(pool.lent) == 1 and not pool.idle
    run(decoder, [requests[:1], requests[1:3], requests[3:]], gap=3)
    run(decoder, [ask([((5, 3), replace(PLAIN, max_length_offset=150), ())])], gap=1)
    assert [static.shape.columns for static in pool.idle] == [128, 256]
    assert len(pool.programs) == 2
    idle = len(pool.idle)
    pool.limits = replace(pool.limits, bytes=pool.idle_bytes - 1)
    run(decoder, [requests[3:]], gap=1)
    assert len(pool.idle) == idle - 1
    pool.limits = replace(pool.limits, bytes=0)
    last = begin(decoder, requests)
    last.advance()
    last.select([])
    assert not pool.idle and not pool.lent and not pool.programs
