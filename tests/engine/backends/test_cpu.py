"""The compiled kernels find what the plain path finds; in int8, what a plain quantised model finds."""

import ctypes
import math
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, fields, replace
from functools import cache
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
from tests.decoding.reference import decode, drain
from tests.decoding.test_constrained_beam import wording
from tests.hypotheses import assert_same
from tests.kernels.conftest import BEAM, FOREIGN, KINDS, Ids, compile_model, odd_model, some_sources, translate

CPU = torch.device("cpu")
MBART = {"positions": "learned", "embedding_norm": True}
SHORT: dict[str, Any] = {"max_length_factor": 1.0, "max_length_offset": 6}
FEW: dict[str, Any] = {"max_length_factor": 0.0, "max_length_offset": 3}
PREFIX = (9, 8)
NEAR: dict[str, Any] = {"atol": 2e-5, "rtol": 1e-4}  # of logits: sums in another order


@dataclass(frozen=True)
class Case:
    """A search, and changes of the odd model.

    `prefix` begins every second translation, and `own` is the size of a source vocabulary.
    """

    options: SearchOptions = BEAM
    changes: Mapping[str, Any] = field(default_factory=dict)
    vocabulary: int = 77
    own: int | None = None
    prefix: Ids = ()
    sources: Sequence[Ids] | None = None

    def model(self) -> Transformer:
        tied = {} if self.own is None else {"tie_source": False}
        return odd_model(self.vocabulary, source_vocabulary=self.own, **{**self.changes, **tied})

    def inputs(self) -> tuple[list[Ids], list[Ids]]:
        sources = list(self.sources or some_sources(12, self.own or self.vocabulary))
        return sources, [self.prefix if number % 2 else () for number in range(len(sources))]


SEARCHES = (
    SearchOptions(beam_size=1, **SHORT),
    SearchOptions(beam_size=1, min_length=9, **SHORT),
    SearchOptions(beam_size=4, n_best=2, min_length=9, **SHORT),
    SearchOptions(beam_size=4, n_best=4, max_length=3),
    SearchOptions(beam_size=1, max_length=1),
    SearchOptions(beam_size=4, n_best=4, max_length=2, min_length=2),
    SearchOptions(beam_size=4, n_best=4, length_penalty=2.5, **SHORT),
    SearchOptions(beam_size=4, n_best=4, length_penalty=0.6, normalization=Normalization.GNMT, **SHORT),
    SearchOptions(beam_size=9, n_best=9, **SHORT),
    SearchOptions(beam_size=9, n_best=9, min_length=4, **SHORT),  # of many hypotheses, some would end earlier
    SearchOptions(beam_size=2, no_repeat_ngram=1, max_length_factor=1.0, max_length_offset=3),
    SearchOptions(beam_size=4, n_best=4, no_repeat_ngram=2, max_length_factor=1.0, max_length_offset=30),
    SearchOptions(beam_size=1, no_repeat_ngram=3, max_length_factor=1.0, max_length_offset=40),
    SearchOptions(beam_size=1, no_repeat_ngram=1, max_length=90, min_length=90, max_length_offset=90),
)
FORCED = (
    (BEAM, (9,)),
    (SearchOptions(beam_size=4, n_best=4, max_length=2), (9,)),
    (SearchOptions(beam_size=4, n_best=2, min_length=9, length_penalty=0.6, **SHORT), (9,)),
    (SearchOptions(beam_size=4, n_best=2, max_length_factor=0.0, max_length_offset=0), (9,)),
    (SearchOptions(beam_size=3, n_best=2, min_length=9, **SHORT), PREFIX),
    (SearchOptions(beam_size=3, n_best=3, no_repeat_ngram=1, **SHORT), (9, 8, 7, 9, 10, 11, 12)),
    (SearchOptions(beam_size=1, **SHORT), PREFIX),
)
LAST = SearchOptions(beam_size=3, max_length=20, min_length=20, max_length_offset=30)
LONG = [*some_sources(8, 500), (*range(4, 254), 3)]
USED = {"d_model": 256, "d_ff": 512, "heads": 4, "max_length": 256}
CASES = {
    **{f"{norm} {activation}": Case(changes={"norm": norm, "activation": activation}) for norm, activation in KINDS},
    **{str(o): Case(o, dict(zip(("norm", "activation"), KINDS[n % 6], strict=True))) for n, o in enumerate(SEARCHES)},
    **{f"{options} {prefix}": Case(options, prefix=prefix) for options, prefix in FORCED},
    **{f"{name}, {own}": Case(changes={name: FOREIGN[name]}, own=own) for name in FOREIGN for own in (None, 50)},
    **{f"foreign, {own}": Case(changes={**FOREIGN, "tie_source": not own}, own=own) for own in (None, 50, 120)},
    **{f"mbart, {own}": Case(changes=MBART, own=own) for own in (None, 50)},
    "few tokens": Case(SearchOptions(beam_size=5, n_best=5, **FEW), vocabulary=7),
    "fewer tokens than beams": Case(SearchOptions(beam_size=9, n_best=9, **FEW), vocabulary=7),
    "many beams": Case(SearchOptions(beam_size=90, n_best=90, **FEW)),
    "a size that is used": Case(replace(BEAM, max_length=40), USED, vocabulary=500, sources=LONG),
    "the last position": Case(LAST, {"max_length": 20}, sources=[(*range(4, 23), 3), (5, 3)] * 4),
}


