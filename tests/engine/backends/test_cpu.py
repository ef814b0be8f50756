"""The compiled kernels find what the plain path finds; in int8, what a plain quantised model finds."""

import ctypes
import math
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import fields, replace
from random import Random
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from mt.decoding.hypothesis import Hypothesis
from mt.decoding.options import Normalization, SearchOptions
from mt.decoding.scorer import ModelScorer, Scorer, padded, token_mask
from mt.engine.backends.compiled_scorer import CompiledScorer
from mt.engine.backends.cpu import CompiledDecoder
from mt.engine.engine import Engine
from mt.engine.requests import Request
from mt.engine.scheduler import Limits
from mt.errors import RequestError
from mt.kernels.library import CpuModel
from mt.kernels.quantization import Int8Weights, quantize_weights
from mt.kernels.structs import search_params
from mt.model.transformer import Transformer
from tests.decoding.reference import decode
from tests.decoding.test_constrained_beam import wording
from tests.hypotheses import assert_same
from tests.kernels.conftest import FOREIGN, KINDS, Ids, compile_model, odd_model, some_sources

CPU = torch.device("cpu")
MBART = {"positions": "learned", "embedding_norm": True}
SHORT: dict[str, Any] = {"max_length_factor": 1.0, "max_length_offset": 6}
FIVE: dict[str, Any] = {"min_length": 5, "max_length": 5}
BEAM = SearchOptions(beam_size=4, n_best=4, **SHORT)


def run(
    model: CpuModel,
    sources: Sequence[Ids],
    options: SearchOptions | Sequence[SearchOptions],
    limits: Limits | None = None,
    prefixes: Sequence[Ids] | None = None,
) -> list[list[Hypothesis]]:
    """All through an engine."""
    each = [options] * len(sources) if isinstance(options, SearchOptions) else options
    requests = [
        Request(id, source, wanted, prefixes[id] if prefixes else ())
        for id, (source, wanted) in enumerate(zip(sources, each, strict=True))
    ]
    found = run_requests(CompiledDecoder(model), requests, limits)
    return [found[id] for id in range(len(sources))]


def run_requests(
    decoder: CompiledDecoder, requests: Sequence[Request], limits: Limits | None = None
) -> dict[int, list[Hypothesis]]:
    """All through an engine, by id."""
    engine = Engine(decoder, limits)
    for request in requests:
        engine.submit(request)
    return {result.id: list(result.hypotheses) for result in engine.drain()}


@pytest.mark.parametrize(("norm", "activation"), KINDS)
@pytest.mark.parametrize(
    "options",
    [
        SearchOptions(beam_size=1, **SHORT),
        SearchOptions(beam_size=1, min_length=9, **SHORT),
        BEAM,
        SearchOptions(beam_size=4, **SHORT),
        SearchOptions(beam_size=4, n_best=2, min_length=9, **SHORT),
        SearchOptions(beam_size=4, n_best=4, max_length=3),
        SearchOptions(beam_size=4, n_best=2, max_length=1),
        SearchOptions(beam_size=1, max_length=1),
        SearchOptions(beam_size=4, n_best=4, max_length=2, min_length=2),
        SearchOptions(beam_size=4, n_best=4, length_penalty=0.0, **SHORT),
        SearchOptions(beam_size=4, n_best=4, length_penalty=2.5, **SHORT),
        SearchOptions(beam_size=4, n_best=4, length_penalty=0.6, normalization=Normalization.GNMT, **SHORT),
        SearchOptions(beam_size=9, n_best=9, **SHORT),
        SearchOptions(beam_size=2, no_repeat_ngram=1, max_length_factor=1.0, max_length_offset=3),
        SearchOptions(beam_size=4, n_best=4, no_repeat_ngram=2, max_length_factor=1.0, max_length_offset=30),
        SearchOptions(beam_size=1, no_repeat_ngram=3, max_length_factor=1.0, max_length_offset=40),
    ],
    ids=str,
)
def test_float32_is_equal_to_the_plain_path(
    library: ctypes.CDLL, norm: str, activation: str, options: SearchOptions
) -> None:
    model = odd_model(norm=norm, activation=activation)
    expected = decode(ModelScorer(model), some_sources(12), options)
    assert_same(run(compile_model(library, model), some_sources(12), options), expected)


