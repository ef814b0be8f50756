"""The kernels' cross-attention of given pairs is that of the model in torch."""

import ctypes
from typing import Any

import numpy as np
import pytest

from mt.decoding.options import SearchOptions
from mt.scoring.attention import CrossAttention
from mt.scoring.model_attention import ModelAttention
from tests.kernels.conftest import FOREIGN, KINDS, compile_model, odd_model, some_sources, translate

PAIRS = [(source, target[:-1]) for source, target in zip(some_sources(12), some_sources(12, seed=2), strict=True)]
LONG = [(tuple(range(4, 64)), tuple(range(5, 60))), (tuple(range(10, 70)), (9,))]  # a chunk of their own


@pytest.mark.parametrize(
    "changed",
    [
        *({"norm": norm, "activation": activation} for norm, activation in KINDS),
        FOREIGN,
        {"positions": "learned", "embedding_norm": True},
        {"decoder_layers": 1, "heads": 4},
    ],
    ids=str,
)
def test_float32_is_equal_to_torch(target_library: ctypes.CDLL, changed: dict[str, Any]) -> None:
    model = odd_model(source_vocabulary=None if changed.get("tie_source", True) else 77, **changed)
    found = compile_model(target_library, model).cross_attention([*PAIRS, *LONG])
    for weights, expected in zip(found, ModelAttention(model)([*PAIRS, *LONG]), strict=True):
        assert weights.shape == expected.shape
        np.testing.assert_allclose(weights, expected, atol=1e-4)


def test_a_pair_does_not_depend_on_the_others(target_library: ctypes.CDLL) -> None:
    model = compile_model(target_library, odd_model(), int8=True)
    together = model.cross_attention([*PAIRS, *LONG])
    for pair, weights in zip([*PAIRS, *LONG], together, strict=True):
        np.testing.assert_array_equal(model.cross_attention([pair])[0], weights)


def test_int8_weights_are_near_float32(target_library: ctypes.CDLL) -> None:
    models = (compile_model(target_library, odd_model(), int8) for int8 in (False, True))
    exact, quantized = (model.cross_attention(PAIRS) for model in models)
    differences = [abs(one - other).mean() for one, other in zip(exact, quantized, strict=True)]
    assert 0 < max(differences) < 0.02


@pytest.mark.parametrize("int8", [False, True])
@pytest.mark.parametrize("layers", [1, 3])
@pytest.mark.parametrize("options", [SearchOptions(), SearchOptions(beam_size=5, n_best=3)], ids=["greedy", "beam"])
def test_a_search_records_attention(
    target_library: ctypes.CDLL, options: SearchOptions, layers: int, int8: bool
) -> None:
    model = compile_model(target_library, odd_model(decoder_layers=layers), int8)
    sources = [*some_sources(12), tuple(range(4, 64))]
    prefixes = [source[:2] if len(source) > 4 else () for source in sources]
    for source, hypotheses in zip(sources, translate(model, sources, options, prefixes=prefixes), strict=True):
        weights = model.cross_attention([(source, one.tokens) for one in hypotheses])
        for one, expected in zip(hypotheses, map(CrossAttention, weights), strict=True):
            assert one.attention is not None
            np.testing.assert_allclose(np.asarray(one.attention), expected.mean(), atol=0.02 if int8 else 2e-5)


@pytest.mark.parametrize(
    ("pair", "problem"),
    [
        (((), (5,)), "a source is empty"),
        (((77, 3), (5,)), "outside of the vocabulary"),
        (((5, 3), (-1,)), "outside of the vocabulary"),
        (((5,) * 65, (5,)), "longer than the model has positions"),
    ],
)
def test_pairs_that_cannot_be_used(library: ctypes.CDLL, pair: Any, problem: str) -> None:
    with pytest.raises(RuntimeError, match=problem):
        compile_model(library, odd_model()).cross_attention([((5, 3), (6,)), pair])
