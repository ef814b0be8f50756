"""The kernels' search with required and forbidden words finds what the search in torch finds."""

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random

import pytest
import torch

from mt.decoding.options import Normalization, SearchOptions, SpecialIds
from mt.decoding.scorer import ModelScorer
from mt.decoding.term_constraints import TermConstraints
from mt.engine.backends.cpu import CompiledDecoder
from mt.engine.backends.cuda import GraphDecoder
from mt.engine.backends.torch import SearchDecoder
from mt.engine.engine import Engine
from mt.engine.requests import Request, Result
from tests.decoding.reference import drain
from tests.decoding.test_constrained_beam import wording
from tests.hypotheses import assert_same
from tests.kernels.conftest import Ids, compile_model, odd_model, some_sources

SHORT = SearchOptions(beam_size=8, n_best=3, max_length_factor=1.0, max_length_offset=16)
VOCABULARY = 77


def random_constraints(random: Random) -> TermConstraints:
    """One or two required words, some twice, some with cues, and up to three forbidden ones, over few ids."""
    words = list({tuple(random.sample(range(4, 40), random.randint(1, 3))) for _ in range(random.randint(1, 5))})
    needed = {word: random.choice([1, 1, 1, 2]) for word in words[: random.randint(1, 2)]}
    ids = range(4, VOCABULARY)
    cues: dict[Ids, Sequence[int]] = {word: random.sample(ids, random.randint(0, 4)) for word in needed}
    joined = random.sample(ids, random.randint(0, 20))
    return wording(VOCABULARY, needed, [word for word in words[2:] if len(word) > 1], cues, joined)


def requests(options: SearchOptions, count: int = 40, seed: int = 0, prefix: Ids = ()) -> list[Request]:
    random = Random(seed)
    sources = enumerate(some_sources(count, VOCABULARY, seed=seed + 1))
    return [Request(id, source, options, prefix, constraints=random_constraints(random)) for id, source in sources]


def in_torch(wanted: Sequence[Request]) -> dict[int, Result]:
    return drain(Engine(SearchDecoder(ModelScorer(odd_model()))), wanted)


def assert_found(library: ctypes.CDLL, wanted: Sequence[Request], expected: Mapping[int, Result]) -> None:
    found = drain(Engine(CompiledDecoder(compile_model(library, odd_model()))), wanted)
    assert_same([found[id].hypotheses for id in expected], [result.hypotheses for result in expected.values()])


@pytest.mark.parametrize(
    ("options", "prefix"),
    [
        (SHORT, ()),
        (SHORT, (50,)),  # such as the token of a language, with which no word begins
        (SHORT, (6, 50, 7, 8)),  # in which words may occur
        (replace(SHORT, no_repeat_ngram=1), ()),
        (replace(SHORT, no_repeat_ngram=2), (50, 51)),
        (replace(SHORT, beam_size=16, n_best=1), ()),
        (replace(SHORT, beam_size=1, n_best=1), ()),
        (replace(SHORT, beam_size=5, n_best=5, min_length=9), ()),
        (SearchOptions(beam_size=8, n_best=2, max_length=3), ()),
        (replace(SHORT, beam_size=6, n_best=1, length_penalty=0.6, normalization=Normalization.GNMT), ()),
    ],
    ids=str,
)
def test_equal_to_the_search_in_torch(target_library: ctypes.CDLL, options: SearchOptions, prefix: Ids) -> None:
    wanted = requests(options, prefix=prefix)
    expected = in_torch(wanted)
    assert_found(target_library, wanted, expected)
    successes = sum(bool(result.hypotheses) for result in expected.values())
    assert successes >= (0 if options.max_length == 3 else 2 if options.beam_size == 1 else 10)


@pytest.mark.parametrize("n_best", [1, 3])
def test_equal_to_the_search_in_torch_with_a_threshold(target_library: ctypes.CDLL, n_best: int) -> None:
    options = replace(SHORT, n_best=n_best)
    wanted = requests(options)
    for id, request in enumerate(wanted):
        assert request.constraints is not None
        wanted[id] = replace(request, constraints=replace(request.constraints, threshold=0.5 + id % 4))
    expected, exhaustive = in_torch(wanted), in_torch(requests(options))
    assert_found(target_library, wanted, expected)
    graphs = drain(Engine(GraphDecoder(odd_model(), SpecialIds(), torch.device("cpu"))), wanted)
    assert_same([graphs[id].hypotheses for id in expected], [result.hypotheses for result in expected.values()])
    tokens = [[[one.tokens for one in each.hypotheses] for each in found.values()] for found in (expected, exhaustive)]
    assert sum(one != other for one, other in zip(*tokens, strict=True)) > 5  # the threshold acts
    assert sum(len(result.hypotheses) == n_best for result in expected.values()) > 10