@pytest.mark.parametrize("activation", ["relu", "gelu", "swish"])
def test_activations_of_large_numbers(library: ctypes.CDLL, activation: str) -> None:
    """Where e^-v is more than a float32 can hold, swish is 0."""
    model = odd_model(activation=activation)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith("inner.bias"):
                parameter.copy_(torch.tensor([-120.0, -90.0, -88.6, -80.0, 0.0, 80.0, 90.0, 120.0]).repeat(5))
            elif name.endswith("outer.weight"):
                parameter.mul_(0.01)
    expected = decode(ModelScorer(model), some_sources(12), BEAM)
    assert_same(run(compile_model(library, model), some_sources(12), BEAM), expected)


@pytest.mark.parametrize("source_vocabulary", [None, 50, 120])
@pytest.mark.parametrize("changed", [*({name: value} for name, value in FOREIGN.items()), FOREIGN], ids=str)
def test_options_of_other_toolkits(
    library: ctypes.CDLL, changed: dict[str, Any], source_vocabulary: int | None
) -> None:
    model = odd_model(source_vocabulary=source_vocabulary, **{**changed, "tie_source": source_vocabulary is None})
    sources = some_sources(12, source_vocabulary or 77)
    expected = decode(ModelScorer(model), sources, BEAM)
    assert_same(run(compile_model(library, model), sources, BEAM), expected)


def test_the_translations_that_are_compared_differ() -> None:
    found = decode(ModelScorer(odd_model()), some_sources(12), BEAM)
    assert len({each[0].tokens for each in found}) > 6
    assert len({len(each[0].tokens) for each in found}) > 3
    assert any(len(each[0].tokens) < len(source) + 5 for each, source in zip(found, some_sources(12), strict=True))


@pytest.mark.parametrize(("vocabulary", "beams"), [(7, 5), (7, 9), (77, 90)])
def test_few_tokens_for_many_beams(library: ctypes.CDLL, vocabulary: int, beams: int) -> None:
    model = odd_model(vocabulary)
    options = SearchOptions(beam_size=beams, n_best=beams, max_length_factor=0.0, max_length_offset=3)
    sources = some_sources(3, vocabulary)
    assert_same(run(compile_model(library, model), sources, options), decode(ModelScorer(model), sources, options))


def test_a_size_that_is_used(library: ctypes.CDLL) -> None:
    model = odd_model(500, d_model=256, d_ff=512, heads=4, max_length=256)
    sources = [*some_sources(6, 500), (*range(4, 254), 3)]
    found = run(compile_model(library, model), sources, BEAM)
    assert_same(found, decode(ModelScorer(model), sources, BEAM))


def test_sources_and_targets_up_to_the_last_position(library: ctypes.CDLL) -> None:
    model = odd_model(max_length=20)
    sources = [(*range(4, 23), 3), (5, 3)]
    options = SearchOptions(beam_size=3, max_length=20, min_length=20, max_length_offset=30)
    found = run(compile_model(library, model), sources, options)
    assert [len(each[0].tokens) for each in found] == [19, 19]
    assert_same(found, decode(ModelScorer(model), sources, options))


PREFIX = (9, 8)


@pytest.mark.parametrize("changes", [{"embedding_norm": True}, {"positions": "learned"}, MBART], ids=str)
@pytest.mark.parametrize("source_vocabulary", [None, 50])
def test_learned_positions_and_a_norm_of_the_embeddings(
    library: ctypes.CDLL, changes: dict[str, Any], source_vocabulary: int | None
) -> None:
    own = {} if source_vocabulary is None else {"tie_source": False}
    model, sources = odd_model(source_vocabulary=source_vocabulary, **changes, **own), some_sources(9, 50)
    expected = decode(ModelScorer(model), sources, BEAM)
    assert_same(run(compile_model(library, model), sources, BEAM), expected)
    plain = decode(ModelScorer(odd_model(source_vocabulary=source_vocabulary, **own)), sources, BEAM)
    assert [each[0].tokens for each in plain] != [each[0].tokens for each in expected]


