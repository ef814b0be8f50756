"""The encoder-decoder of "Attention Is All You Need".

Shapes: B sentences, S source length, T target length, K beams per sentence, R = B x K rows, L layers, H heads, D
d_model, V vocabulary. A source mask is boolean [B, S], True on tokens, False on padding.
"""

from typing import cast

import torch
from torch import Tensor, nn

from mt.config import ModelConfig
from mt.model.attention import AttentionFunction, fused_attention
from mt.model.cache import DecoderCache
from mt.model.embedding import Embedding, InputLayer, LearnedPositions, SinusoidalPositions
from mt.model.layers import DecoderLayer, EncoderLayer
from mt.model.module import Module, module_list


def closing_norm(config: ModelConfig) -> Module:
    """Return the module after the last layer: a LayerNorm with pre-norm, else the identity."""
    norm = nn.LayerNorm(config.d_model, config.norm_epsilon) if config.norm == "pre" else nn.Identity()
    return cast(Module, norm)


class Encoder(Module):
    """A stack of encoder layers. With pre-norm, a LayerNorm follows the last layer."""

    def __init__(self, config: ModelConfig, attend: AttentionFunction = fused_attention) -> None:
        super().__init__()
        self.layers = module_list(EncoderLayer(config, attend) for _ in range(config.encoder_layers))
        self.norm = closing_norm(config)

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        """Encode x [B, S, D] with mask [B, 1, 1, S]. Return [B, S, D]."""
        for layer in self.layers:
            x = layer(x, mask)
        return self.norm(x)


class Decoder(Module):
    """A stack of decoder layers. With pre-norm, a LayerNorm follows the last layer."""

    def __init__(self, config: ModelConfig, attend: AttentionFunction = fused_attention) -> None:
        super().__init__()
        self.heads = config.heads
        self.layers = module_list(DecoderLayer(config, attend) for _ in range(config.decoder_layers))
        self.norm = closing_norm(config)

    def forward(self, x: Tensor, memory: Tensor, memory_mask: Tensor | None) -> Tensor:
        """Decode x [B, T, D] with memory [B, S, D] and memory_mask [B, 1, 1, S]. Return [B, T, D]."""
        for layer in self.layers:
            x = layer(x, memory, memory_mask)
        return self.norm(x)

    def start(self, memory: Tensor, memory_mask: Tensor, beams: int) -> DecoderCache:
        """Return a cache without target tokens, with `beams` rows for each sentence.

        The cache contains the cross-attention keys and values of `memory` [B, S, D]. `memory_mask` is [B, 1, 1, S].
        """
        cross = [layer.cross_attention.keys_values(memory) for layer in self.layers]
        sentences, d_k = len(memory), memory.shape[-1] // self.heads
        keys = memory.new_zeros(0, len(self.layers), sentences * beams, self.heads, d_k)
        return DecoderCache(keys, cross, memory_mask, beams)

    def step(self, x: Tensor, cache: DecoderCache) -> Tensor:
        """Decode the newest token of each row, x [R, 1, D], and append its keys and values to the cache.

        Return [R, 1, D].
        """
        mask = cache.mask()
        for index, layer in enumerate(self.layers):
            x = layer.step(x, cache, index, mask)
        cache.advance()
        return self.norm(x)

    def cross_weights(self, x: Tensor, memory: Tensor, memory_mask: Tensor) -> Tensor:
        """Return the cross-attention weights [L, B, H, T, S] of all layers for x [B, T, D] and memory [B, S, D]."""
        weights = []
        for layer in self.layers:
            weights.append(layer.cross_weights(x, memory, memory_mask))
            x = layer(x, memory, memory_mask)
        return torch.stack(weights)


