"""Scaled dot-product attention, and its multi-head form (Vaswani et al. 2017, section 3.2).

Shapes: B batch, H heads, T queries, S keys, D d_model, d_k = D / H. A mask is boolean, True where attending is allowed,
and can be broadcast to [B, H, T, S].
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from mt.model.module import Module

AttentionFunction = Callable[[Tensor, Tensor, Tensor, Tensor | None, float, bool], Tensor]


def causal_mask(length: int, device: torch.device) -> Tensor:
    """Return the causal mask, bool [T, T]: True where query position t may attend to key position s, that is s <= t."""
    return torch.ones(length, length, dtype=torch.bool, device=device).tril()


def attention_weights(q: Tensor, k: Tensor, mask: Tensor | None = None, causal: bool = False) -> Tensor:
    """Return softmax(Q K^T / sqrt(d_k)) of equation 1: [B, H, T, S].

    q is [B, H, T, d_k] and k is [B, H, S, d_k]. The mask must allow each query at least one key. With `causal`, T and S
    are equal, and the mask is the causal mask: `mask` must be None.
    """
    assert not (causal and mask is not None), "a causal mask is the only mask"
    if causal:
        mask = causal_mask(q.shape[-2], q.device)
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    return scores.softmax(dim=-1)


def attention(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None, dropout: float = 0.0, causal: bool = False
) -> Tensor:
    """Return softmax(Q K^T / sqrt(d_k)) V, equation 1.

    q is [B, H, T, d_k], k and v are [B, H, S, d_k], the result is [B, H, T, d_k]. This is the reference for
    `fused_attention`. `dropout` is the probability that an attention weight becomes 0. `mask` and `causal` are those of
    `attention_weights`.
    """
    return nn.functional.dropout(attention_weights(q, k, mask, causal), dropout) @ v


def fused_attention(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None, dropout: float = 0.0, causal: bool = False
) -> Tensor:
    """Return the result of `attention`, computed by the fused kernel that torch chooses for the device.

    bf16 on a CPU runs `attention` itself, because the fused kernel with gradients takes six times as long (B = 128, H =
    4, T = S = 16).
    """
    if q.dtype == torch.bfloat16 and q.device.type == "cpu":
        return attention(q, k, v, mask, dropout, causal)
    return nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=dropout, is_causal=causal)


def attention_mask(mask: Tensor, dtype: torch.dtype) -> Tensor:
    """Return `mask` [B, S] of keys for `fused_attention`: converted to biases 0 and -inf on a GPU, unchanged on a CPU.

    Without this conversion, each layer would convert the mask again. The GPU kernels require that the rows of the
    biases begin at multiples of 8 numbers.
    """
    if mask.device.type == "cpu":
        return mask
    width = mask.shape[1]
    bias = torch.zeros(len(mask), width + -width % 8, dtype=dtype, device=mask.device)[:, :width]
    return bias.masked_fill_(~mask, -math.inf)


class MultiHeadAttention(Module):
    """Multi-head attention: Concat(head_1 .. head_h) W^O with head_i = attend(Q W_i^Q, K W_i^K, V W_i^V).

    With `causal`, a position attends only to itself and to earlier positions: the self-attention of a decoder.
    """

    def __init__(
        self,
        d_model: int,
        heads: int,
        dropout: float = 0.0,
        attend: AttentionFunction = fused_attention,
        causal: bool = False,
    ) -> None:
        super().__init__()
        self.heads = heads
        self.dropout = dropout
        self.causal = causal
        self.attention = attend
        self.query = nn.Linear(d_model, d_model)
        self.key = nn.Linear(d_model, d_model)
        self.value = nn.Linear(d_model, d_model)
        self.output = nn.Linear(d_model, d_model)

    def forward(self, x: Tensor, memory: Tensor, mask: Tensor | None = None) -> Tensor:
        """Attend from x [B, T, D] to memory [B, S, D]. Return [B, T, D]. `mask` is None if the attention is causal."""
        keys, values = self.keys_values(memory)
        return self._attend(x, keys, values, mask, self.causal)

    def extra_repr(self) -> str:
        return f"heads={self.heads}"

    def keys_values(self, memory: Tensor) -> tuple[Tensor, Tensor]:
        """Return the keys and values of memory [B, S, D], each [B, H, S, d_k]. A decoder cache can store them."""
        return self._split(self.key(memory)), self._split(self.value(memory))

    def attend(self, x: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None = None) -> Tensor:
        """Attend from x [B, T, D] to keys and values, each [B, H, S, d_k]. Return [B, T, D].

        Each position may attend to all keys that `mask` allows, also if `causal` is true.
        """
        return self._attend(x, keys, values, mask, causal=False)

    def weights(self, x: Tensor, memory: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return the attention weights [B, H, T, S] that `forward` computes from the same arguments."""
        return attention_weights(self._split(self.query(x)), self._split(self.key(memory)), mask, self.causal)

    def _attend(self, x: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None, causal: bool) -> Tensor:
        dropout = self.dropout if self.training else 0.0
        heads = self.attention(self._split(self.query(x)), keys, values, mask, dropout, causal)
        joined: Tensor = self.output(heads.transpose(1, 2).flatten(2))  # [B, H, T, d_k] -> [B, T, D]
        return joined

    def _split(self, x: Tensor) -> Tensor:
        """Split x [B, T, D] into heads [B, H, T, d_k]."""
        return x.view(*x.shape[:-1], self.heads, -1).transpose(1, 2)
