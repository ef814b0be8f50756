import math

import pytest
import torch
from torch.testing import assert_close

from mt.config import ModelConfig
from mt.model.dropout import dropout
from mt.model.embedding import position_table

CONFIG = ModelConfig(encoder_layers=1, decoder_layers=1, d_model=16, d_ff=8, heads=2, dropout=0.0, max_length=32)


@pytest.mark.parametrize(
    ("layout", "position", "dimension", "expected"),
    [
        ("interleaved", 0, 0, 0.0),  # sin 0
        ("interleaved", 0, 1, 1.0),  # cos 0
        ("interleaved", 3, 2, math.sin(3 / 10)),  # 2i = 2 of 8: 10000^(2/8) = 10
        ("interleaved", 50, 5, math.cos(50 / 100)),
        ("interleaved", 700, 6, math.sin(700 / 1000)),
        ("concatenated", 3, 1, math.sin(3 / 10)),  # i = 1 of 4
        ("concatenated", 700, 7, math.cos(700 / 1000)),
        ("tensor2tensor", 3, 0, math.sin(3)),
        ("tensor2tensor", 700, 3, math.sin(700 / 10_000)),  # the last of four sines: 1 / 10000
        ("tensor2tensor", 700, 5, math.cos(700 / 10_000 ** (1 / 3))),
    ],
)
def test_positions_of_other_toolkits(layout: str, position: int, dimension: int, expected: float) -> None:
    changes = {"d_model": 8, "positions": layout}
    table = position_table(CONFIG.model_copy(update=changes), 1000)
    assert table[position, dimension].item() == pytest.approx(expected, abs=1e-6)
    later = position_table(CONFIG.model_copy(update={**changes, "first_position": 2}), 998)
    assert_close(later, table[2:], atol=0, rtol=0)


@pytest.mark.parametrize("p", [0.1, 0.5])
def test_dropout_zeroes_at_its_rate_and_scales_the_rest(p: float) -> None:
    torch.manual_seed(0)
    dropped = dropout(torch.ones(40_000, 4), p)
    assert sorted(set(dropped.flatten().tolist())) == pytest.approx([0, 1 / (1 - p)])
    five_deviations = 5 * math.sqrt(p * (1 - p) / 40_000)
    # Four neighbours share a random number, so each of its four parts has to have the rate, alone and with the others.
    assert (dropped == 0).float().mean(0).tolist() == pytest.approx([p] * 4, abs=five_deviations)
    both = ((dropped[:, :-1] == 0) & (dropped[:, 1:] == 0)).float().mean(0)
    assert both.tolist() == pytest.approx([p * p] * 3, abs=five_deviations)


@pytest.mark.parametrize("shape", [(), (3,), (2, 3, 5), (0, 4)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_dropout_keeps_shape_and_type(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    dropped = dropout(torch.ones(shape, dtype=dtype), 0.5)
    assert dropped.shape == shape
    assert dropped.dtype == dtype


def test_the_gradient_passes_where_the_value_did() -> None:
    x = torch.ones(1000, requires_grad=True)
    dropped = dropout(x, 0.25)
    dropped.sum().backward()
    assert x.grad is not None
    assert torch.equal(x.grad, dropped.detach())
