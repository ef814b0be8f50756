"""The kernels' cross-attention of given pairs is that of the model in torch."""

import ctypes
from typing import Any

import numpy as np
import pytest

from mt.scoring.model_attention import ModelAttention
from tests.kernels.conftest import FOREIGN, KINDS, compile_model, odd_model, some_sources

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
        np.testing.assert_allclose(weights, expected, atol=2e-5)


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


def test_no_pairs(library: ctypes.CDLL) -> None:
    assert compile_model(library, odd_model()).cross_attention([]) == []