@cache
def plain(name: str) -> tuple[Transformer, list[list[Hypothesis]]]:
    """The model of a case, and what the plain path finds."""
    case, model = CASES[name], CASES[name].model()
    sources, prefixes = case.inputs()
    return model, decode(ModelScorer(model), sources, case.options, prefixes)


def assert_plain(library: ctypes.CDLL, name: str) -> None:
    case, (model, expected) = CASES[name], plain(name)
    sources, prefixes = case.inputs()
    found = translate(compile_model(library, model), sources, case.options, Limits(rows=24), prefixes)
    assert_same(found, expected)
    for one, prefix in ((one, prefix) for each, prefix in zip(found, prefixes, strict=True) for one in each):
        assert one.tokens[: len(prefix)] == prefix and not any(one.token_log_probabilities[: len(prefix)])


@pytest.mark.parametrize("name", CASES)
def test_float32_is_equal_to_the_plain_path(library: ctypes.CDLL, name: str) -> None:
    assert_plain(library, name)


@pytest.mark.parametrize("name", ["pre relu", "post gelu", "pre swish", "foreign, 50", "many beams"])
def test_the_kernels_of_each_target_are_equal_to_the_plain_path(target_library: ctypes.CDLL, name: str) -> None:
    assert_plain(target_library, name)


@pytest.mark.parametrize("activation", ["relu", "gelu", "swish"])
def test_activations_of_large_numbers(target_library: ctypes.CDLL, activation: str) -> None:
    """Where e^-v is more than a float32 can hold, swish is 0."""
    model = odd_model(activation=activation)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith("inner.bias"):
                parameter.copy_(torch.tensor([-120.0, -90.0, -88.6, -80.0, 0.0, 80.0, 90.0, 120.0]).repeat(5))
            elif name.endswith("outer.weight"):
                parameter.mul_(0.01)
    expected = decode(ModelScorer(model), some_sources(12), BEAM)
    assert_same(translate(compile_model(target_library, model), some_sources(12)), expected)


@pytest.mark.parametrize(
    ("request_", "problem"),
    [
        (Request(0, (5, 3), SearchOptions(max_length=1), (9,)), "fewer than max_length"),
        (Request(0, (5, 3), SearchOptions(sample=True)), r"sample is true; accepted by the backend cpu: false"),
    ],
)
def test_requests_that_are_refused(library: ctypes.CDLL, request_: Request, problem: str) -> None:
    with pytest.raises(RequestError, match=problem):
        CompiledDecoder(compile_model(library, odd_model())).begin([request_])


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


