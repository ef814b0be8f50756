"""A search that keeps to a shortlist finds what the plain search finds when it is shown no other tokens."""

import ctypes
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any, Self

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from mt import Translator
from mt.data.shortlist import build_shortlist
from mt.decoding.options import SearchOptions, SpecialIds
from mt.decoding.scorer import ModelScorer
from mt.engine.scheduler import Limits
from mt.kernels.shortlist import Shortlist, save_shortlist
from mt.tokenizer import EOS, Tokenizer
from tests.conftest import sentences, write_model
from tests.decoding.reference import decode, drain
from tests.hypotheses import assert_same
from tests.kernels.conftest import BEAM, Ids, compile_model, odd_model, some_sources, translate

GREEDY = replace(BEAM, beam_size=1, n_best=1)


def some_shortlist(vocabulary: int, always: int, allowed: int, seed: int = 0, rare: Ids = ()) -> Shortlist:
    """`always` tokens in all sentences, and up to `allowed` for each token of the source."""
    random = Random(seed)
    each = [sorted(random.sample(range(vocabulary), random.randint(0, allowed))) for _ in range(vocabulary)]
    return Shortlist(
        np.array(sorted({EOS, *random.sample(range(vocabulary), always)}), np.int32),
        np.cumsum([0, *map(len, each)]),
        np.array([id for ids in each for id in ids], np.int32),
        np.array(rare, np.int32),
    )


def whole(vocabulary: int) -> Shortlist:
    none = np.zeros(vocabulary + 1, np.int64)
    return Shortlist(np.arange(vocabulary, dtype=np.int32), none, np.empty(0, np.int32), np.empty(0, np.int32))


@dataclass
class LimitedState:
    inner: Any
    beams: int
    allowed: Tensor  # bool [B, V]

    def reorder(self, rows: Tensor) -> None:
        self.inner.reorder(rows)

    def select(self, sentences: Tensor) -> None:
        self.inner.select(sentences)
        self.allowed = self.allowed[sentences]

    def extend(self, other: Self) -> None:
        raise NotImplementedError


@dataclass(frozen=True)
class LimitedScorer:
    """The plain path, in which only the tokens of a shortlist have a probability."""

    scorer: ModelScorer
    shortlist: Shortlist
    special: SpecialIds = field(default_factory=SpecialIds)
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))

    def start(self, sources: Sequence[Sequence[int]], beams: int) -> LimitedState:
        allowed = torch.zeros(len(sources), self.shortlist.vocabulary_size, dtype=torch.bool)
        for place, source in enumerate(sources):
            allowed[place, self.shortlist.ids(source)] = True
        return LimitedState(self.scorer.start(sources, beams), beams, allowed)

    def step(self, state: LimitedState, tokens: Tensor) -> Tensor:
        forbidden = ~state.allowed.repeat_interleave(state.beams, 0)
        return self.scorer.step(state.inner, tokens).masked_fill(forbidden, -math.inf)


@pytest.mark.parametrize(
    "options",
    [GREEDY, BEAM, replace(BEAM, n_best=2, min_length=9), SearchOptions(beam_size=90, n_best=9, max_length=4)],
    ids=str,
)
@pytest.mark.parametrize(
    ("vocabulary", "always", "allowed"), [(77, 5, 4), (77, 0, 3), (77, 30, 70), (500, 70, 40), (500, 0, 0)]
)
def test_float32_is_equal_to_the_plain_search(
    target_library: ctypes.CDLL, vocabulary: int, always: int, allowed: int, options: SearchOptions
) -> None:
    """Also with more beams than tokens."""
    model, shortlist = odd_model(vocabulary), some_shortlist(vocabulary, always, allowed)
    sources = some_sources(12, vocabulary)
    expected = decode(LimitedScorer(ModelScorer(model), shortlist), sources, options)
    assert_same(translate(compile_model(target_library, model), sources, options, shortlist=shortlist), expected)


