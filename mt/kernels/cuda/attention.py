"""Attention of a decoder step over static memory: by torch, or by the CUDA kernel of attention.cu.

Shapes: those of static_decoder.py. A query matrix [R, .] has the queries of all heads, and then D numbers after the
first ones the newest keys and values. T keys are seen. There are H heads, and with pre-norm an additional last one,
whose values are ones, so that its result is ones for any query and keys.
"""

from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor
from torch.nn import functional as F

from mt.kernels.cuda.compiled import Kernel, load_kernels

KERNEL_SIZE = 64  # the size of a head for which there is a kernel
MAX_ROWS = 6  # of a slot for which there is a kernel
THREADS = 256  # of a block; WARPS * 32 in attention.cu


class StaticAttention(Protocol):
    """Attention over keys and values in static memory."""

    def append(self, query: Tensor, written: Tensor, steps: Tensor, columns: int, bias: Tensor) -> Tensor:
        """Store the newest keys and values of each row, and attend to the first `columns` columns.

        query [R, .] as described above, written [B, C, K, A, d_k] (changed in place), steps [B] the column of each slot
        to which its rows write, bias [B, 1, K, columns x K] -> [R, (A - H) d_k].
        """

    def attend(self, query: Tensor, seen: Tensor, bias: Tensor) -> Tensor:
        """Attend to `seen` [B, T, A, d_k]. query [R, .], bias [B, 1, 1 or K, T] -> [R, (A - H) d_k]."""


class TorchAttention:
    """Attention by torch's kernels."""

    def __init__(self, heads: int) -> None:
        self.heads = heads

    def append(self, query: Tensor, written: Tensor, steps: Tensor, columns: int, bias: Tensor) -> Tensor:
        slots, _, rows, _, size = written.shape
        new = query[:, self.heads * size :].view(slots, 1, rows, -1)
        written.flatten(3).scatter_(1, steps[:, None, None, None].expand_as(new), new)  # into a view
        return self.attend(query, written[:, :columns].flatten(1, 2), bias)

    def attend(self, query: Tensor, seen: Tensor, bias: Tensor) -> Tensor:
        heads, size = seen.shape[2] - self.heads, seen.shape[3]
        # The additional head uses the vectors that happen to follow the queries and keys of the other heads.
        queries = query[:, : heads * size].view(len(seen), -1, heads, size).transpose(1, 2)
        keys, values = (part.transpose(1, 2) for part in (seen[:, :, :heads], seen[:, :, self.heads :]))
        out = F.scaled_dot_product_attention(queries, keys, values, attn_mask=bias)
        return out.transpose(1, 2).flatten(2).flatten(0, 1)


class KernelAttention:
    """Attention by attention.cu, for bfloat16 and heads of 64 numbers. It equals `TorchAttention` except for rounding.

    torch's kernel for attention with a bias computes tiles of 64 queries, of which a slot fills at most 8. This one
    reads each key once for all rows of a slot, does not read keys that the bias hides from all of them, and stores the
    newest keys and values itself.
    """

    def __init__(self, heads: int, kernels: Sequence[Kernel]) -> None:
        self.heads = heads
        self._kernels = kernels  # for 1, 2, ... rows of a slot
        self._torch = TorchAttention(heads)  # for more rows of a slot than there are kernels for

    def append(self, query: Tensor, written: Tensor, steps: Tensor, columns: int, bias: Tensor) -> Tensor:
        if written.shape[2] > MAX_ROWS:
            return self._torch.append(query, written, steps, columns, bias)
        return self._launch(query, written[:, :columns].flatten(1, 2), bias, steps, append=True)

    def attend(self, query: Tensor, seen: Tensor, bias: Tensor) -> Tensor:
        if len(query) > MAX_ROWS * len(seen):
            return self._torch.attend(query, seen, bias)
        return self._launch(query, seen, bias, query, append=False)

    def _launch(self, query: Tensor, seen: Tensor, bias: Tensor, steps: Tensor, append: bool) -> Tensor:
        slots, tokens, vectors, size = seen.shape
        rows, heads = len(query) // slots, vectors - self.heads
        out = query.new_empty(len(query), heads * size)
        lanes = 8  # numbers of a vector of 16 bytes
        strides = [query.stride(0), seen.stride(0) // lanes, seen.stride(1) // lanes, bias.stride(0)]
        strides += [bias.stride(2) if bias.shape[2] > 1 else 0, steps.stride(0)]
        self._kernels[rows - 1](
            grid=(heads, slots, 1),
            block=(THREADS, 1, 1),
            args=[query, seen, bias, steps, out, tokens, self.heads, int(append), *strides],
        )
        return out


def static_attention(weight: Tensor, heads: int, size: int) -> StaticAttention:
    """Return the fastest attention for a model whose weights have the device and the dtype of `weight`.

    `heads` is H, and `size` d_k.
    """
    if weight.dtype == torch.bfloat16 and size == KERNEL_SIZE:
        names = tuple(f"attend_{rows}" for rows in range(1, MAX_ROWS + 1))
        if kernels := load_kernels("attention", names, weight.device):
            return KernelAttention(heads, kernels)
    return TorchAttention(heads)
