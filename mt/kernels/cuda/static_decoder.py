"""Decoder step over static memory, equal to `Transformer.decode_step`. It can be captured as a CUDA graph.

Shapes: B slots, one sentence each; K rows a sentence; C columns, one a target token; S source tokens; L layers;
H heads, D d_model, d_k = D / H, V vocabulary.
"""

import math
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, cast

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from mt.kernels.cuda.graphs import Executor
from mt.model.attention import MultiHeadAttention
from mt.model.transformer import Transformer

# Excluded: cuDNN's attention, torch's default on Hopper GPUs, makes a plan for each shape; flash attention has no mask.
ATTENTION = [SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]


def bucket(size: int, least: int = 1) -> int:
    """Return the smallest product of `least` and one of 1, 2, 3, 4, 6, 8, 12, 16, ... that is at least `size`."""
    power = least
    while power < size:
        power *= 2
    smaller = 3 * power // 4
    return smaller if smaller % least == 0 and smaller >= size else power


@dataclass(frozen=True)
class Shape:
    """Size of static memory: `slots` B, each with `rows` K, `columns` C, and source `width` S."""

    slots: int
    rows: int
    columns: int
    width: int


@dataclass
class DecoderMemory:
    """Keys and values of a decoder between steps for B slots, with one entry for each slot in dimension 0.

    Column 0 of a slot is the first token of its sentence, so that a sentence can join without moving the others.
    Reordering of beams does not move keys or values: each row of a sentence attends to the keys of all its rows, and a
    mask hides the keys that are not on the row's own path. Each key is read once, since the rows are queries of one
    matrix product, and a step has four additional small kernels for any number of layers.

    The alternatives cost more. In a base model (6 layers, d_model 512, bf16), 64 sentences with 4 beams and 64 columns
    have 200 MB of keys and values, which an H200 (4 TB/s) reads in 50 microseconds. Copying to a second buffer takes
    another 100 microseconds and doubles the memory. Gathering by ancestor costs the same, with two kernels in each
    layer.
    """

    written: Tensor  # [B, L, C, K, 2, H, d_k] keys and values of the rows' tokens
    writers: Tensor  # int64 [B, K, C] 1 + the row that wrote column c of row k's path, or 0 if no row did
    cross: Tensor  # [B, S, L, 2, H, d_k] keys and values of the source
    source: Tensor  # bool [B, S] True on tokens, False on padding


