"""Token embeddings and sinusoidal positions (Vaswani et al. 2017, sections 3.4 and 3.5)."""

import math

import torch
from torch import Tensor, nn

from mt.config import ModelConfig
from mt.model.dropout import Dropout

NEVER = -1000.0
"""The bias of a piece that must not come out: a probability of 0, and a logit that sums survive."""


def sinusoidal_positions(length: int, d_model: int) -> Tensor:
    """PE(pos, 2i) = sin(pos / 10000^(2i/d_model)), PE(pos, 2i+1) = cos of the same: [length, d_model]."""
    angle = _angles(length, d_model, d_model)
    return torch.stack((angle.sin(), angle.cos()), dim=-1).flatten(1).float()


def position_table(config: ModelConfig, length: int) -> Tensor:
    """What is added to the embeddings of the first `length` tokens of a sentence: [length, d_model]."""
    d_model, first = config.d_model, config.first_position
    if config.positions == "interleaved":
        return sinusoidal_positions(first + length, d_model)[first:]
    angle = _angles(first + length, d_model, d_model if config.positions == "concatenated" else max(1, d_model - 2))
    return torch.cat((angle.sin(), angle.cos()), dim=1).float()[first:]


def _angles(length: int, d_model: int, denominator: int) -> Tensor:
    """pos / 10000^(2i/denominator): float64 [length, d_model / 2]."""
    position = torch.arange(length, dtype=torch.float64).unsqueeze(1)
    frequency = torch.exp(torch.arange(0, d_model, 2, dtype=torch.float64) * (-math.log(10000.0) / denominator))
    return position * frequency


class Embedding(nn.Module):
    """Scaled token embeddings plus positions, with dropout; and, tied to them, the output layer.

    One [V, D] matrix serves source, target and output (section 3.4; Press and Wolf 2017), unless options untie them.
    """

    positions: Tensor

    def __init__(self, vocabulary_size: int, config: ModelConfig, output: bool = True) -> None:
        """Without `output` there is no output layer: an encoder has none."""
        super().__init__()
        d_model = config.d_model
        self.scale = math.sqrt(d_model) if config.scale_embedding else 1.0
        self.tokens = nn.Embedding(vocabulary_size, d_model)
        nn.init.normal_(self.tokens.weight, std=d_model**-0.5)
        self.dropout = Dropout(config.dropout)
        self.register_buffer("positions", position_table(config, config.max_length), persistent=False)
        self.output: nn.Parameter | None = None
        self.bias: nn.Parameter | None = None
        if output and not config.tie_output:
            self.output = nn.Parameter(nn.init.normal_(torch.empty(vocabulary_size, d_model), std=d_model**-0.5))
        if output and config.logits_bias:
            self.bias = nn.Parameter(torch.zeros(vocabulary_size))

    def forward(self, tokens: Tensor, positions: Tensor | None = None) -> Tensor:
        """tokens [B, T] -> [B, T, D]; positions [B, T] count from 0 unless given."""
        encoding = self.positions[: tokens.shape[1]] if positions is None else self.positions[positions]
        embedded: Tensor = self.dropout(self.tokens(tokens) * self.scale + encoding)
        return embedded

    @property
    def projection(self) -> Tensor:
        """The weight [V, D] of the output layer."""
        return self.tokens.weight if self.output is None else self.output

    def project(self, states: Tensor) -> Tensor:
        """states [..., D] -> logits [..., V]."""
        return nn.functional.linear(states, self.projection, self.bias)