@pytest.mark.parametrize("int8", [False, True])
@pytest.mark.parametrize("options", [GREEDY, BEAM], ids=str)
def test_shortlists_that_do_not_limit(target_library: ctypes.CDLL, options: SearchOptions, int8: bool) -> None:
    model, sources = compile_model(target_library, odd_model(300, d_model=48), int8), some_sources(12, 300)
    plain = translate(model, sources, options)
    assert translate(model, sources, options, shortlist=whole(300)) == plain  # to the last bit
    by_source = Shortlist(  # as parts of their own, which are summed in another order
        np.array([EOS], np.int32),
        np.arange(301) * 300,
        np.tile(np.arange(300, dtype=np.int32), 300),
        np.empty(0, np.int32),
    )
    assert_same(translate(model, sources, options, shortlist=by_source), plain)

    rare = tuple(sorted({source[0] for source in sources[:3]} - {EOS}))
    shortlists = [some_shortlist(300, 30, 3, rare=ids) for ids in ((), rare)]
    limited, found = (translate(model, sources, options, shortlist=each) for each in shortlists)
    free = [bool(set(rare) & set(source)) for source in sources]
    assert 2 <= sum(free) < 12 and all(a != b for a, b in zip(plain, limited, strict=True))
    assert found == [a if whole else b for a, b, whole in zip(plain, limited, free, strict=True)]  # to the last bit


@pytest.mark.parametrize("int8", [False, True])
def test_a_sentence_does_not_depend_on_its_neighbours(library: ctypes.CDLL, int8: bool) -> None:
    model = compile_model(library, odd_model(900, d_model=48, d_ff=112), int8)
    sources = some_sources(16, 900, longest=40, seed=5)
    shortlist = some_shortlist(900, 60, 20, rare=sources[3][:1])
    alone = [translate(model, [source], shortlist=shortlist)[0] for source in sources]
    assert len({hypotheses[0].tokens for hypotheses in alone}) > 12
    for source, hypotheses in zip(sources, alone, strict=True):
        assert {token for one in hypotheses for token in one.tokens} <= set(shortlist.ids(source).tolist())

    @settings(max_examples=15)
    @given(st.permutations(range(16)), st.integers(1, 16), st.integers(1, 80))
    def check(order: list[int], count: int, rows: int) -> None:
        found = translate(model, [sources[id] for id in order[:count]], limits=Limits(rows=rows), shortlist=shortlist)
        assert found == [alone[id] for id in order[:count]]

    check()


def found_by(translator: Translator, texts: Sequence[str]) -> list[Ids]:
    """What the engine makes of each text, before anything is asked again."""
    requests = [request for text in texts if (request := translator.request(text)) is not None]
    results = drain(translator.engine, requests)
    return [results[request.id].hypotheses[0].tokens for request in requests]


@pytest.mark.parametrize("dtype", ["float32", "int8", "bfloat16"])
def test_a_model_has_its_shortlist_beside_it(library: ctypes.CDLL, tmp_path: Path, dtype: str) -> None:
    folder, texts = write_model(tmp_path / "small", ["en-de"]), sentences(10)
    tokenizer = Tokenizer.load(folder / "tokenizer.model")
    without = Translator.load(folder, "cpu", dtype, 1)
    before = found_by(without, texts)
    shortlist = build_shortlist(tokenizer.pieces(range(len(tokenizer))), EOS, [], [])
    save_shortlist(folder, shortlist, tokenizer.digest)
    translator = Translator.load(folder, "cpu", dtype, 1)
    found = found_by(translator, texts)
    assert not without.shortlist and translator.shortlist == (dtype != "bfloat16"), "which is not in the kernels"
    assert (found == before) == (dtype == "bfloat16")
    if translator.shortlist:
        for text, tokens in zip(texts, found, strict=True):
            assert set(tokens) <= set(shortlist.ids([*tokenizer.encode(text), EOS]).tolist())