@pytest.mark.parametrize(
    "options",
    [
        BEAM,
        SearchOptions(beam_size=1, **SHORT),
        SearchOptions(beam_size=4, n_best=4, max_length=2),
        SearchOptions(beam_size=4, n_best=2, min_length=9, length_penalty=0.6, **SHORT),
        SearchOptions(beam_size=4, n_best=2, max_length_factor=0.0, max_length_offset=0),
    ],
    ids=str,
)
@pytest.mark.parametrize("rows", [6, 300])
def test_a_forced_first_token(library: ctypes.CDLL, options: SearchOptions, rows: int) -> None:
    model, sources = odd_model(), some_sources(9)
    prefixes = [(9 + number,) if number % 3 else () for number in range(9)]
    compiled = compile_model(library, model)
    found = run(compiled, sources, options, Limits(rows=rows), prefixes)
    assert_same(found, decode(ModelScorer(model), sources, options, prefixes))
    assert all(
        one.tokens[: len(prefix)] == prefix for each, prefix in zip(found, prefixes, strict=True) for one in each
    )
    assert all(each[0].token_log_probabilities[0] == 0 for each, prefix in zip(found, prefixes, strict=True) if prefix)


def test_a_first_token_without_room_is_refused(library: ctypes.CDLL) -> None:
    decoder = CompiledDecoder(compile_model(library, odd_model()))
    with pytest.raises(RequestError, match="fewer than max_length"):
        decoder.begin([Request(0, (5, 3), SearchOptions(max_length=1), (9,))])


@pytest.mark.parametrize(
    ("options", "prefix"),
    [
        (SearchOptions(beam_size=3, n_best=3, no_repeat_ngram=2, **SHORT), ()),
        (SearchOptions(beam_size=3, n_best=2, min_length=9, **SHORT), PREFIX),
        (SearchOptions(beam_size=3, n_best=3, **SHORT), PREFIX),
        (SearchOptions(beam_size=3, n_best=3, no_repeat_ngram=1, **SHORT), (9, 8, 7, 9, 10, 11, 12)),
        (SearchOptions(beam_size=3, n_best=3, max_length=3), PREFIX),
        (SearchOptions(beam_size=1, **SHORT), PREFIX),
        (SearchOptions(beam_size=1, no_repeat_ngram=1, **SHORT), ()),
        (SearchOptions(beam_size=1, no_repeat_ngram=1, max_length=90, min_length=90, max_length_offset=90), ()),
    ],
    ids=str,
)
@pytest.mark.parametrize("rows", [6, 300])
def test_prefixes_and_constraints_on_repetition(
    library: ctypes.CDLL, options: SearchOptions, prefix: Ids, rows: int
) -> None:
    model, sources = odd_model(), some_sources(9)
    prefixes = [prefix if number % 2 else () for number in range(9)]
    found = run(compile_model(library, model), sources, options, Limits(rows=rows), prefixes)
    assert_same(found, decode(ModelScorer(model), sources, options, prefixes), 1e-4)


def test_the_kernels_read_every_option() -> None:
    changed: dict[str, Any] = {
        "n_best": 2, "length_penalty": 0.5, "normalization": Normalization.GNMT, "max_length_factor": 1.0,
        "max_length_offset": 3, "max_length": 9, "min_length": 2, "no_repeat_ngram": 2,
        "beam_size": 6,
    }  # fmt: skip
    of_samples = {"sample", "temperature", "seed"}
    assert changed.keys() | of_samples == {field.name for field in fields(SearchOptions)}
    options = SearchOptions()
    for name, value in changed.items():
        params = search_params(replace(options, **{name: value}), 7)
        assert bytes(params) != bytes(search_params(options, 7)), name


@pytest.mark.parametrize("int8", [False, True])
def test_searches_of_all_kinds_in_one_batch(library: ctypes.CDLL, int8: bool) -> None:
    """Beams differ, and some need the best tokens, some all logits, some neither in this step.

    To the last bit as alone.
    """
    model, sources = compile_model(library, odd_model(), int8), some_sources(30)
    kinds = [
        SearchOptions(beam_size=1, **SHORT),
        SearchOptions(beam_size=2, **SHORT),
        SearchOptions(beam_size=5, n_best=4, **SHORT),
        SearchOptions(beam_size=3, n_best=3, min_length=6, **SHORT),
        SearchOptions(beam_size=3, **SHORT),
        SearchOptions(beam_size=4, no_repeat_ngram=1, **SHORT),
        SearchOptions(beam_size=8, **SHORT),
    ]
    prefixes = [(), PREFIX, (11,)]
    words = wording(model.vocabulary_size, {(20, 21): 1, (30,): 1}, [(40, 41)])
    requests = [
        Request(n, sources[n], kinds[n % 7].of(sources[n]), prefixes[n % 3], n % 5, words if n % 7 == 6 else None)
        for n in range(30)
    ]
    decoder = CompiledDecoder(model)
    alone = [run_requests(decoder, [request])[request.id] for request in requests]
    batch = decoder.begin(requests[:11])
    found: dict[int, list[Hypothesis]] = {}
    for step in range(100):
        if step < 19:
            batch.extend(decoder.begin(requests[11 + step : 12 + step]))
        done = batch.advance()
        found.update(zip(done, batch.results(done), strict=True))
    assert [found[n] for n in range(30)] == alone
    assert len({tuple(one.tokens for one in hypotheses) for hypotheses in alone}) > 25
    assert all(30 in one.tokens for n in range(6, 30, 7) for one in alone[n])
    for rows in (1, 12, 40, 300):
        assert run_requests(decoder, requests, Limits(rows=rows)) == dict(enumerate(alone))


