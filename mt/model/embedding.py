"""Token embeddings and sinusoidal positions (Vaswani et al. 2017, sections 3.4 and 3.5)."""

import math

import torch
from torch import Tensor, nn

from mt.model.dropout import Dropout


def sinusoidal_positions(length: int, d_model: int) -> Tensor:
    """PE(pos, 2i) = sin(pos / 10000^(2i/d_model)), PE(pos, 2i+1) = cos of the same: [length, d_model]."""
    position = torch.arange(length, dtype=torch.float64).unsqueeze(1)
    frequency = torch.exp(torch.arange(0, d_model, 2, dtype=torch.float64) * (-math.log(10000.0) / d_model))
    angle = position * frequency  # [length, d_model / 2]
    return torch.stack((angle.sin(), angle.cos()), dim=-1).flatten(1).float()


class Embedding(nn.Module):
    """Scaled token embeddings plus positions, with dropout; and, tied to them, the output layer.

    One [V, D] matrix serves source, target and output (section 3.4; Press and Wolf 2017).
    """

    positions: Tensor

    def __init__(self, vocabulary_size: int, d_model: int, dropout: float, max_length: int) -> None:
        super().__init__()
        self.scale = math.sqrt(d_model)
        self.tokens = nn.Embedding(vocabulary_size, d_model)
        nn.init.normal_(self.tokens.weight, std=d_model**-0.5)
        self.dropout = Dropout(dropout)
        self.register_buffer("positions", sinusoidal_positions(max_length, d_model), persistent=False)

    def forward(self, tokens: Tensor, positions: Tensor | None = None) -> Tensor:
        """tokens [B, T] -> [B, T, D]; positions [B, T] count from 0 unless given."""
        encoding = self.positions[: tokens.shape[1]] if positions is None else self.positions[positions]
        embedded: Tensor = self.dropout(self.tokens(tokens) * self.scale + encoding)
        return embedded

    def project(self, states: Tensor) -> Tensor:
        """states [..., D] -> logits [..., V]."""
        return nn.functional.linear(states, self.tokens.weight)
