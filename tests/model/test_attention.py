import math

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from mt.config import ModelConfig
from mt.model.attention import AttentionFunction, attention, fused_attention
from mt.model.dropout import dropout
from mt.model.embedding import position_table

PATHS = [attention, fused_attention]


def random_qkv(queries: int, keys: int) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(queries * 100 + keys)
    q = torch.randn(2, 4, queries, 8, generator=generator)
    return q, torch.randn(2, 4, keys, 8, generator=generator), torch.randn(2, 4, keys, 8, generator=generator)


@pytest.mark.parametrize(("dtype", "near"), [(torch.float32, 1e-5), (torch.bfloat16, 0.03)])
@pytest.mark.parametrize(
    ("queries", "keys", "shape"),
    [(1, 1, None), (3, 5, None), (3, 5, (2, 1, 1, 5)), (4, 4, (4, 4)), (3, 5, (2, 4, 3, 5))],
)
def test_reference_equals_fused(
    queries: int, keys: int, shape: tuple[int, ...] | None, dtype: torch.dtype, near: float
) -> None:
    q, k, v = (x.to(dtype) for x in random_qkv(queries, keys))
    mask = None
    if shape:
        mask = torch.rand(shape, generator=torch.Generator().manual_seed(0)) < 0.6
        mask[..., 0] = True
    exact = attention(q.float(), k.float(), v.float(), mask)
    assert_close(fused_attention(q, k, v, mask).float(), exact, atol=near, rtol=near)


@pytest.mark.parametrize("attend", PATHS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_causal_query_attends_to_no_later_key(attend: AttentionFunction, dtype: torch.dtype) -> None:
    q, k, v = (x.to(dtype) for x in random_qkv(5, 5))
    causal = attend(q, k, v, None, 0.0, True)
    for length in range(1, 6):  # the last of the first `length` queries attends to all of as many keys
        alone = attend(q[:, :, length - 1 : length], k[:, :, :length], v[:, :, :length], None, 0.0, False)
        assert_close(causal[:, :, length - 1 : length], alone, atol=1e-5 if dtype == torch.float32 else 0.02, rtol=0)


def test_dropout_falls_on_the_weights() -> None:
    # All keys alike, all values 1: each of the 100 weights is 1/100, kept as 1/75 with probability 0.75.
    q, k, v = torch.zeros(1, 1, 50, 4), torch.zeros(1, 1, 100, 4), torch.ones(1, 1, 100, 4)
    torch.manual_seed(0)
    kept = attention(q, k, v, None, 0.25)[0, 0, :, 0] * 75
    assert_close(kept, kept.round(), atol=1e-3, rtol=0)
    assert 70 < kept.mean() < 80
    assert kept.min() < kept.max()


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