def test_all_kinds_share_the_steps_of_one_batch(library: ctypes.CDLL) -> None:
    """Searches that need all logits cost more."""
    decoder = CompiledDecoder(compile_model(library, odd_model()))
    options = [SearchOptions(beam_size=beams, min_length=5, max_length=5) for beams in (1, 3, 2)]
    requests = [Request(id, (5, 6, 3), each) for id, each in enumerate(options)]
    engine = Engine(decoder)
    drain(engine, requests)
    assert (engine.steps, engine.rows) == (5, 5 * (1 + 3 + 2))
    constrained = Request(4, (5, 6, 3), options[1], constraints=wording(77, {(20, 21): 1}))
    assert [decoder.cost(request) for request in (*requests, constrained)] == [1, 1, 1, 2]


MIXED = [
    SearchOptions(beam_size=1, **SHORT),
    SearchOptions(beam_size=2, n_best=2, length_penalty=0.5, max_length=7),
    SearchOptions(beam_size=5, n_best=3, min_length=8, normalization=Normalization.GNMT, **SHORT),
    SearchOptions(beam_size=3, **SHORT),
    SearchOptions(beam_size=4, no_repeat_ngram=1, **SHORT),
    SearchOptions(beam_size=8, **SHORT),  # with words
]


def mixed_requests(vocabulary: int, count: int) -> list[Request]:
    """Requests of all kinds: their beams differ, and some need the best tokens, some all logits, some neither."""
    words, sources = wording(vocabulary, {(20, 21): 1, (30,): 1}, [(40, 41)]), some_sources(count, vocabulary, 40, 3)
    return [
        Request(n, sources[n], MIXED[n % 6], [(), PREFIX, (11,)][n % 5 % 3], n % 5, words if n % 6 == 5 else None)
        for n in range(count)
    ]


@st.composite
def histories(draw: st.DrawFn) -> list[tuple[int, int]]:
    """(steps before, sentences that join then), of 24 sentences in all."""
    left, found = 24, []
    while left:
        joining = draw(st.integers(1, left))
        found.append((draw(st.integers(0, 7)), joining))
        left -= joining
    return found


@pytest.mark.parametrize("int8", [False, True])
def test_joining_leaving_and_changing_places_changes_nothing(target_library: ctypes.CDLL, int8: bool) -> None:
    """To the last bit as alone."""
    decoder = CompiledDecoder(compile_model(target_library, odd_model(500, d_model=48, d_ff=112), int8))
    requests = mixed_requests(500, 24)
    alone = {request.id: drain(Engine(decoder), [request])[request.id] for request in requests}
    assert len({tuple(one.tokens for one in result.hypotheses) for result in alone.values()}) > 20
    assert all(30 in one.tokens for number in range(5, 24, 6) for one in alone[number].hypotheses)
    for rows in (1, 12, 300):
        assert drain(Engine(decoder, Limits(rows=rows)), requests) == alone

    @settings(max_examples=8)
    @given(histories(), st.permutations(range(24)), st.integers(0, 2**32), st.booleans())
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
                more = decoder.begin([requests[id] for id in joining])
                if batch is None:
                    batch = more
                else:
                    batch.extend(more)
                inside += joining
        assert found.keys() == alone.keys()
        assert all(tuple(hypotheses) == alone[id].hypotheses for id, hypotheses in found.items())

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
def test_logits_are_those_of_both_models(
    target_library: ctypes.CDLL, norm: str, activation: str, size: dict[str, int]
) -> None:
    """Few numbers, for one that lies between two bytes may be rounded to the other, and all that follows differs."""
    model = odd_model(norm=norm, activation=activation, encoder_layers=1, decoder_layers=1, **size)
    sources = some_sources(8, longest=6)
    targets = torch.randint(4, 77, (8, 4), generator=torch.Generator().manual_seed(1))
    targets[:, 0] = 2
    exact = forced_plain(model, sources, targets)
    rounded = forced_plain(quantised_model(model), sources, targets)
    torch.testing.assert_close(forced(compile_model(target_library, model), sources, targets), exact, **NEAR)
    loss = (rounded - exact).abs().mean()
    found = forced(compile_model(target_library, model, int8=True), sources, targets)
    assert 0.001 < loss / exact.std() < 0.2, "rounding ought to show, and not to destroy the model"
    assert (found - rounded).abs().mean() < loss / 10