class StaticDecoder:
    """Decoder with the weights of a model, which must not change later. Query, key and value matrices are joined."""

    def __init__(self, model: Transformer) -> None:
        config = model.config
        self.model = model
        self.layers = model.decoder.layers
        self.heads = config.heads
        self.head_size = config.d_model // config.heads
        self_attentions = [layer.self_attention for layer in self.layers]
        across = [cast(MultiHeadAttention, layer.cross_attention) for layer in self.layers]
        with torch.no_grad():
            self.own_weights = [
                torch.cat((a.query.weight, a.key.weight, a.value.weight)) for a in self_attentions
            ]  # [3D, D]
            self.own_biases = [torch.cat((a.query.bias, a.key.bias, a.value.bias)) for a in self_attentions]
            self.cross_weight = torch.cat([m.weight for a in across for m in (a.key, a.value)])  # [L * 2 * D, D]
            self.cross_bias = torch.cat([m.bias for a in across for m in (a.key, a.value)])

    def memory(self, shape: Shape) -> DecoderMemory:
        """Return memory of zeros. Each empty slot has one source token, since attention over no token gives NaN."""
        per_head = (2, self.heads, self.head_size)
        depth, device = len(self.layers), self.cross_weight.device
        source = torch.zeros(shape.slots, shape.width, dtype=torch.bool, device=device)
        source[:, :1] = True
        return DecoderMemory(
            written=self.cross_weight.new_zeros(shape.slots, depth, shape.columns, shape.rows, *per_head),
            writers=torch.zeros(shape.slots, shape.rows, shape.columns, dtype=torch.int64, device=device),
            cross=self.cross_weight.new_zeros(shape.slots, shape.width, depth, *per_head),
            source=source,
        )

    def bytes(self, shape: Shape) -> int:
        """Return the approximate size of `memory`."""
        keys = shape.slots * (shape.rows * shape.columns + shape.width) * len(self.layers)
        return 2 * keys * self.heads * self.head_size * self.cross_weight.element_size()

    def encode(self, source: Tensor, mask: Tensor) -> Tensor:
        """Return the cross-attention keys and values [B, S, L, 2, H, d_k] of source and mask, each [B, S]."""
        with sdpa_kernel(ATTENTION):
            memory = self.model.encode(source, mask)
        flat = F.linear(memory, self.cross_weight, self.cross_bias)
        return flat.view(*source.shape, len(self.layers), 2, self.heads, self.head_size)

    def step(self, memory: DecoderMemory, tokens: Tensor, steps: Tensor, columns: int) -> Tensor:
        """Append the newest token of each row, tokens [B * K]. Return the logits [B * K, V] of the next token.

        Slot b writes to column steps[b]. Columns below `columns` are read, so the logits of slot b are valid if
        steps[b] < columns.
        """
        slots, rows, _ = memory.writers.shape
        ids = torch.arange(1, rows + 1, device=tokens.device)
        writers = ids[:, None].expand(slots, rows, 1)
        memory.writers.scatter_(2, steps[:, None, None].expand(slots, rows, 1), writers)
        foreign = memory.writers[:, :, :columns, None] != ids  # [B, K, C, K]: True off the path of row k
        written_bias = self._bias(foreign.flatten(2))
        source_bias = self._bias(~memory.source[:, None])
        positions = steps.clamp(max=self.model.config.max_length - 1)[:, None].expand(slots, rows)
        x = self.model.embed_target(tokens.view(slots, rows), positions)  # [B, K, D]
        with sdpa_kernel(ATTENTION):
            for index in range(len(self.layers)):
                x = self._layer(x, memory, index, steps, columns, written_bias, source_bias)
        return self.model.embedding.project(self.model.decoder.norm(x).flatten(0, 1))

    def _bias(self, hidden: Tensor) -> Tensor:
        """Return the attention bias [B, 1, ., T] that hides keys, from bool `hidden` [B, ., T]."""
        bias = torch.zeros(hidden.shape, dtype=self.cross_weight.dtype, device=hidden.device)
        return bias.masked_fill_(hidden, -math.inf).unsqueeze(1)

    def _layer(
        self,
        x: Tensor,
        memory: DecoderMemory,
        index: int,
        steps: Tensor,
        columns: int,
        written_bias: Tensor,
        source_bias: Tensor,
    ) -> Tensor:
        layer = self.layers[index]

        def attend_to_written(h: Tensor) -> Tensor:
            projected = F.linear(h, self.own_weights[index], self.own_biases[index])  # [B, K, 3D]
            query, new = projected.tensor_split((h.shape[-1],), -1)
            new = new[:, None]  # [B, 1, K, 2D]
            at = steps[:, None, None, None].expand_as(new)
            memory.written[:, index].flatten(3).scatter_(1, at, new)  # into a view, [B, C, K, 2D]
            seen = memory.written[:, index, :columns].flatten(1, 2)  # [B, C * K, 2, H, d_k], a view
            joined: Tensor = layer.self_attention.output(self._attend(query, seen, written_bias))
            return joined

        def attend_to_source(h: Tensor) -> Tensor:
            cross = cast(MultiHeadAttention, layer.cross_attention)
            joined: Tensor = cross.output(self._attend(cross.query(h), memory.cross[:, :, index], source_bias))
            return joined

        x = layer.around_self_attention(x, attend_to_written)
        x = layer.around_cross_attention(x, attend_to_source)
        return layer.around_feed_forward(x, layer.feed_forward)

    def _attend(self, query: Tensor, seen: Tensor, bias: Tensor) -> Tensor:
        """Attend from query [B, K, D] to keys and values `seen` [B, T, 2, H, d_k]. Return [B, K, D].

        `bias` is [B, 1, 1, T] or [B, 1, K, T].
        """
        heads = query.view(*query.shape[:-1], self.heads, self.head_size).transpose(1, 2)
        keys, values = seen.unbind(2)
        out = F.scaled_dot_product_attention(heads, keys.transpose(1, 2), values.transpose(1, 2), attn_mask=bias)
        return out.transpose(1, 2).flatten(2)


def reorder(memory: DecoderMemory, rows: Tensor) -> None:
    """Replace the path of each row r by that of row rows[r] of the same slot, for rows [B * K]."""
    paths = memory.writers.flatten(0, 1)
    paths.copy_(paths.index_select(0, rows))


def copy_slots(source: Any, indices: Tensor | None, target: Any, slots: Tensor, executor: Executor) -> None:
    """Copy entries `indices` of each tensor of dataclass `source` into entries `slots` of dataclass `target`.

    `indices` None copies all entries. Tensors have one entry for each sentence in dimension 0. The target is on the
    executor's device. If it is larger in another dimension, the remainder becomes zero. It may be smaller if the copied
    sentences need no more columns.
    """
    for field in fields(source):
        value, into = getattr(source, field.name), getattr(target, field.name)
        if isinstance(value, Tensor):
            chosen = value if indices is None else value.index_select(0, indices)
            into.index_fill_(0, slots, 0)
            if chosen.numel():
                sizes = map(min, chosen.shape[1:], into.shape[1:])
                both = (slice(None), *map(slice, sizes))
                into[both].index_copy_(0, slots, executor.send(chosen[both]))
        elif is_dataclass(value):
            copy_slots(value, indices, into, slots, executor)


def nbytes(tables: Any) -> int:
    """Return the total size in bytes of the tensors of a dataclass."""
    values = [getattr(tables, field.name) for field in fields(tables)]
    tensors = sum(value.nbytes for value in values if isinstance(value, Tensor))
    return tensors + sum(nbytes(value) for value in values if is_dataclass(value))
