"""A decoder step over memory that stays where it is, so that it can be captured: a twin of `Transformer.decode_step`.

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

from mt.kernels.graphs import Executor
from mt.model.attention import MultiHeadAttention
from mt.model.layers import DecoderLayer
from mt.model.transformer import Transformer

# cuDNN's attention, which torch prefers on a Hopper, plans anew for each shape; flash attention takes no mask.
ATTENTION = [SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]


def bucket(size: int, least: int = 1) -> int:
    """The smallest of least, 2 least, 3 least, 4 least, 6 least, 8 least, 12 least ... that is not below `size`."""
    power = least
    while power < size:
        power *= 2
    smaller = 3 * power // 4
    return smaller if smaller % least == 0 and smaller >= size else power


@dataclass(frozen=True)
class Shape:
    """What memory there is for: B slots with K rows, C columns and S source tokens each."""

    slots: int
    rows: int
    columns: int
    width: int


@dataclass
class DecoderMemory:
    """What a decoder keeps between steps for B slots, one entry a slot in dimension 0.

    A slot's columns count from its sentence's first token, so one that joins late is copied into its slot and the
    others need not move. Nor does anything move when beams change places: the rows of a sentence see the keys of
    all of them, and a mask leaves each those on its own path. The arithmetic, for base (6 layers, d_model 512, bf16):
    64 sentences with 4 beams and 64 columns hold 200 MB of keys and values, 50 microseconds to read once on an H200
    (4 TB/s). Reordering through a second buffer reads and writes them once more (100) and doubles the memory;
    gathering by ancestor does that too, with two kernels a layer; seeing them all reads each once, since the rows are
    queries of one product, and adds four small kernels a step whatever the depth.
    """

    written: Tensor  # [B, L, C, K, 2, H, d_k] keys and values of what the rows have written
    writers: Tensor  # int64 [B, K, C] 1 + the row that wrote the token of row k's path at column c; 0 if none did
    cross: Tensor  # [B, S, L, 2, H, d_k] keys and values of the source
    source: Tensor  # bool [B, S] where they are real


class StaticDecoder:
    """The decoder of a model, its query, key and value matrices side by side. The weights must not change under it."""

    def __init__(self, model: Transformer) -> None:
        config = model.config
        self.model = model
        self.layers = [cast(DecoderLayer, layer) for layer in model.decoder.layers]
        self.heads = config.heads
        self.head_size = config.d_model // config.heads
        own = [layer.self_attention for layer in self.layers]
        across = [cast(MultiHeadAttention, layer.cross_attention) for layer in self.layers]
        with torch.no_grad():
            self.own_weights = [torch.cat((a.query.weight, a.key.weight, a.value.weight)) for a in own]  # [3D, D]
            self.own_biases = [torch.cat((a.query.bias, a.key.bias, a.value.bias)) for a in own]
            self.cross_weight = torch.cat([m.weight for a in across for m in (a.key, a.value)])  # [L * 2 * D, D]
            self.cross_bias = torch.cat([m.bias for a in across for m in (a.key, a.value)])

    def memory(self, shape: Shape) -> DecoderMemory:
        """Zeros. A slot that was never filled sees one token, or else its scores would be no numbers."""
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
        """About what `memory` takes."""
        keys = shape.slots * (shape.rows * shape.columns + shape.width) * len(self.layers)
        return 2 * keys * self.heads * self.head_size * self.cross_weight.element_size()

    def encode(self, source: Tensor, mask: Tensor) -> Tensor:
        """source [B, S], mask [B, S] -> the keys and values of all layers, [B, S, L, 2, H, d_k]."""
        with sdpa_kernel(ATTENTION):
            memory = self.model.encode(source, mask)
        flat = F.linear(memory, self.cross_weight, self.cross_bias)
        return flat.view(*source.shape, len(self.layers), 2, self.heads, self.head_size)

    def step(self, memory: DecoderMemory, tokens: Tensor, steps: Tensor, columns: int) -> Tensor:
        """Each row's newest token [B * K] -> logits of its next one [B * K, V].

        A slot writes to column `steps` [B]; its logits are right if that is below `columns`, for it sees only these.
        """
        slots, rows, _ = memory.writers.shape
        ids = torch.arange(1, rows + 1, device=tokens.device)
        own = ids[:, None].expand(slots, rows, 1)
        memory.writers.scatter_(2, steps[:, None, None].expand(slots, rows, 1), own)
        foreign = memory.writers[:, :, :columns, None] != ids  # [B, K, C, K]: what row k must not see at column c
        written_bias = self._bias(foreign.flatten(2))
        source_bias = self._bias(~memory.source[:, None])
        positions = steps.clamp(max=self.model.config.max_length - 1)[:, None].expand(slots, rows)
        x = self.model.embedding(tokens.view(slots, rows), positions)  # [B, K, D]
        with sdpa_kernel(ATTENTION):
            for index in range(len(self.layers)):
                x = self._layer(x, memory, index, steps, columns, written_bias, source_bias)
        return self.model.embedding.project(self.model.decoder.norm(x).flatten(0, 1))

    def _bias(self, hidden: Tensor) -> Tensor:
        """[B, ., T] of what is hidden -> [B, 1, ., T], added to scores: once a step rather than once a layer."""
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
            return layer.self_attention.output(self._attend(query, seen, written_bias))  # type: ignore[no-any-return]

        def attend_to_source(h: Tensor) -> Tensor:
            cross = cast(MultiHeadAttention, layer.cross_attention)
            return cross.output(self._attend(cross.query(h), memory.cross[:, :, index], source_bias))  # type: ignore[no-any-return]

        x = layer.around_self_attention(x, attend_to_written)
        x = layer.around_cross_attention(x, attend_to_source)
        return layer.around_feed_forward(x, layer.feed_forward)  # type: ignore[no-any-return]

    def _attend(self, query: Tensor, seen: Tensor, bias: Tensor) -> Tensor:
        """query [B, K, D], seen [B, T, 2, H, d_k], bias [B, 1, 1 or K, T] -> [B, K, D]."""
        heads = query.unflatten(-1, (self.heads, self.head_size)).transpose(1, 2)  # type: ignore[no-untyped-call]
        keys, values = seen.unbind(2)
        out = F.scaled_dot_product_attention(heads, keys.transpose(1, 2), values.transpose(1, 2), attn_mask=bias)
        return out.transpose(1, 2).flatten(2)


def reorder(memory: DecoderMemory, rows: Tensor) -> None:
    """Row r goes on from the path of row rows[r], of the same slot: rows [B * K]."""
    paths = memory.writers.flatten(0, 1)
    paths.copy_(paths.index_select(0, rows))


def copy_slots(source: Any, places: Tensor | None, target: Any, slots: Tensor, executor: Executor) -> None:
    """Entries `places`, or all, of one dataclass of tensors into entries `slots` of another of the same kind.

    Every tensor has one entry a sentence in dimension 0. The target's, which lies on the executor's device, may be
    larger in the others; it becomes zero there. Or smaller, where these sentences, unlike those that were beside them,
    need no more columns.
    """
    for field in fields(source):
        value, into = getattr(source, field.name), getattr(target, field.name)
        if isinstance(value, Tensor):
            chosen = value if places is None else value.index_select(0, places)
            into.index_fill_(0, slots, 0)
            if chosen.numel():
                sizes = map(min, chosen.shape[1:], into.shape[1:])
                both = (slice(None), *map(slice, sizes))
                into[both].index_copy_(0, slots, executor.send(chosen[both]))
        elif is_dataclass(value):
            copy_slots(value, places, into, slots, executor)


def nbytes(tables: Any) -> int:
    """Bytes of the tensors of a dataclass."""
    values = [getattr(tables, field.name) for field in fields(tables)]
    own = sum(value.nbytes for value in values if isinstance(value, Tensor))
    return own + sum(nbytes(value) for value in values if is_dataclass(value))