@pytest.mark.parametrize("state", [1.0, -1.0])
@torch.inference_mode()
def test_the_largest_products_are_exact(target_library: ctypes.CDLL, state: float) -> None:
    """Weights and states that all become 127 or -127, where sixteen bits hold the sum of two products, not of four."""
    model = odd_model(norm="pre", d_model=64)
    model.get_parameter("decoder.norm.weight").fill_(0)
    model.get_parameter("decoder.norm.bias").fill_(state)
    signs = torch.tensor([1.0, -1.0]).repeat(39)[:77]
    model.get_parameter("embedding.tokens.weight").copy_(signs[:, None].expand(-1, 64))
    logits = forced(compile_model(target_library, model, int8=True), some_sources(3), torch.tensor([[2], [2], [2]]))
    torch.testing.assert_close(logits, (64 * state * signs).expand(3, 1, -1), atol=0, rtol=1e-5)


@torch.inference_mode()
def test_reordered_rows_go_on_from_others(target_library: ctypes.CDLL) -> None:
    """Two beams change places and one is doubled, in a sentence that lies between others."""
    model = odd_model()
    scorers: list[Scorer[Any]] = [ModelScorer(model), CompiledScorer(compile_model(target_library, model))]
    random = Random(1)
    states = [scorer.start(some_sources(3), 3) for scorer in scorers]
    for _ in range(40):
        tokens = torch.tensor([random.randrange(4, 77) for _ in range(9)])
        one, other = (scorer.step(state, tokens) for scorer, state in zip(scorers, states, strict=True))
        torch.testing.assert_close(other, one, **NEAR)
        rows = torch.tensor([3 * (row // 3) + random.randrange(3) for row in range(9)])
        for state in states:
            state.reorder(rows)


# Numbers that are not finite ---------------------------------------------------------------------


def broken(weight: str, value: float) -> Transformer:
    model = odd_model()
    with torch.no_grad():
        model.get_parameter(weight).view(-1)[-1] = value
    return model


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize(
    "weight",
    [
        "encoder.layers.0.self_attention.key.weight",
        "decoder.layers.0.cross_attention.value.weight",
        "decoder.layers.1.feed_forward.inner.weight",
        "decoder.norm.bias",
    ],
)
def test_scores_that_are_not_finite_are_a_problem(target_library: ctypes.CDLL, weight: str, value: float) -> None:
    for beams in (1, 40):
        options = SearchOptions(beam_size=beams, n_best=beams, **SHORT)
        requests = [Request(id, source, options) for id, source in enumerate(some_sources(5))]
        expected = decode(ModelScorer(broken(weight, value)), some_sources(5), options)
        finite = [id for id, hypotheses in enumerate(expected) if hypotheses]
        for int8 in (False, True):
            model = compile_model(target_library, broken(weight, value), int8)
            results = drain(Engine(CompiledDecoder(model)), requests)
            for id in set(range(5)) - set(finite):
                assert not results[id].hypotheses and "not finite" in results[id].problem
            if not int8:  # what is left of an infinity after ReLU is 0
                assert_same([results[id].hypotheses for id in finite], [expected[id] for id in finite])


@pytest.mark.parametrize("int8", [False, True])
def test_a_sentence_that_is_not_finite_leaves_nothing_behind(target_library: ctypes.CDLL, int8: bool) -> None:
    """The embedding of a token is NaN: sentences with it fail, and those that take their place do not."""
    weights = odd_model()
    with torch.no_grad():
        weights.embedding.tokens.weight[76] = math.nan
    model, sources = compile_model(target_library, weights, int8), some_sources(20, 76)
    scorer = CompiledScorer(model)
    batch = scorer.start([(5, 76, 3), (76, 3), (7, 3)], 2)
    assert scorer.step(batch, torch.tensor([2, 2, 2, 2, 2, 76])).isnan().all(1).tolist() == [True] * 4 + [False, True]
    batch.extend(scorer.start(sources[:3], 2))
    batch.select(torch.tensor([3, 4, 5]))
    rows = scorer.step(batch, torch.full((6,), 2))[:, :76]
    alone = scorer.step(scorer.start(sources[:3], 2), torch.full((6,), 2))[:, :76]
    assert not rows.isnan().any() and rows.equal(alone)
