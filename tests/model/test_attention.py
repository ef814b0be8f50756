import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from mt.model.attention import AttentionFunction, attention, fused_attention

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
