"""Decoder step over static memory, equal to `Transformer.decode_step`. It can be captured as a CUDA graph.

Shapes: B slots, one sentence each; K rows per slot; R = B x K rows; C columns, one for each target token; S source
tokens; L layers; H heads; D d_model; d_k = D / H; V vocabulary.

The last matrix W of a sublayer and the residual connection are one operation in place, x += h W, where h is the input
of W. It does not add the bias of W, so the bias must be contained in x or in h W:

- With post-norm, the LayerNorm before the sublayer adds the bias to x.
- With pre-norm, h ends with ones, and W has additional entries, which contain the bias. The ones are additional
  activations of the feed-forward network, or the result of an additional attention head with ones as values.

The keys and values of a token are A vectors [d_k]: A is 2H with post-norm and 2H + 1 with pre-norm.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from mt.kernels.cuda.attention import static_attention
from mt.model.transformer import Decoder, Transformer

# Excluded: cuDNN's attention, torch's default on Hopper GPUs, makes a plan for each shape; flash attention has no mask.
ATTENTION = [SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]
WIDER = 8  # additional activations, ones, for the bias: matrix products of bfloat16 need multiples of 8


@dataclass(frozen=True)
class Shape:
    """Size of static memory: B `slots` with K `rows` each, C `columns`, and S source tokens (`width`)."""

    slots: int
    rows: int
    columns: int
    width: int

    def contains(self, other: "Shape") -> bool:
        """Return whether sentences that need the shape `other` fit into this shape."""
        fits = other.slots <= self.slots and other.columns <= self.columns and other.width <= self.width
        return fits and other.rows == self.rows


@dataclass
class DecoderMemory:
    """Keys and values of a decoder between steps for B slots. Dimension 0 of each tensor is the slot.

    Column 0 of a slot is the first token of its sentence, so that a sentence can join without moving the others.
    Reordering of beams does not move keys or values. Instead, each row of a sentence attends to the keys of all its
    rows, and a bias hides the keys that do not belong to the row's own hypothesis. Each key is read once, since the
    rows of a sentence are queries of one matrix product. A step needs only three additional small kernels, for any
    number of layers.

    The alternatives cost more. In a base model (6 layers, d_model 512, bf16), 64 sentences with 4 beams and 64 columns
    have 200 MB of keys and values, which an H200 (4 TB/s) reads in 50 microseconds. Copying them to a second buffer
    takes another 100 microseconds and doubles the memory. Gathering the keys of each row's ancestors takes as long,
    with two kernels in each layer.
    """

    written: Tensor  # [B, L, C, K, A, d_k] keys and values of the rows' tokens
    paths: Tensor  # [B, K, C, K] attention bias of row k: 0 for the row that wrote column c of its path, else -inf
    cross: Tensor  # [B, S, L, A, d_k] keys and values of the source
    source: Tensor  # [B, S] attention bias: 0 on tokens, -inf on padding

    def clear(self, slots: Tensor) -> None:
        """Remove the sentences in these slots.

        A mask does not hide a NaN: without this method, a NaN of one sentence would spread to the next sentence in its
        slot.
        """
        self.written.index_fill_(0, slots, 0)
        self.paths.index_fill_(0, slots, -math.inf)
        self.cross.index_fill_(0, slots, 0)
        self.source.index_fill_(0, slots, -math.inf)

    def reorder(self, rows: Tensor, columns: int) -> None:
        """Replace the path of each row r by the path of row rows[r], in the first `columns` columns. `rows` is [R].

        The path of a row states which row wrote each token of its hypothesis.
        """
        paths = self.paths[:, :, :columns]
        paths.copy_(paths.flatten(0, 1).index_select(0, rows).view_as(paths))


@dataclass(frozen=True)
class StepConstants:
    """Constant tensors that every decoder step over static memory reads."""

    positions: Tensor  # [C, D] vectors that are added to token embeddings
    newest: Tensor  # [K, 1, K] attention biases of the newest column: each row attends only to its token


@dataclass(frozen=True)
class Affine:
    """Affine map with the weight and bias of a Linear, or the weight and bias of a LayerNorm."""

    weight: Tensor
    bias: Tensor

    @classmethod
    def of(cls, module: nn.Linear | nn.LayerNorm) -> "Affine":
        return cls(module.weight, module.bias)

    @classmethod
    def joined(cls, *modules: "nn.Linear | Affine") -> "Affine":
        """Return the map that returns the concatenated results of `modules`."""
        return cls(torch.cat([m.weight for m in modules]), torch.cat([m.bias for m in modules]))

    def of_shifted(self, shift: Tensor) -> "Affine":
        """Return the map g with g(x + shift) = f(x), where f is this map. `shift` is [D]."""
        return Affine(self.weight, (self.bias.float() - self.weight.float() @ shift.float()).to(self.bias.dtype))

    def plus(self, shift: Tensor) -> "Affine":
        """Return the map that adds `shift` to the result of this map."""
        return Affine(self.weight, self.bias + shift)

    def with_bias_in_weight(self, count: int, value: Tensor) -> Tensor:
        """Return the weight with `count` additional columns that replace the bias.

        The input of this matrix must end with `count` entries that equal `value`, a tensor []. If `count` is 0, return
        the weight alone.
        """
        columns = self.weight.new_zeros(len(self.weight), count)
        if count:
            columns[:, 0] = self.bias / value
        return torch.cat((self.weight, columns), 1)

    def followed_by(self, value: float, count: int) -> "Affine":
        """Return the map whose results are those of this map, followed by `count` entries `value`."""
        return Affine(F.pad(self.weight, (0, 0, 0, count)), F.pad(self.bias, (0, count), value=value))

    def linear(self, x: Tensor) -> Tensor:
        return F.linear(x, self.weight, self.bias)


@dataclass(frozen=True)
class SublayerEnd:
    """Last matrix of a sublayer, its residual connection, and the LayerNorm that follows."""

    outer: Tensor  # [D, .]
    norm: Affine
    epsilon: float
    pre: bool

    def __call__(self, x: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
        """Compute the result of the sublayer and add it to x [R, D] in place.

        h [R, .] is the input of the sublayer's last matrix. Returns x for the next sublayer, and the input of the next
        sublayer's first matrix.
        """
        x = x.addmm_(h, self.outer.t())
        normed = F.layer_norm(x, x.shape[1:], self.norm.weight, self.norm.bias, self.epsilon)
        return (x if self.pre else normed), normed


@dataclass(frozen=True)
class StaticLayer:
    """Weights of a decoder layer. The query, key and value matrices of self-attention are joined."""

    self_attention: Affine  # [D + A * d_k, D]
    after_self_attention: SublayerEnd
    cross_query: Affine
    after_cross_attention: SublayerEnd
    inner: Affine  # of the feed-forward network
    after_feed_forward: SublayerEnd
    activation: Callable[[Tensor], Tensor]

    def activated(self, h: Tensor) -> Tensor:
        """Return the activations of the feed-forward network for h [R, D]."""
        if isinstance(self.activation, nn.ReLU):
            return torch._addmm_activation(self.inner.bias, h, self.inner.weight.t())
        return self.activation(self.inner.linear(h))


def static_layers(decoder: Decoder, post: bool, extra_ones: int) -> tuple[list[StaticLayer], Tensor]:
    """Return the layers of `decoder`, and a vector [D] that must be added to the input of the first layer.

    With post-norm (`post`), the input of each sublayer includes the bias of the sublayer's last matrix. The matrices
    that read this input subtract the effect of the bias. With pre-norm, the result of attention ends with `extra_ones`
    ones, and that of the first matrix of a feed-forward network with WIDER ones.
    """
    one, extra_inner = decoder.layers[0].self_attention.output.bias.new_ones(()), 0 if post else WIDER
    sublayers = [  # LayerNorm, last matrix, number of columns that hold its bias, and the input of these columns
        sublayer
        for layer in decoder.layers
        for sublayer in (
            (layer.around_self_attention.norm, layer.self_attention.output, extra_ones, one),
            (layer.around_cross_attention.norm, layer.cross_attention.output, extra_ones, one),
            (layer.around_feed_forward.norm, layer.feed_forward.outer, extra_inner, layer.feed_forward.activation(one)),
        )
    ]
    zero = torch.zeros_like(sublayers[0][1].bias)
    shifts = [*(outer.bias if post else zero for _, outer, _, _ in sublayers), zero]
    norms = [norm for norm, *_ in sublayers]
    norms_after = norms if post else [*norms[1:], cast(nn.LayerNorm, decoder.norm)]
    ends = [
        SublayerEnd(
            Affine.of(outer).with_bias_in_weight(count, value), Affine.of(norm).plus(shift), norm.eps, pre=not post
        )
        for (_, outer, count, value), norm, shift in zip(sublayers, norms_after, shifts[1:], strict=True)
    ]
    layers = []
    for layer, first in zip(decoder.layers, range(0, len(sublayers), 3), strict=True):
        attention, self_shift, cross_shift, inner_shift = layer.self_attention, *shifts[first : first + 3]
        joined = Affine.joined(attention.query, attention.key, attention.value)
        after_self_attention, after_cross_attention, after_feed_forward = ends[first : first + 3]
        layers.append(
            StaticLayer(
                self_attention=joined.of_shifted(self_shift).followed_by(1, extra_ones),
                after_self_attention=after_self_attention,
                cross_query=Affine.of(layer.cross_attention.query).of_shifted(cross_shift).followed_by(0, extra_ones),
                after_cross_attention=after_cross_attention,
                inner=Affine.of(layer.feed_forward.inner).of_shifted(inner_shift).followed_by(1, extra_inner),
                after_feed_forward=after_feed_forward,
                activation=layer.feed_forward.activation,
            )
        )
    return layers, shifts[0]


class StaticDecoder:
    """Decoder step of a model over static memory. The weights of the model must not change later."""

    def __init__(self, model: Transformer) -> None:
        config, post = model.config, model.config.norm == "post"
        self.model = model
        self.vocabulary = model.vocabulary_size
        self.heads = config.heads
        self.head_size = config.d_model // config.heads
        self.vectors = 2 * config.heads + (0 if post else 1)  # A
        extra_ones = 0 if post else self.head_size
        with torch.no_grad():
            cross = [
                Affine.joined(layer.cross_attention.key, layer.cross_attention.value) for layer in model.decoder.layers
            ]
            self.cross = Affine.joined(*(affine.followed_by(1, extra_ones) for affine in cross))  # [L * A * d_k, D]
            self.layers, shift = static_layers(model.decoder, post, extra_ones)
            self._positions = model.target_input.positions.weight
            norm = model.target_input.norm
            self._embedding_norm = None if norm is None else Affine.of(norm).plus(shift)
            if norm is None:
                self._positions = self._positions.to(shift.dtype) + shift
        first = model.decoder.layers[0].around_self_attention.norm
        self.attention = static_attention(self.cross.weight, self.heads, self.head_size)
        self._first_norm = None if post else first
        self._epsilon = first.eps

    @property
    def device(self) -> torch.device:
        return self.cross.weight.device

    def memory(self, shape: Shape) -> DecoderMemory:
        """Return memory of this shape, without sentences."""
        depth, vectors, new = len(self.layers), (self.vectors, self.head_size), self.cross.weight.new_zeros
        return DecoderMemory(
            written=new(shape.slots, depth, shape.columns, shape.rows, *vectors),
            paths=new(shape.slots, shape.rows, shape.columns, shape.rows).fill_(-math.inf),
            cross=new(shape.slots, shape.width, depth, *vectors),
            source=new(shape.slots, shape.width),  # without padding, since attention over no token would give NaN
        )

    def bytes(self, shape: Shape) -> int:
        """Return the size in bytes of `memory(shape)`."""
        keys = self.vectors * len(self.layers) * self.head_size * (shape.rows * shape.columns + shape.width)
        biases = shape.rows * shape.columns * shape.rows + shape.width
        return shape.slots * (keys + biases) * self.cross.weight.element_size()

    def constants(self, shape: Shape) -> StepConstants:
        """Return the constants of steps over memory of this shape."""
        table = self._positions
        beyond = table[-1:].expand(max(shape.columns - len(table), 0), -1)
        newest = table.new_full((shape.rows, 1, shape.rows), -math.inf)
        newest.diagonal(dim1=0, dim2=2).zero_()
        return StepConstants(torch.cat((table[: shape.columns], beyond)), newest)

    def encode(self, source: Tensor, mask: Tensor) -> Tensor:
        """Return the cross-attention keys and values [B, S, L, A, d_k] of `source` [B, S].

        `mask` [B, S] is True on tokens.
        """
        with sdpa_kernel(ATTENTION):
            memory = self.model.encode(source, mask)
        return self.cross.linear(memory).view(*source.shape, len(self.layers), self.vectors, self.head_size)

    def step(
        self, memory: DecoderMemory, tokens: Tensor, steps: Tensor, columns: int, constants: StepConstants
    ) -> Tensor:
        """Append the newest token of each row, `tokens` [B, K]. Return the logits [R, V] of the next tokens.

        Slot b writes to column steps[b]. Only columns below `columns` are read, so the logits of slot b are valid if
        steps[b] < columns.
        """
        slots, rows = tokens.shape
        at = steps[:, None, None, None].expand(slots, rows, 1, rows)
        memory.paths.scatter_(2, at, constants.newest.expand_as(at))
        written_bias = memory.paths[:, :, :columns].flatten(2).unsqueeze(1)  # [B, 1, K, C * K], a view
        source_bias = memory.source[:, None, None]
        x, h = self._embed(tokens, F.embedding(steps, constants.positions))
        with sdpa_kernel(ATTENTION):
            for index, layer in enumerate(self.layers):
                written = memory.written[:, index]  # [B, C, K, A, d_k]
                h = self.attention.append(layer.self_attention.linear(h), written, steps, columns, written_bias)
                x, h = layer.after_self_attention(x, h)
                h = self.attention.attend(layer.cross_query.linear(h), memory.cross[:, :, index], source_bias)
                x, h = layer.after_cross_attention(x, h)
                x, h = layer.after_feed_forward(x, layer.activated(h))
        return self.model.embedding.project(h)

    def _embed(self, tokens: Tensor, positions: Tensor) -> tuple[Tensor, Tensor]:
        """Return the input of the decoder and of its first sublayer, each [R, D].

        `tokens` is [B, K], and `positions` [B, D] are the position vectors.
        """
        embedding = self.model.embedding
        x = torch.add(positions[:, None], embedding.tokens(tokens), alpha=embedding.scale).flatten(0, 1)
        if (norm := self._embedding_norm) is not None:
            x = F.layer_norm(x, x.shape[1:], norm.weight, norm.bias, self._epsilon)
        return x, (x if self._first_norm is None else self._first_norm(x))