def test_several_steps_in_one_call(library: ctypes.CDLL) -> None:
    model, sources = compile_model(library, odd_model(), int8=True), some_sources(4)
    requests = [Request(n, source, BEAM.of(source)) for n, source in enumerate(sources)]
    single, several = CompiledDecoder(model).begin(requests), CompiledDecoder(model).begin(requests)
    while not (finished := single.advance()):
        pass
    assert several.advance(single.steps - 1) == [] and several.steps == single.steps - 1
    assert several.advance(50) == finished and several.steps == single.steps
    assert several.results(finished) == single.results(finished)


def test_samples_are_refused(library: ctypes.CDLL) -> None:
    decoder = CompiledDecoder(compile_model(library, odd_model()))
    with pytest.raises(RequestError, match=r"sample is true; accepted by the backend cpu: false"):
        decoder.begin([Request(0, (5, 3), SearchOptions(sample=True))])


def test_all_kinds_share_the_steps_of_one_batch(library: ctypes.CDLL) -> None:
    """Searches that need all logits cost more."""
    decoder = CompiledDecoder(compile_model(library, odd_model()))
    options = [
        SearchOptions(beam_size=1, **FIVE),
        SearchOptions(beam_size=3, **FIVE),
        SearchOptions(beam_size=2, **FIVE),
    ]
    requests = [Request(id, (5, 6, 3), each) for id, each in enumerate(options)]
    engine = Engine(decoder)
    for request in requests:
        engine.submit(request)
    assert len(list(engine.drain())) == 3
    assert (engine.steps, engine.rows) == (5, 5 * (1 + 3 + 2))
    constrained = Request(4, (5, 6, 3), options[1], constraints=wording(77, {(20, 21): 1}))
    assert [decoder.cost(request) for request in (*requests, constrained)] == [1, 1, 1, 2]


MIXED = [
    BEAM,
    SearchOptions(beam_size=1, **SHORT),
    SearchOptions(beam_size=2, n_best=2, length_penalty=0.5, max_length=7),
    SearchOptions(beam_size=5, n_best=3, min_length=8, normalization=Normalization.GNMT, **SHORT),
]


@st.composite
def histories(draw: st.DrawFn) -> list[tuple[int, int]]:
    """(steps before, sentences that join then), of 14 sentences in all."""
    left, found = 14, []
    while left:
        joining = draw(st.integers(1, left))
        found.append((draw(st.integers(0, 7)), joining))
        left -= joining
    return found


@pytest.mark.parametrize("int8", [False, True])
def test_joining_leaving_and_changing_places_changes_nothing(library: ctypes.CDLL, int8: bool) -> None:
    model = compile_model(library, odd_model(), int8)
    decoder = CompiledDecoder(model)
    sources = some_sources(14, seed=3)
    wanted = [MIXED[number % len(MIXED)] for number in range(14)]
    alone = [run(model, [source], options)[0] for source, options in zip(sources, wanted, strict=True)]

    @settings(max_examples=40)
    @given(histories(), st.permutations(range(14)), st.integers(0, 2**32), st.booleans())
    def check(waves: list[tuple[int, int]], order: list[int], seed: int, keep: bool) -> None:
        random = Random(seed)
        inside: list[int] = []
        found: dict[int, list[Hypothesis]] = {}
        batch, queue = None, list(order)
        for before, count in [*waves, (10**6, 0)]:
            for _ in range(before):
                if batch is None or not inside:
                    break
                done = batch.advance()
                for place, hypotheses in zip(done, batch.results(done), strict=True):
                    assert found.setdefault(inside[place], hypotheses) == hypotheses
                stay = [place for place in range(len(inside)) if inside[place] not in found]
                if not stay or not keep or random.random() < 0.3:
                    random.shuffle(stay)
                    batch.select(stay)
                    inside = [inside[place] for place in stay]
            joining, queue = queue[:count], queue[count:]
            if joining:
                more = decoder.begin([Request(id, sources[id], wanted[id]) for id in joining])
                if batch is None:
                    batch = more
                else:
                    batch.extend(more)
                inside += joining
        assert [found[id] for id in range(14)] == alone  # to the last bit

    check()


