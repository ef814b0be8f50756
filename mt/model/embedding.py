"""Token embeddings and positions (Vaswani et al. 2017, sections 3.4 and 3.5).

Shapes: B sentences, T tokens, D d_model, V vocabulary.
"""

import math

import torch
from torch import Tensor, nn

from mt.config import ModelConfig
from mt.model.dropout import Dropout
from mt.model.module import Module
from mt.model.positions import positions_of

NEVER = -1000.0
"""Output bias of a token that must not be produced. The resulting probability is 0, but the bias is finite."""


def position_table(config: ModelConfig, length: int) -> Tensor:
    """Return the result of `positions_of` as a tensor."""
    return torch.from_numpy(positions_of(config, length))


class Positions(Module):
    """Position vectors, `weight` [max_length, D]: sinusoidal, or learned."""

    weight: Tensor

    def forward(self, length: int, positions: Tensor | None = None) -> Tensor:
        """Return the vectors of `positions` [B, T], by default of the first `length` positions: [B, T, D] or [T, D]."""
        return self.weight[:length] if positions is None else self.weight[positions]


class SinusoidalPositions(Positions):
    """The sinusoids of section 3.5, which are not part of a model's weights."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.register_buffer("weight", position_table(config, config.max_length), persistent=False)


class LearnedPositions(Positions):
    """A vector of parameters for each position, as in mBART."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        vectors = torch.empty(config.max_length, config.d_model)
        self.weight = nn.Parameter(nn.init.normal_(vectors, std=config.d_model**-0.5))


class InputLayer(Module):
    """Input of the encoder or the decoder: token embeddings plus positions, with dropout (section 5.4).

    If the configuration has `embedding_norm`, a LayerNorm is applied to the sum.
    """

    def __init__(self, config: ModelConfig, positions: Positions) -> None:
        super().__init__()
        self.positions = positions
        self.norm = nn.LayerNorm(config.d_model, config.norm_epsilon) if config.embedding_norm else None
        self.dropout = Dropout(config.dropout)

    def forward(self, embedded: Tensor, positions: Tensor | None = None) -> Tensor:
        """Add the vectors of `positions` [B, T], by default 0, 1, ..., to embeddings [B, T, D]. Return [B, T, D]."""
        x = embedded + self.positions(embedded.shape[1], positions)
        return self.dropout(x if self.norm is None else self.norm(x))


class Embedding(Module):
    """Scaled token embeddings, and the output layer.

    By default the source embeddings, the target embeddings and the output layer share one [V, D] matrix (section 3.4;
    Press and Wolf 2017).
    """

    def __init__(self, vocabulary_size: int, config: ModelConfig, output: bool = True) -> None:
        """Create the parameters. `output` is False for a source embedding, which needs no output layer."""
        super().__init__()
        d_model = config.d_model
        self.scale = math.sqrt(d_model) if config.scale_embedding else 1.0
        self.tokens = nn.Embedding(vocabulary_size, d_model)
        nn.init.normal_(self.tokens.weight, std=d_model**-0.5)
        self.output: nn.Parameter | None = None
        self.bias: nn.Parameter | None = None
        if output and not config.tie_output:
            self.output = nn.Parameter(nn.init.normal_(torch.empty(vocabulary_size, d_model), std=d_model**-0.5))
        if output and config.logits_bias:
            self.bias = nn.Parameter(torch.zeros(vocabulary_size))

    def forward(self, tokens: Tensor) -> Tensor:
        """Return the scaled embeddings [B, T, D] of tokens [B, T]."""
        scaled: Tensor = self.tokens(tokens) * self.scale
        return scaled

    @property
    def projection(self) -> Tensor:
        """Weight [V, D] of the output layer."""
        return self.tokens.weight if self.output is None else self.output

    def project(self, states: Tensor) -> Tensor:
        """Return the logits [..., V] of decoder states [..., D].

        For bfloat16 states on a GPU, without gradients, the logits are float32. In bfloat16, logits between 16 and 32
        are multiples of 0.125, and different hypotheses would get equal scores.
        """
        if states.dtype == torch.bfloat16 and states.device.type != "cpu" and not torch.is_grad_enabled():
            rows = torch.mm(states.flatten(0, -2), self.projection.t(), out_dtype=torch.float32)
            logits = rows.view(*states.shape[:-1], -1)
            return logits if self.bias is None else logits + self.bias
        return nn.functional.linear(states, self.projection, self.bias)
