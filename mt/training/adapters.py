"""Low-rank adapters (LoRA): W x + b becomes W x + b + s B A x, and only A and B are trained (Hu et al. 2022).

Every query and value projection has an adapter. At a fixed number of parameters, the paper finds these two projections
together best, better than one of them with twice the rank (section 7.1, table 5). B begins at zero: at first the
adapted model equals the original one (section 4.1). When the model is published, s B A is added to W.
"""

from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from mt.model.attention import MultiHeadAttention

DOWN, UP = ".down", ".up"  # suffixes of the names of A and B


class AdaptedLinear(nn.Module):
    """A frozen linear layer [..., I] -> [..., O] with an adapter of rank r: A is `down` [r, I], B is `up` [O, r]."""

    def __init__(self, layer: nn.Linear, rank: int, scale: float) -> None:
        super().__init__()
        self.scale = scale
        self.weight = layer.weight
        self.bias = layer.bias
        self.down = nn.Parameter(torch.empty(rank, layer.in_features))
        self.up = nn.Parameter(torch.zeros(layer.out_features, rank))
        nn.init.normal_(self.down, std=layer.in_features**-0.5)

    def forward(self, x: Tensor) -> Tensor:
        """Apply the layer and its adapter: [..., I] -> [..., O]."""
        return linear(x, self.weight, self.bias) + self.scale * linear(linear(x, self.down), self.up)


def adapt(model: nn.Module, rank: int, scale: float) -> None:
    """Freeze a model in place, and add adapters whose output is 0 until they are trained."""
    model.requires_grad_(False)
    for module in model.modules():
        if isinstance(module, MultiHeadAttention):
            for name in ("query", "value"):
                setattr(module, name, AdaptedLinear(getattr(module, name), rank, scale))


def merge_adapters(weights: Mapping[str, Tensor], scale: float) -> dict[str, Tensor]:
    """Return the weights by name with each adapter merged into its layer: W + scale * B A."""
    merged = dict(weights)
    for name in weights:
        if name.endswith(DOWN):
            layer = name.removesuffix(DOWN)
            down, up = merged.pop(name), merged.pop(layer + UP)
            merged[f"{layer}.weight"] = merged[f"{layer}.weight"] + scale * up @ down
    return merged
