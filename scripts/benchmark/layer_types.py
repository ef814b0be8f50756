"""The rows of Table 1 of "Attention Is All You Need" as torch modules, and the lengths of their paths."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.autograd.graph import Node

from mt.model.attention import MultiHeadAttention, attention

HEADS = 8


class SelfAttention(nn.Module):
    """Self-attention over all positions, without projections, with one head."""

    def forward(self, x: Tensor) -> Tensor:
        """Return the self-attention of x: [1, n, d] -> [1, n, d]."""
        head = x.unsqueeze(1)
        return attention(head, head, head).squeeze(1)


class ProjectedAttention(nn.Module):
    """Multi-head self-attention with the projections of queries, keys, values and output."""

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.inner = MultiHeadAttention(d_model, HEADS, attend=attention)

    def forward(self, x: Tensor) -> Tensor:
        return self.inner(x, x)


class RestrictedAttention(nn.Module):
    """Self-attention of each position to the r = 2 * `reach` + 1 positions around it, without projections."""

    def __init__(self, reach: int) -> None:
        super().__init__()
        self.reach = reach

    def forward(self, x: Tensor) -> Tensor:
        """Return the self-attention of x, in which each position attends to its neighbours: [1, n, d] -> [1, n, d]."""
        width = 2 * self.reach + 1
        windows = nn.functional.pad(x, (0, 0, self.reach, self.reach)).unfold(1, width, 1)[0]  # [n, d, r]
        scores = (x[0].unsqueeze(1) @ windows).squeeze(1) / math.sqrt(x.shape[2])  # [n, r]
        key = torch.arange(x.shape[1]).unsqueeze(1) + torch.arange(-self.reach, self.reach + 1)
        weights = scores.masked_fill((key < 0) | (key >= x.shape[1]), -math.inf).softmax(1)
        return (windows @ weights.unsqueeze(2)).squeeze(2).unsqueeze(0)


class Recurrent(nn.Module):
    """A gated recurrent unit (Cho et al. 2014)."""

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.inner = nn.GRU(d_model, d_model, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.inner(x)[0]
        return out


class Convolution(nn.Module):
    """A convolution of odd width k over the positions.

    If `dilation` is 0, its window is centred on each position. Otherwise it is causal: it ends at the position, and
    its k inputs are `dilation` positions apart. A stack of causal convolutions with dilations 1, k, k^2 ... connects
    each position with all earlier ones. With centred convolutions, paths between the first and the last position would
    lead through positions outside the text.
    """

    def __init__(self, d_model: int, width: int, dilation: int = 0) -> None:
        super().__init__()
        before = dilation * (width - 1) if dilation else width // 2
        self.pad = nn.ConstantPad1d((before, 0 if dilation else before), 0.0)
        self.inner = nn.Conv1d(d_model, d_model, width, dilation=dilation or 1)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.inner(self.pad(x.transpose(1, 2))).transpose(1, 2)
        return out


@dataclass(frozen=True)
class LayerType:
    """A row of Table 1: a type of layer, with the values in the paper.

    `complexity`, `sequential` and `path` are the cells of the table. `build(index, d)` returns the layer with this
    index in a stack of layers of width d. `path_length(n)` is the exact maximum path length for n positions.
    `depth(n)` is the number of stacked layers that count as one: more than 1 for dilated convolutions.
    """

    name: str
    complexity: str
    exponents: tuple[int, int]  # exponents of n and d in `complexity`, without logarithms
    sequential: str
    path: str
    build: Callable[[int, int], nn.Module]
    path_length: Callable[[int], int]
    depth: Callable[[int], int] = lambda n: 1

    def layer(self, n: int, d: int) -> nn.Module:
        """Return the layer of this row for n positions and width d. It consists of `depth(n)` stacked layers."""
        return nn.Sequential(*(self.build(index, d) for index in range(self.depth(n))))


def dilated_depth(length: int, width: int) -> int:
    """Return the smallest L with width^L >= length.

    This is the number of causal convolutions with dilations 1, k, k^2 ... that connect `length` positions.
    """
    depth = 1
    while width**depth < length:
        depth += 1
    return depth


def layer_types(r: int, k: int) -> list[LayerType]:
    """Return the rows of Table 1. r is the neighbourhood of restricted attention, k the width of convolutions.

    Both must be odd. Two rows are not in the paper: self-attention with projections, and a stack of dilated
    convolutions.
    """

    def depth(n: int) -> int:
        return dilated_depth(n, k)

    def steps_of(reach: int) -> Callable[[int], int]:
        return lambda n: -(-(n - 1) // reach)

    projected = f"projected, h = {HEADS}"
    return [
        LayerType("self-attention", "n² d", (2, 1), "1", "1", lambda i, d: SelfAttention(), lambda n: 1),
        LayerType(projected, "n² d + n d²", (2, 1), "1", "1", lambda i, d: ProjectedAttention(d), lambda n: 1),
        LayerType(
            f"restricted, r = {r}",
            "r n d",
            (1, 1),
            "1",
            "n / r",
            lambda i, d: RestrictedAttention(r // 2),
            steps_of(r // 2),
        ),
        LayerType("recurrent, GRU", "n d²", (1, 2), "n", "n", lambda i, d: Recurrent(d), lambda n: n),
        LayerType(
            f"convolution, k = {k}", "k n d²", (1, 2), "1", "n / k", lambda i, d: Convolution(d, k), steps_of(k // 2)
        ),
        LayerType(
            f"dilated, k = {k}",
            "k n d² log n",
            (1, 2),
            "log_k n",
            "log_k n",
            lambda i, d: Convolution(d, k, k**i),
            depth,
            depth,
        ),
    ]


def chain_length(output: Tensor) -> int:
    """Return the length of the longest chain of operations of autograd that computed `output` from the input.

    Each operation in a chain needs the result of the one before.
    """
    assert output.grad_fn is not None
    longest: dict[Node, int] = {}
    pending = [output.grad_fn]
    while pending:
        node = pending[-1]
        inputs = [parent for parent, _ in node.next_functions if parent is not None]
        missing = [parent for parent in inputs if parent not in longest]
        if missing:
            pending += missing
        else:
            longest[node] = 1 + max((longest[parent] for parent in inputs), default=0)
            pending.pop()
    return longest[output.grad_fn] - 1  # the last node stands for the input


def measured_path(kind: LayerType, length: int, d_model: int = HEADS) -> int:
    """Return how many layers, or steps of a recurrent layer, connect the first input with the last output.

    They are connected if the gradient of this output with respect to this input is not 0. All values are float64, so
    that products of many small weights do not become 0.
    """
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(1, length, d_model, generator=generator, dtype=torch.float64, requires_grad=True)
    torch.manual_seed(1)
    for number, last in enumerate(_outputs(kind, x), start=1):
        [gradient] = torch.autograd.grad(last.sum(), x, retain_graph=True)
        if bool((gradient[0, 0] != 0).any()):
            return number
    raise AssertionError(f"{kind.name}: no path")


def _outputs(kind: LayerType, x: Tensor) -> Iterator[Tensor]:
    """Yield the output at the last position after 1, 2, ... layers.

    For a recurrent layer, all outputs have the same value, but gradients flow only through the last 1, 2, ... steps.
    """
    length, d_model = x.shape[1:]
    out, layer = x, kind.build(0, d_model).double()
    for number in range(1, length + 1):
        if isinstance(layer, Recurrent):
            with torch.no_grad():
                before = layer.inner(x[:, :-number])[1] if number < length else None
            out = layer.inner(x[:, -number:], before)[0]
        else:
            out = kind.build(number - 1, d_model).double()(out)
        yield out[:, -1]
