"""Low-rank adapters (LoRA): W x + b becomes W x + b + s B A x, and only A and B are trained (Hu et al. 2022).

Every query and value projection has an adapter. In the paper, adapters for both projections give better results than
adapters of twice the rank for one of them (section 7.1, table 5). B is initialised to zero, so that the adapted model
equals the original one before training (section 4.1). When the model is published, s B A is added to W.
"""

from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from mt.model.attention import MultiHeadAttention

DOWN, UP = ".down", ".up"  # suffixes of the names of A and B


class AdaptedLinear(nn.Module):
    """A frozen linear layer with an adapter of rank r.

    The layer maps I input features to O output features. A is `down` [r, I], B is `up` [O, r], and s is `scale`.
    """

    def __init__(self, layer: nn.Linear, rank: int, scale: float) -> None:
        super().__init__()
        self.scale = scale
        self.weight = layer.weight
        self.bias = layer.bias
        self.down = nn.Parameter(torch.empty(rank, layer.in_features))
        self.up = nn.Parameter(torch.zeros(layer.out_features, rank))
        nn.init.normal_(self.down, std=layer.in_features**-0.5)

    def forward(self, x: Tensor) -> Tensor:
        """Return W x + b + s B A x: [..., I] -> [..., O]."""
        return linear(x, self.weight, self.bias) + self.scale * linear(linear(x, self.down), self.up)


def adapt(model: nn.Module, rank: int, scale: float) -> None:
    """Freeze all parameters of `model` in place, and add an adapter to each query and value projection.

    The output of a new adapter is 0.
    """
    model.requires_grad_(False)
    for module in model.modules():
        if isinstance(module, MultiHeadAttention):
            for name in ("query", "value"):
                setattr(module, name, AdaptedLinear(getattr(module, name), rank, scale))


def merge_adapters(weights: Mapping[str, Tensor], scale: float) -> dict[str, Tensor]:
    """Return `weights` without adapters: the weight of each adapted layer becomes W + scale * B A."""
    merged = dict(weights)
    for name in weights:
        if name.endswith(DOWN):
            layer = name.removesuffix(DOWN)
            down, up = merged.pop(name), merged.pop(layer + UP)
            merged[f"{layer}.weight"] = merged[f"{layer}.weight"] + scale * up @ down
    return merged