@pytest.mark.parametrize("int8", [False, True])
def test_a_sentence_does_not_depend_on_its_neighbours(library: ctypes.CDLL, int8: bool) -> None:
    model = compile_model(library, odd_model(2000, d_model=48, d_ff=112), int8)
    sources = some_sources(16, 2000, longest=40, seed=5)
    alone = [run(model, [source], BEAM)[0] for source in sources]
    assert len({each[0].tokens for each in alone}) > 12

    @settings(max_examples=15)
    @given(st.permutations(range(16)), st.integers(1, 16), st.integers(1, 80))
    def check(order: list[int], count: int, rows: int) -> None:
        found = run(model, [sources[id] for id in order[:count]], BEAM, Limits(rows=rows))
        assert found == [alone[id] for id in order[:count]]

    check()


# int8 --------------------------------------------------------------------------------------------


def quantised(x: Tensor) -> Tensor:
    """Each row of [..., N] rounded to multiples of a 127th of its largest magnitude."""
    scale = x.abs().amax(-1, keepdim=True) / 127
    return torch.where(scale > 0, (x / scale).round() * scale, x)


def rounded_weight(weight: Tensor) -> Tensor:
    return torch.from_numpy(Int8Weights(dict(quantize_weights([("w", weight.detach().numpy())])))["w"])


class QuantisedLinear(nn.Module):
    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        self.weight, self.bias = rounded_weight(linear.weight), linear.bias

    def forward(self, x: Tensor) -> Tensor:
        return nn.functional.linear(quantised(x), self.weight, self.bias)


def quantised_model(model: Transformer) -> Transformer:
    model = deepcopy(model)
    for module in list(model.modules()):
        for name, child in list(module.named_children()):
            if isinstance(child, nn.Linear):
                setattr(module, name, QuantisedLinear(child))
    weight = rounded_weight(model.embedding.tokens.weight)
    model.embedding.tokens.weight = nn.Parameter(weight)
    model.embedding.project = lambda states: nn.functional.linear(quantised(states), weight)  # type: ignore[method-assign]
    return model


@torch.inference_mode()
def forced(model: CpuModel, sources: Sequence[Ids], targets: Tensor) -> Tensor:
    """Logits after each of targets [B, T], step by step: [B, T, V]."""
    scorer = CompiledScorer(model)
    state = scorer.start(sources, 1)
    return torch.stack([scorer.step(state, targets[:, step]) for step in range(targets.shape[1])], 1)


@torch.inference_mode()
def forced_plain(model: Transformer, sources: Sequence[Ids], targets: Tensor) -> Tensor:
    return model(padded(sources, 0, CPU), token_mask(sources, CPU), targets)


@pytest.mark.parametrize(("norm", "activation"), KINDS)
@pytest.mark.parametrize("size", [{}, {"d_model": 128, "d_ff": 192, "heads": 4}], ids=str)
def test_logits_are_those_of_the_plain_and_of_the_quantised_model(
    library: ctypes.CDLL, norm: str, activation: str, size: dict[str, int]
) -> None:
    """Few numbers, for one that lies between two bytes may be rounded to the other, and all that follows differs."""
    model = odd_model(norm=norm, activation=activation, encoder_layers=1, decoder_layers=1, **size)
    sources = some_sources(8, longest=6)
    targets = torch.randint(4, 77, (8, 4), generator=torch.Generator().manual_seed(1))
    targets[:, 0] = 2
    exact = forced_plain(model, sources, targets)
    rounded = forced_plain(quantised_model(model), sources, targets)
    torch.testing.assert_close(forced(compile_model(library, model), sources, targets), exact, atol=2e-5, rtol=1e-4)
    loss = (rounded - exact).abs().mean()
    found = forced(compile_model(library, model, int8=True), sources, targets)
    assert 0.001 < loss / exact.std() < 0.2, "rounding ought to show, and not to destroy the model"
    assert (found - rounded).abs().mean() < loss / 10


