"""The numbers of int8 weights by hand, and that rounding rounded weights changes nothing."""

import ctypes
from typing import Any

import pytest
import torch
from torch import Tensor

from mt.kernels.library import CpuBatch, CpuModel, SearchParams
from mt.kernels.quantization import dequantize_weights, flaws, quantize, quantize_weights
from tests.kernels.conftest import FOREIGN, compile_model, odd_model, some_sources


def test_numbers_by_hand() -> None:
    weight = torch.tensor([[2.0, -4.0, 0.5, 127.0], [0.0, 0.0, 0.0, 0.0], [1e-35, 0.0, 0.0, 0.0], [0.25, -127, 9, 1]])
    bytes_, scale = quantize(weight)
    assert bytes_.tolist() == [[2, -4, 0, 127], [0] * 4, [0] * 4, [0, -127, 9, 1]]
    assert scale.tolist() == [1, 0, 0, 1]


def test_a_scale_has_sixteen_significant_bits() -> None:
    _, scale = quantize(torch.tensor([[127 * (1 + 2**-15)], [127 * (1 + 2**-16 + 2**-20)], [127 * (1 + 2**-18)]]))
    assert scale.tolist() == [1 + 2**-15, 1 + 2**-15, 1]


def test_rounded_weights_are_rounded_to_themselves() -> None:
    torch.manual_seed(0)
    weights = {"w": torch.randn(4000, 7) * torch.logspace(-34, 30, 4000).unsqueeze(1), "b": torch.randn(3)}
    stored = quantize_weights(weights)
    floats = dequantize_weights(stored)
    again = quantize_weights(floats)
    assert stored.keys() == again.keys() == {"w", "w_scale", "b"} and floats.keys() == {"w", "b"}
    assert all(torch.equal(stored[name], again[name]) for name in stored)
    error = (floats["w"] - weights["w"]).abs().amax(1)
    assert bool((error <= weights["w"].abs().amax(1) / 127 * 0.51 + 2e-30).all())


def test_positions_and_vectors_stay_as_they_are() -> None:
    stored = quantize_weights({"embedding.positions": torch.ones(2, 2), "norm.bias": torch.ones(2)})
    assert {name: tensor.dtype for name, tensor in stored.items()} == dict.fromkeys(stored, torch.float32)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"w": torch.zeros(2, dtype=torch.int8)}, r"w is int8 with the shape [2]; accepted: a matrix"),
        ({"w_scale": None}, "w is int8 and w_scale is missing"),
        ({"w_scale": torch.ones(3)}, "w_scale is torch.float32 [3]; accepted: torch.float32 [2]"),
        ({"w_scale": torch.ones(2).half()}, "w_scale is torch.float16 [2]; accepted: torch.float32 [2]"),
        ({"w_scale": torch.tensor([1.0, float("nan")])}, "w_scale has values that are negative or not finite"),
        ({"w_scale": torch.tensor([1.0, -1.0])}, "w_scale has values that are negative or not finite"),
        ({"w": torch.full((2, 4), -128, dtype=torch.int8)}, "w has the value -128; accepted: -127 to 127"),
    ],
)
def test_what_cannot_be_int8_weights(change: dict[str, Tensor | None], message: str) -> None:
    good = quantize_weights({"w": torch.ones(2, 4), "b": torch.ones(2)})
    assert list(flaws(good)) == []
    assert list(flaws({name: tensor for name, tensor in {**good, **change}.items() if tensor is not None})) == [message]


def logits(model: CpuModel) -> Tensor:
    sources = some_sources(12)
    batch = CpuBatch(model, 1)
    batch.join(sources, [SearchParams(longest=1, shortest=1, n_best=1)] * len(sources))
    return batch.logits(torch.arange(4, 4 + len(sources)))


@pytest.mark.parametrize("options", [{}, FOREIGN, {"d_model": 64, "heads": 4}], ids=["ours", "foreign", "whole panels"])
def test_the_kernels_round_to_the_same_numbers(library: ctypes.CDLL, options: dict[str, Any]) -> None:
    model = odd_model(**options)
    expected, exact = logits(compile_model(library, model, int8=True)), logits(compile_model(library, model))
    model.load_state_dict(dequantize_weights(quantize_weights(model.state_dict())))
    assert torch.equal(logits(compile_model(library, model, int8=True)), expected)
    rounded = logits(compile_model(library, model))
    assert not torch.equal(rounded, exact) and torch.allclose(rounded, expected, atol=0.5)
