"""The layers of encoder and decoder (Vaswani et al. 2017, sections 3.1 to 3.3).

Shapes: B sentences, K beams per sentence, R = B x K rows, H heads, S source length, T target length, D d_model.
"""

from collections.abc import Callable, Iterator, Mapping

from torch import Tensor, nn

from mt.config import ModelConfig
from mt.model.attention import AttentionFunction, MultiHeadAttention, fused_attention
from mt.model.cache import DecoderCache
from mt.model.dropout import Dropout
from mt.model.module import Module

ACTIVATIONS: Mapping[str, Callable[[], nn.Module]] = {"relu": nn.ReLU, "gelu": nn.GELU, "swish": nn.SiLU}


class FeedForward(Module):
    """Feed-forward network: activation(x W_1 + b_1) W_2 + b_2 at each position (equation 2 with ReLU)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.inner = nn.Linear(config.d_model, config.d_ff)
        self.activation = ACTIVATIONS[config.activation]()
        self.dropout = Dropout(config.activation_dropout)
        self.outer = nn.Linear(config.d_ff, config.d_model)

    def forward(self, x: Tensor) -> Tensor:
        """Apply the network to x [..., D]. Return [..., D]."""
        out: Tensor = self.outer(self.dropout(self.activation(self.inner(x))))
        return out


class Sublayer(Module):
    """Residual connection, LayerNorm and dropout around a function.

    Post-norm (section 3.1) is norm(x + dropout(f(x))). Pre-norm (Xiong et al. 2020) is x + dropout(f(norm(x))).
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.pre = config.norm == "pre"
        self.norm = nn.LayerNorm(config.d_model, config.norm_epsilon)
        self.dropout = Dropout(config.dropout)

    def forward(self, x: Tensor, function: Callable[[Tensor], Tensor]) -> Tensor:
        """Apply `function` [B, T, D] -> [B, T, D] to x, with residual connection, LayerNorm and dropout.

        Return [B, T, D].
        """
        if self.pre:
            return x + self.dropout(function(self.norm(x)))
        normed: Tensor = self.norm(x + self.dropout(function(x)))
        return normed


class EncoderLayer(Module):
    """Encoder layer: self-attention, then feed-forward."""

    def __init__(self, config: ModelConfig, attend: AttentionFunction = fused_attention) -> None:
        super().__init__()
        self.self_attention = MultiHeadAttention(config.d_model, config.heads, config.attention_dropout, attend)
        self.feed_forward = FeedForward(config)
        self.around_self_attention = Sublayer(config)
        self.around_feed_forward = Sublayer(config)

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        """Apply the layer to x [B, S, D] with mask [B, 1, 1, S]. Return [B, S, D]."""
        x = self.around_self_attention(x, lambda h: self.self_attention(h, h, mask))
        return self.around_feed_forward(x, self.feed_forward)


class DecoderLayer(Module):
    """Decoder layer: causal self-attention, cross-attention, then feed-forward."""

    def __init__(self, config: ModelConfig, attend: AttentionFunction = fused_attention) -> None:
        super().__init__()
        sizes = (config.d_model, config.heads, config.attention_dropout)
        self.self_attention = MultiHeadAttention(*sizes, attend, causal=True)
        self.around_self_attention = Sublayer(config)
        self.cross_attention = MultiHeadAttention(*sizes, attend)
        self.around_cross_attention = Sublayer(config)
        self.feed_forward = FeedForward(config)
        self.around_feed_forward = Sublayer(config)

    def forward(self, x: Tensor, memory: Tensor, memory_mask: Tensor | None) -> Tensor:
        """Apply the layer to x [B, T, D], memory [B, S, D] and memory_mask [B, 1, 1, S]. Return [B, T, D]."""
        x = self.around_self_attention(x, lambda h: self.self_attention(h, h))
        x = self.around_cross_attention(x, lambda h: self.cross_attention(h, memory, memory_mask))
        return self.around_feed_forward(x, self.feed_forward)

    def step(self, x: Tensor, cache: DecoderCache, layer: int, mask: Tensor | None) -> Tensor:
        """Apply the layer to the newest token of each row, x [R, 1, D]. Return [R, 1, D].

        The keys and values of x are appended to layer number `layer` of the cache. `mask` is [R, 1, 1, length + 1], the
        result of DecoderCache.mask.
        """

        def attend_to_written(h: Tensor) -> Tensor:
            keys, values = cache.append(layer, *self.self_attention.keys_values(h))
            return self.self_attention.attend(h, keys, values, mask)

        def attend_to_source(h: Tensor) -> Tensor:
            queries = h.view(cache.sentences, cache.beams, -1)  # [R, 1, D] -> [B, K, D]
            return self.cross_attention.attend(queries, *cache.cross[layer], cache.memory_mask).view_as(h)

        x = self.around_self_attention(x, attend_to_written)
        x = self.around_cross_attention(x, attend_to_source)
        return self.around_feed_forward(x, self.feed_forward)

    def cross_weights(self, x: Tensor, memory: Tensor, memory_mask: Tensor) -> Tensor:
        """Return the cross-attention weights [B, H, T, S] that `forward` computes from the same arguments."""
        x = self.around_self_attention(x, lambda h: self.self_attention(h, h))
        normed = self.around_cross_attention.norm(x) if self.around_cross_attention.pre else x
        return self.cross_attention.weights(normed, memory, memory_mask)


def layers_of(model: nn.Module) -> Iterator[EncoderLayer | DecoderLayer]:
    return (module for module in model.modules() if isinstance(module, EncoderLayer | DecoderLayer))