@pytest.mark.parametrize("state", [1.0, -1.0])
@torch.inference_mode()
def test_the_largest_products_are_exact(library: ctypes.CDLL, state: float) -> None:
    """Weights and states that all become 127 or -127, where sixteen bits hold the sum of two products, not of four."""
    model = odd_model(norm="pre", d_model=64)
    model.get_parameter("decoder.norm.weight").fill_(0)
    model.get_parameter("decoder.norm.bias").fill_(state)
    signs = torch.tensor([1.0, -1.0]).repeat(39)[:77]
    model.get_parameter("embedding.tokens.weight").copy_(signs[:, None].expand(-1, 64))
    logits = forced(compile_model(library, model, int8=True), some_sources(3), torch.tensor([[2], [2], [2]]))
    torch.testing.assert_close(logits, (64 * state * signs).expand(3, 1, -1), atol=0, rtol=1e-5)


@torch.inference_mode()
def test_reordered_rows_go_on_from_others(library: ctypes.CDLL) -> None:
    """Two beams change places and one is doubled, in a sentence that lies between others."""
    model = odd_model()
    scorers: list[Scorer[Any]] = [ModelScorer(model), CompiledScorer(compile_model(library, model))]
    random = Random(1)
    states = [scorer.start(some_sources(3), 3) for scorer in scorers]
    for _ in range(40):
        tokens = torch.tensor([random.randrange(4, 77) for _ in range(9)])
        one, other = (scorer.step(state, tokens) for scorer, state in zip(scorers, states, strict=True))
        torch.testing.assert_close(other, one, atol=2e-5, rtol=1e-4)
        rows = torch.tensor([3 * (row // 3) + random.randrange(3) for row in range(9)])
        for state in states:
            state.reorder(rows)


# Numbers that are none ---------------------------------------------------------------------------


def broken(weight: str, value: float, **changes: object) -> Transformer:
    model = odd_model(**changes)  # type: ignore[arg-type]
    with torch.no_grad():
        model.get_parameter(weight).view(-1)[-1] = value
    return model


@pytest.mark.parametrize("beams", [1, 4, 40])
@pytest.mark.parametrize("int8", [False, True])
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize(
    "weight",
    [
        "encoder.layers.0.self_attention.key.weight",
        "encoder.layers.1.feed_forward.inner.bias",
        "decoder.layers.0.cross_attention.value.weight",
        "decoder.layers.1.feed_forward.inner.weight",
        "decoder.layers.1.feed_forward.outer.weight",
        "decoder.norm.bias",
    ],
)
def test_scores_that_are_not_numbers_are_a_problem(
    library: ctypes.CDLL, weight: str, value: float, int8: bool, beams: int
) -> None:
    engine = Engine(CompiledDecoder(compile_model(library, broken(weight, value), int8)))
    options = SearchOptions(beam_size=beams, n_best=beams, **SHORT)
    for id, source in enumerate(some_sources(5)):
        engine.submit(Request(id, source, options))
    results = list(engine.drain())
    plain = decode(ModelScorer(broken(weight, value)), some_sources(5), options)
    for result in results:
        if not plain[result.id]:
            assert not result.hypotheses and "not finite" in result.problem
        elif not int8:  # what is left of an infinity after ReLU is 0
            assert [each.tokens for each in result.hypotheses] == [each.tokens for each in plain[result.id]]
    assert len(results) == 5


@pytest.mark.parametrize("int8", [False, True])
def test_a_sentence_that_is_not_a_number_leaves_nothing_behind(library: ctypes.CDLL, int8: bool) -> None:
    """One token's embedding is NaN: sentences with it fail, and those that take their place do not."""
    weights = odd_model()
    with torch.no_grad():
        weights.embedding.tokens.weight[76] = math.nan
    healthy = odd_model()
    with torch.no_grad():
        healthy.embedding.tokens.weight[76] = 0
    model, sources = compile_model(library, weights, int8), some_sources(20, 76)
    scorer = CompiledScorer(model)
    batch = scorer.start([(5, 76, 3), (76, 3), (7, 3)], 2)
    assert scorer.step(batch, torch.tensor([2, 2, 2, 2, 2, 76])).isnan().all(1).tolist() == [True] * 4 + [False, True]
    more = scorer.start(sources[:3], 2)
    batch.extend(more)
    batch.select(torch.tensor([3, 4, 5]))
    rows = scorer.step(batch, torch.full((6,), 2))[:, :76]
    alone = scorer.step(scorer.start(sources[:3], 2), torch.full((6,), 2))[:, :76]
    assert not rows.isnan().any() and rows.equal(alone)
