"""Token embeddings and positions (Vaswani et al. 2017, sections 3.4 and 3.5).

Shapes: B sentences, T tokens, D d_model, V vocabulary.
"""

import math

import torch
from torch import Tensor, nn

from mt.config import ModelConfig
from mt.model.dropout import Dropout
from mt.model.module import Module
from mt.model.positions import interleaved_positions, positions_of

NEVER = -1000.0
"""Output bias of a token that must not be produced. The resulting probability is 0, but the bias is finite."""


def sinusoidal_positions(length: int, d_model: int) -> Tensor:
    """Return the result of `interleaved_positions` as a tensor."""
    return torch.from_numpy(interleaved_positions(length, d_model))


def position_table(config: ModelConfig, length: int) -> Tensor:
    """Return the result of `positions_of` as a tensor."""
    return torch.from_numpy(positions_of(config, length))


class InputLayer(Module):
    """Learned positions and LayerNorm for source or target. Both are optional, and Embedding applies them."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.positions: nn.Embedding | None = None
        if config.positions == "learned":
            self.positions = nn.Embedding(config.max_length, config.d_model)
            nn.init.normal_(self.positions.weight, std=config.d_model**-0.5)
        self.norm = nn.LayerNorm(config.d_model, config.norm_epsilon) if config.embedding_norm else None


def input_layer(config: ModelConfig) -> InputLayer | None:
    """Return the input layer for source or target; None if neither learned positions nor a LayerNorm are configured."""
    return InputLayer(config) if config.positions == "learned" or config.embedding_norm else None


class Embedding(Module):
    """Scaled token embeddings plus positional encodings, with dropout, and the output layer.

    By default the source embeddings, the target embeddings and the output layer share one [V, D] matrix (section 3.4;
    Press and Wolf 2017). `positions` [max_length, D] are the sinusoidal encodings; None if positions are learned.
    """

    positions: Tensor | None

    def __init__(self, vocabulary_size: int, config: ModelConfig, output: bool = True) -> None:
        """Create the parameters. `output` is False for a source embedding, which needs no output layer."""
        super().__init__()
        d_model = config.d_model
        self.scale = math.sqrt(d_model) if config.scale_embedding else 1.0
        self.tokens = nn.Embedding(vocabulary_size, d_model)
        nn.init.normal_(self.tokens.weight, std=d_model**-0.5)
        self.dropout = Dropout(config.dropout)
        table = None if config.positions == "learned" else position_table(config, config.max_length)
        self.register_buffer("positions", table, persistent=False)
        self.output: nn.Parameter | None = None
        self.bias: nn.Parameter | None = None
        if output and not config.tie_output:
            self.output = nn.Parameter(nn.init.normal_(torch.empty(vocabulary_size, d_model), std=d_model**-0.5))
        if output and config.logits_bias:
            self.bias = nn.Parameter(torch.zeros(vocabulary_size))

    def forward(self, tokens: Tensor, positions: Tensor | None = None, layer: InputLayer | None = None) -> Tensor:
        """Embed tokens [B, T] at positions [B, T], by default 0, 1, ... of each sentence. Return [B, T, D].

        `layer` is the input layer of the source or target, if the model has one.
        """
        table = self.position_vectors(layer)
        x = self.tokens(tokens) * self.scale + (table[: tokens.shape[1]] if positions is None else table[positions])
        return self.dropout(x if layer is None or layer.norm is None else layer.norm(x))

    def position_vectors(self, layer: InputLayer | None = None) -> Tensor:
        """Return the vectors [max_length, D] that are added to token embeddings: sinusoidal, or learned by `layer`."""
        if self.positions is not None:
            return self.positions
        assert layer is not None and layer.positions is not None
        return layer.positions.weight

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
