"""The numbers of int8 weights by hand, and that rounding rounded weights changes nothing."""

import ctypes
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from mt.arrays import Array
from mt.checkpoint import to_arrays
from mt.kernels.library import CpuBatch, CpuModel
from mt.kernels.quantization import Int8Weights, flaws, quantize, quantize_weights
from mt.kernels.structs import scores_only
from tests.kernels.conftest import FOREIGN, compile_model, odd_model, some_sources


def test_numbers_by_hand() -> None:
    rows = [[2.0, -4.0, 0.5, 127.0], [0.0, 0.0, 0.0, 0.0], [1e-35, 0.0, 0.0, 0.0], [0.25, -127, 9, 1]]
    bytes_, scale = quantize(np.array(rows, np.float32))
    assert bytes_.tolist() == [[2, -4, 0, 127], [0] * 4, [0] * 4, [0, -127, 9, 1]]
    assert scale.tolist() == [1, 0, 0, 1]
    rows = [[127 * (1 + 2**-15)], [127 * (1 + 2**-16 + 2**-20)], [127 * (1 + 2**-18)]]
    assert quantize(np.array(rows, np.float32))[1].tolist() == [1 + 2**-15, 1 + 2**-15, 1], "sixteen significant bits"


def test_rounded_weights_are_rounded_to_themselves() -> None:
    random = np.random.default_rng(0)
    matrix = random.standard_normal((4000, 7)) * np.logspace(-34, 30, 4000)[:, None]
    weights = {"w": matrix.astype(np.float32), "b": random.standard_normal(3, np.float32)}
    stored = dict(quantize_weights(weights.items()))
    floats = Int8Weights(stored)
    again = dict(quantize_weights(floats.items()))
    assert stored.keys() == again.keys() == {"w", "w_scale", "b"} and floats.keys() == {"w", "b"}
    assert all(np.array_equal(stored[name], again[name]) for name in stored)
    error = abs(floats["w"] - weights["w"]).max(1)
    assert (error <= abs(weights["w"]).max(1) / 127 * 0.51 + 2e-30).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"w": np.zeros(2, np.int8)}, r"w is int8 with the shape [2]; accepted: a matrix"),
        ({"w_scale": None}, "w is int8 and w_scale is missing"),
        ({"w_scale": np.ones(3, np.float32)}, "w_scale is float32 [3]; accepted: float32 [2]"),
        ({"w_scale": np.ones(2, np.float16)}, "w_scale is float16 [2]; accepted: float32 [2]"),
        ({"w_scale": np.array([1.0, np.nan], np.float32)}, "w_scale has values that are negative or not finite"),
        ({"w_scale": np.array([1.0, -1.0], np.float32)}, "w_scale has values that are negative or not finite"),
        ({"w": np.full((2, 4), -128, np.int8)}, "w has the value -128; accepted: -127 to 127"),
    ],
)
def test_what_cannot_be_int8_weights(change: dict[str, Array | None], message: str) -> None:
    good = dict(quantize_weights({"w": np.ones((2, 4), np.float32), "b": np.ones(2, np.float32)}.items()))
    assert list(flaws(good)) == []
    assert list(flaws({name: array for name, array in {**good, **change}.items() if array is not None})) == [message]


def logits(model: CpuModel) -> NDArray[np.float32]:
    sources = some_sources(12)
    batch = CpuBatch(model)
    batch.join(sources, [scores_only(1)] * len(sources))
    return batch.logits(range(4, 4 + len(sources)))


@pytest.mark.parametrize("options", [{}, FOREIGN, {"d_model": 64, "heads": 4}], ids=["ours", "foreign", "whole panels"])
def test_the_kernels_round_to_the_same_numbers(target_library: ctypes.CDLL, options: dict[str, Any]) -> None:
    model = odd_model(**options)
    expected, exact = (logits(compile_model(target_library, model, int8)) for int8 in (True, False))
    rounded_weights = Int8Weights(dict(quantize_weights(to_arrays(model.state_dict()).items())))
    model.load_state_dict({name: torch.from_numpy(array) for name, array in rounded_weights.items()})
    assert np.array_equal(logits(compile_model(target_library, model, int8=True)), expected)
    rounded = logits(compile_model(target_library, model))
    assert not np.array_equal(rounded, exact) and np.allclose(rounded, expected, atol=0.5)