class Transformer(Module):
    """Encoder-decoder over one vocabulary, or over a source and a target vocabulary."""

    def __init__(
        self,
        config: ModelConfig,
        vocabulary_size: int,
        attend: AttentionFunction = fused_attention,
        source_vocabulary_size: int | None = None,
    ) -> None:
        """Build a model. `source_vocabulary_size` is None if source and target share one vocabulary."""
        super().__init__()
        assert source_vocabulary_size is None or not config.tie_source, "tie_source requires one vocabulary"
        self.config = config
        self.vocabulary_size = vocabulary_size
        self.embedding = Embedding(vocabulary_size, config)
        self.source_embedding = None
        if not config.tie_source:
            self.source_embedding = Embedding(source_vocabulary_size or vocabulary_size, config, output=False)
        if config.positions == "learned":
            self.source_input, self.target_input = (InputLayer(config, LearnedPositions(config)) for _ in range(2))
        else:
            sinusoids = SinusoidalPositions(config)
            self.source_input, self.target_input = (InputLayer(config, sinusoids) for _ in range(2))
        self.encoder = Encoder(config, attend)
        self.decoder = Decoder(config, attend)
        initialise(self)

    def forward(self, source: Tensor, source_mask: Tensor, target: Tensor) -> Tensor:
        """Return logits [B, T, V] of source [B, S], source_mask [B, S] and target [B, T], which begins with BOS."""
        states = self.decode(target, self.encode(source, source_mask), source_mask)
        return self.embedding.project(states)

    def encode(self, source: Tensor, source_mask: Tensor) -> Tensor:
        """Encode source [B, S] with source_mask [B, S] into memory [B, S, D]."""
        embed = self.embedding if self.source_embedding is None else self.source_embedding
        return self.encoder(self.source_input(embed(source)), _over_keys(source_mask))

    def embed_target(self, target: Tensor, positions: Tensor | None = None) -> Tensor:
        """Embed target tokens [B, T] at positions [B, T], by default 0, 1, ... of each sentence. Return [B, T, D]."""
        return self.target_input(self.embedding(target), positions)

    def decode(self, target: Tensor, memory: Tensor, source_mask: Tensor) -> Tensor:
        """Return the decoder states [B, T, D] of target [B, T] and memory [B, S, D].

        `embedding.project` maps states to logits. Padding at the end of a target needs no mask: no earlier position
        attends to it.
        """
        return self.decoder(self.embed_target(target), memory, _over_keys(source_mask))

    def start(self, memory: Tensor, source_mask: Tensor, beams: int) -> DecoderCache:
        """Return an empty decoder cache with `beams` rows for each sentence of memory [B, S, D]."""
        return self.decoder.start(memory, _over_keys(source_mask), beams)

    def decode_step(self, tokens: Tensor, cache: DecoderCache) -> Tensor:
        """Append the newest token of each row, `tokens` [R], to the cache.

        Return the logits [R, V] of the next tokens.
        """
        positions = cache.positions(self.config.max_length)
        states = self.decoder.step(self.embed_target(tokens.unsqueeze(1), positions), cache)
        return self.embedding.project(states.squeeze(1))

    def cross_attention(self, source: Tensor, source_mask: Tensor, target: Tensor) -> Tensor:
        """Return the cross-attention weights [L, B, H, T, S] of source [B, S] and target [B, T]."""
        memory = self.encode(source, source_mask)
        return self.decoder.cross_weights(self.embed_target(target), memory, _over_keys(source_mask))


def _over_keys(mask: Tensor) -> Tensor:
    """Convert a source mask [B, S] to an attention mask [B, 1, 1, S].

    The strides of the new dimensions are multiples of the stride of the rows. The result of `attention_mask` therefore
    keeps its alignment; with `mask[:, None, None, :]`, they would be S, and each layer would copy the mask.
    """
    return mask[None, None].transpose(0, 2)


def initialise(model: nn.Module) -> None:
    """Set all linear layers to Xavier-uniform weights and zero biases. Embeddings keep their initial values."""
    for module in model.modules():
        if isinstance(module, nn.Linear):
            nn.init.xavier_uniform_(module.weight)
            nn.init.zeros_(module.bias)
