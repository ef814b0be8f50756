"""Low-rank adapters (LoRA): W x + b becomes W x + b + s B A x, of which only A and B are trained (Hu et al. 2022).

They stand at the query and value projections of every attention: of what the paper tries at one number of parameters,
these two together do best (section 7.1, table 5), better than one projection of twice the rank. B begins at zero, so
that the first step is the old model's (section 4.1), and s B A is added to W when the model is published.
"""

from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from mt.model.attention import MultiHeadAttention

DOWN, UP = ".down", ".up"  # how the names of A and B end


class AdaptedLinear(nn.Module):
    """A linear layer [..., I] -> [..., O] under its old names, frozen, with A, `down` [r, I], and B, `up` [O, r]."""

    def __init__(self, layer: nn.Linear, rank: int, scale: float) -> None:
        super().__init__()
        self.scale = scale
        self.weight = layer.weight
        self.bias = layer.bias
        self.down = nn.Parameter(torch.empty(rank, layer.in_features))
        self.up = nn.Parameter(torch.zeros(layer.out_features, rank))
        nn.init.normal_(self.down, std=layer.in_features**-0.5)

    def forward(self, x: Tensor) -> Tensor:
        """[..., I] -> [..., O]."""
        return linear(x, self.weight, self.bias) + self.scale * linear(linear(x, self.down), self.up)


def adapt(model: nn.Module, rank: int, scale: float) -> None:
    """Freeze a model, in place, and give it adapters that do nothing yet."""
    model.requires_grad_(False)
    for module in model.modules():
        if isinstance(module, MultiHeadAttention):
            for name in ("query", "value"):
                setattr(module, name, AdaptedLinear(getattr(module, name), rank, scale))


def folded(weights: Mapping[str, Tensor], scale: float) -> dict[str, Tensor]:
    """The weights of the model without adapters that computes the same."""
    found = dict(weights)
    for name in weights:
        if name.endswith(DOWN):
            layer = name.removesuffix(DOWN)
            down, up = found.pop(name), found.pop(layer + UP)
            found[f"{layer}.weight"] = found[f"{layer}.weight"] + scale * up @ down
    return found
