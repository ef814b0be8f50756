"""Decoder step over static memory, equal to `Transformer.decode_step`. It can be captured as a CUDA graph.

Shapes: B slots with one sentence each, K rows per sentence, R = B * K rows, C columns with one target token each, S
source tokens, L layers, H heads, D d_model, d_k = D / H, V vocabulary.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from mt.model.attention import MultiHeadAttention
from mt.model.layers import DecoderLayer
from mt.model.transformer import Decoder, Transformer

# Excluded: cuDNN's attention, torch's default on Hopper GPUs, makes a plan for each shape; flash attention has no mask.
ATTENTION = [SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]
WIDER = 8  # number of inputs that carry a bias: matrix products in bfloat16 need a multiple of 8


@dataclass(frozen=True)
class Shape:
    """Size of static memory: `slots` B, each with `rows` K, `columns` C and source `width` S."""

    slots: int
    rows: int
    columns: int
    width: int

    def contains(self, other: "Shape") -> bool:
        """Return whether this shape has room for sentences that need the shape `other`."""
        fits = other.slots <= self.slots and other.columns <= self.columns and other.width <= self.width
        return fits and other.rows == self.rows


@dataclass
class DecoderMemory:
    """Keys and values that the decoder keeps between steps. Dimension 0 of each tensor is the slot.

    Column 0 of a slot is the first token of its sentence, so that a sentence can join without moving the others.
    Reordering beams does not move keys or values: each row of a sentence attends to the keys of all rows of the
    sentence, and a bias hides the keys that are not on the row's own path. Each key is read once, because the rows of a
    sentence are queries of one matrix product. A step has three additional small kernels, whatever the number of
    layers.

    The alternatives cost more. In a base model (6 layers, d_model 512, bf16), 64 sentences with 4 beams and 64 columns
    have 200 MB of keys and values, which an H200 (4 TB/s) reads in 50 microseconds. Copying to a second buffer takes
    another 100 microseconds and doubles the memory. Gathering by ancestor costs the same, with two kernels in each
    layer.
    """

    written: Tensor  # [B, L, C, K, 2, H, d_k] keys and values of the rows' tokens
    paths: Tensor  # [B, K, C, K] attention bias of row k: 0 for the row that wrote column c of its path, else -inf
    cross: Tensor  # [B, S, L, 2, H, d_k] keys and values of the source
    source: Tensor  # [B, S] attention bias: 0 on tokens, -inf on padding

    def clear(self, slots: Tensor) -> None:
        """Remove the sentences of these slots.

        A mask does not hide a NaN: otherwise a NaN of one sentence would spread to the next sentence in the slot.
        """
        self.written.index_fill_(0, slots, 0)
        self.paths.index_fill_(0, slots, -math.inf)
        self.cross.index_fill_(0, slots, 0)
        self.source.index_fill_(0, slots, -math.inf)

    def reorder(self, rows: Tensor, columns: int) -> None:
        """Replace the path of each row r by the path of row rows[r], for `rows` [R]. Only the first `columns` count."""
        paths = self.paths[:, :, :columns]
        paths.copy_(paths.flatten(0, 1).index_select(0, rows).view_as(paths))


@dataclass(frozen=True)
class StepConstants:
    """Tensors that every step over static memory reads."""

    positions: Tensor  # [C, D] vectors that are added to token embeddings
    own: Tensor  # [K, 1, K] attention biases of the newest column: each row attends to its own token


@dataclass(frozen=True)
class Affine:
    """Weight and bias of a Linear or LayerNorm."""

    weight: Tensor
    bias: Tensor

    @classmethod
    def of(cls, module: nn.Linear | nn.LayerNorm) -> "Affine":
        return cls(module.weight, module.bias)

    @classmethod
    def joined(cls, *modules: nn.Linear) -> "Affine":
        """Return one matrix that computes the results of several matrices and concatenates them."""
        return cls(torch.cat([m.weight for m in modules]), torch.cat([m.bias for m in modules]))

    def of_shifted(self, shift: Tensor) -> "Affine":
        """Return the matrix that gives the same results for an input to which `shift` [D] has been added."""
        return Affine(self.weight, (self.bias.float() - self.weight.float() @ shift.float()).to(self.bias.dtype))

    def plus(self, shift: Tensor) -> "Affine":
        """Return the matrix that adds `shift` to the results."""
        return Affine(self.weight, self.bias + shift)

    def of_joined_bias(self, scale: Tensor) -> "Affine":
        """Return a matrix without bias, equal in results if `scale` [] is appended `WIDER` times to its input."""
        columns = self.weight.new_zeros(len(self.weight), WIDER)
        columns[:, 0] = self.bias / scale
        return Affine(torch.cat((self.weight, columns), 1), torch.zeros_like(self.bias))

    def of_more_ones(self) -> "Affine":
        """Return the matrix that appends `WIDER` ones to the results."""
        return Affine(F.pad(self.weight, (0, 0, 0, WIDER)), F.pad(self.bias, (0, WIDER), value=1.0))

    def linear(self, x: Tensor) -> Tensor:
        return F.linear(x, self.weight, self.bias)


@dataclass(frozen=True)
class SublayerEnd:
    """Last matrix of a sublayer, its residual connection, and the next LayerNorm."""

    outer: Affine
    norm: Affine
    epsilon: float
    pre: bool
    in_place: bool  # x or h already contains the bias of `outer`, so that one matrix product adds h to x in place

    def __call__(self, x: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
        """Apply `outer` to h [R, .] and add it to x [R, D]. Return the next x and the input of the next sublayer.

        x may be overwritten.
        """
        x = x.addmm_(h, self.outer.weight.t()) if self.in_place else x + self.outer.linear(h)
        normed = F.layer_norm(x, x.shape[1:], self.norm.weight, self.norm.bias, self.epsilon)
        return (x if self.pre else normed), normed


@dataclass(frozen=True)
class StaticLayer:
    """Weights of a decoder layer. The query, key and value matrices of self-attention are joined."""

    own: Affine  # [3D, D]
    after_own: SublayerEnd
    query: Affine  # of the cross-attention
    after_cross: SublayerEnd
    inner: Affine  # of the feed-forward network
    after_inner: SublayerEnd
    activation: Callable[[Tensor], Tensor]

    def activated(self, h: Tensor) -> Tensor:
        """Return the hidden activations of the feed-forward network for h [R, D]."""
        if isinstance(self.activation, nn.ReLU):
            return torch._addmm_activation(self.inner.bias, h, self.inner.weight.t())
        return self.activation(self.inner.linear(h))


def static_layers(decoder: Decoder, post: bool) -> tuple[list[StaticLayer], Tensor]:
    """Return the layers, and a vector [D] to add to the input of the first layer.

    A matrix product in place computes the last matrix of a sublayer and its residual connection. The bias of this
    matrix is therefore added elsewhere. With post-norm, it is added to the input of the sublayer, and the matrices that
    read this input subtract its effect. With pre-norm, the inner layer of the feed-forward network also returns ones,
    and the outer matrix has columns that multiply these ones by the bias.
    """
    sublayers = [
        end
        for layer in decoder.layers
        for end in (
            (layer.around_self_attention.norm, layer.self_attention.output),
            (layer.around_cross_attention.norm, _cross(layer).output),
            (layer.around_feed_forward.norm, layer.feed_forward.outer),
        )
    ]
    none = torch.zeros_like(sublayers[0][1].bias)
    shifts = [*(outer.bias if post else none for _, outer in sublayers), none]
    norms = [norm for norm, _ in sublayers]
    following = norms if post else [*norms[1:], cast(nn.LayerNorm, decoder.norm)]
    ends = [
        SublayerEnd(Affine.of(outer), Affine.of(norm).plus(shift), norm.eps, not post, in_place=post)
        for (_, outer), norm, shift in zip(sublayers, following, shifts[1:], strict=True)
    ]
    layers = []
    for index, layer in enumerate(decoder.layers):
        own, at = layer.self_attention, slice(3 * index, 3 * index + 3)
        (own_shift, cross_shift, inner_shift), (after_own, after_cross, after_inner) = shifts[at], ends[at]
        inner, activation = Affine.of(layer.feed_forward.inner).of_shifted(inner_shift), layer.feed_forward.activation
        if not post:
            inner, one = inner.of_more_ones(), activation(torch.ones_like(inner.bias[0]))
            after_inner = replace(after_inner, outer=after_inner.outer.of_joined_bias(one), in_place=True)
        layers.append(
            StaticLayer(
                own=Affine.joined(own.query, own.key, own.value).of_shifted(own_shift),
                after_own=after_own,
                query=Affine.of(_cross(layer).query).of_shifted(cross_shift),
                after_cross=after_cross,
                inner=inner,
                after_inner=after_inner,
                activation=activation,
            )
        )
    return layers, shifts[0]


def _cross(layer: DecoderLayer) -> MultiHeadAttention:
    return cast(MultiHeadAttention, layer.cross_attention)


class StaticDecoder:
    """Decoder over static memory. The weights of the model must not change later."""

    def __init__(self, model: Transformer) -> None:
        config, post = model.config, model.config.norm == "post"
        self.model = model
        self.vocabulary = model.vocabulary_size
        self.heads = config.heads
        self.head_size = config.d_model // config.heads
        with torch.no_grad():
            cross = [m for layer in model.decoder.layers for m in (_cross(layer).key, _cross(layer).value)]
            self.cross = Affine.joined(*cross)  # [L * 2 * D, D]
            self.layers, shift = static_layers(model.decoder, post)
            self._positions = model.embedding.position_vectors(model.target_input)
            norm = None if model.target_input is None else model.target_input.norm
            self._embedding_norm = None if norm is None else Affine.of(norm).plus(shift)
            if norm is None:
                self._positions = self._positions.to(shift.dtype) + shift
        first = model.decoder.layers[0].around_self_attention.norm
        self._first_norm = None if post else first
        self._epsilon = first.eps

    @property
    def device(self) -> torch.device:
        return self.cross.weight.device

    def memory(self, shape: Shape) -> DecoderMemory:
        """Allocate memory of this shape, without sentences."""
        per_head = (2, self.heads, self.head_size)
        depth, new = len(self.layers), self.cross.weight.new_zeros
        return DecoderMemory(
            written=new(shape.slots, depth, shape.columns, shape.rows, *per_head),
            paths=new(shape.slots, shape.rows, shape.columns, shape.rows).fill_(-math.inf),
            cross=new(shape.slots, shape.width, depth, *per_head),
            source=new(shape.slots, shape.width),  # no padding, because attention to no token at all would give NaN
        )

    def bytes(self, shape: Shape) -> int:
        """Return the size of the memory of this shape in bytes."""
        keys = 2 * len(self.layers) * self.heads * self.head_size * (shape.rows * shape.columns + shape.width)
        biases = shape.rows * shape.columns * shape.rows + shape.width
        return shape.slots * (keys + biases) * self.cross.weight.element_size()

    def constants(self, shape: Shape) -> StepConstants:
        """Return the tensors that every step over memory of this shape reads."""
        table = self._positions
        beyond = table[-1:].expand(max(shape.columns - len(table), 0), -1)
        own = table.new_full((shape.rows, 1, shape.rows), -math.inf)
        own.diagonal(dim1=0, dim2=2).zero_()
        return StepConstants(torch.cat((table[: shape.columns], beyond)), own)

    def encode(self, source: Tensor, mask: Tensor) -> Tensor:
        """Encode sources [B, S] with `mask` [B, S]. Return the cross-attention keys and values [B, S, L, 2, H, d_k]."""
        with sdpa_kernel(ATTENTION):
            memory = self.model.encode(source, mask)
        return self.cross.linear(memory).view(*source.shape, len(self.layers), 2, self.heads, self.head_size)

    def step(
        self, memory: DecoderMemory, tokens: Tensor, steps: Tensor, columns: int, constants: StepConstants
    ) -> Tensor:
        """Append the newest token of each row, `tokens` [B, K]. Return the logits [R, V] of the next tokens.

        Slot b writes to column steps[b]. The step reads only the first `columns` columns, so the logits of slot b are
        valid if steps[b] < columns.
        """
        slots, rows = tokens.shape
        at = steps[:, None, None, None].expand(slots, rows, 1, rows)
        memory.paths.scatter_(2, at, constants.own.expand_as(at))
        written_bias = memory.paths[:, :, :columns].flatten(2).unsqueeze(1)  # [B, 1, K, C * K], a view
        source_bias = memory.source[:, None, None]
        x, h = self._embed(tokens, F.embedding(steps, constants.positions))
        with sdpa_kernel(ATTENTION):
            for index, layer in enumerate(self.layers):
                written = memory.written[:, index]  # [B, C, K, 2, H, d_k]
                query, new = layer.own.linear(h).tensor_split((h.shape[1],), 1)
                new = new.view(slots, 1, rows, -1)
                written.flatten(3).scatter_(1, steps[:, None, None, None].expand_as(new), new)  # into a view
                h = self._attend(query, written[:, :columns].flatten(1, 2), written_bias)
                x, h = layer.after_own(x, h)
                h = self._attend(layer.query.linear(h), memory.cross[:, :, index], source_bias)
                x, h = layer.after_cross(x, h)
                x, h = layer.after_inner(x, layer.activated(h))
        return self.model.embedding.project(h)

    def _embed(self, tokens: Tensor, positions: Tensor) -> tuple[Tensor, Tensor]:
        """Embed tokens [B, K] at positions [B, D]. Return the inputs of decoder and first sublayer, [R, D] each."""
        embedding = self.model.embedding
        x = torch.add(positions[:, None], embedding.tokens(tokens), alpha=embedding.scale).flatten(0, 1)
        if (norm := self._embedding_norm) is not None:
            x = F.layer_norm(x, x.shape[1:], norm.weight, norm.bias, self._epsilon)
        return x, (x if self._first_norm is None else self._first_norm(x))

    def _attend(self, query: Tensor, seen: Tensor, bias: Tensor) -> Tensor:
        """Attend from query [R, D] to keys and values `seen` [B, T, 2, H, d_k]. Return [R, D].

        `bias` is [B, 1, 1, T] or [B, 1, K, T].
        """
        heads = query.view(seen.shape[0], -1, self.heads, self.head_size).transpose(1, 2)
        keys, values = seen.unbind(2)
        out = F.scaled_dot_product_attention(heads, keys.transpose(1, 2), values.transpose(1, 2), attn_mask=bias)
        return out.transpose(1, 2).flatten(2).flatten(0, 1)
