"""The encoder-decoder of "Attention Is All You Need", and a decoder-only language model out of the same blocks.

Shapes: B sentences, S source length, T target length, R = B x K rows of K beams, D d_model, V vocabulary.
Source masks are boolean [B, S], True on tokens, False on padding.
"""

import torch
from torch import Tensor, nn

from mt.config import ModelConfig
from mt.model.attention import AttentionFunction, fused_attention
from mt.model.cache import DecoderCache
from mt.model.embedding import Embedding
from mt.model.layers import DecoderLayer, EncoderLayer


def causal_mask(length: int, device: torch.device) -> Tensor:
    """True where a position may attend: to itself and to what stands before it, [T, T]."""
    return torch.ones(length, length, dtype=torch.bool, device=device).tril()


def closing_norm(config: ModelConfig) -> nn.Module:
    """What stands after the last layer of a stack."""
    return nn.LayerNorm(config.d_model, config.norm_epsilon) if config.norm == "pre" else nn.Identity()


class Encoder(nn.Module):
    """A stack of encoder layers; with pre-norm a last LayerNorm closes it."""

    def __init__(self, config: ModelConfig, attend: AttentionFunction = fused_attention) -> None:
        super().__init__()
        self.layers = nn.ModuleList(EncoderLayer(config, attend) for _ in range(config.encoder_layers))
        self.norm = closing_norm(config)

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        """x [B, S, D], mask [B, 1, 1, S] -> [B, S, D]."""
        for layer in self.layers:
            x = layer(x, mask)
        return self.norm(x)  # type: ignore[no-any-return]


class Decoder(nn.Module):
    """A stack of decoder layers; with pre-norm a last LayerNorm closes it."""

    def __init__(
        self, config: ModelConfig, cross_attention: bool = True, attend: AttentionFunction = fused_attention
    ) -> None:
        super().__init__()
        self.heads = config.heads
        self.layers = nn.ModuleList(DecoderLayer(config, cross_attention, attend) for _ in range(config.decoder_layers))
        self.norm = closing_norm(config)

    def forward(self, x: Tensor, memory: Tensor | None, memory_mask: Tensor | None) -> Tensor:
        """x [B, T, D], memory [B, S, D], memory_mask [B, 1, 1, S] -> [B, T, D]."""
        mask = causal_mask(x.shape[1], x.device)
        for layer in self.layers:
            x = layer(x, mask, memory, memory_mask)
        return self.norm(x)  # type: ignore[no-any-return]

    def start(self, memory: Tensor | None, memory_mask: Tensor | None, rows: int, beams: int) -> DecoderCache:
        """An empty cache for `rows` rows, with the cross-attention keys and values of memory [B, S, D] in it."""
        cross = []
        if memory is not None:
            cross = [layer.cross_attention.keys_values(memory) for layer in self.layers]  # type: ignore[union-attr, operator]
        like = next(self.parameters()) if memory is None else memory
        d_k = like.shape[-1] // self.heads
        return DecoderCache(like.new_zeros(0, len(self.layers), rows, self.heads, d_k), cross, memory_mask, beams)

    def step(self, x: Tensor, cache: DecoderCache) -> Tensor:
        """One position for each row: x [R, 1, D] -> [R, 1, D]."""
        mask = cache.mask()
        for index, layer in enumerate(self.layers):
            x = layer.step(x, cache, index, mask)  # type: ignore[operator]
        cache.advance()
        return self.norm(x)  # type: ignore[no-any-return]

    def cross_weights(self, x: Tensor, memory: Tensor, memory_mask: Tensor) -> Tensor:
        """The cross-attention weights of every layer: [L, B, H, T, S]."""
        mask = causal_mask(x.shape[1], x.device)
        weights = []
        for layer in self.layers:
            weights.append(layer.cross_weights(x, mask, memory, memory_mask))  # type: ignore[operator]
            x = layer(x, mask, memory, memory_mask)
        return torch.stack(weights)


class Transformer(nn.Module):
    """forward = decode(encode()), over one vocabulary whose embeddings are tied three ways, or as the options say."""

    def __init__(
        self,
        config: ModelConfig,
        vocabulary_size: int,
        attend: AttentionFunction = fused_attention,
        source_vocabulary_size: int | None = None,
    ) -> None:
        """Source and target have one vocabulary, unless that of the source is given a size of its own."""
        super().__init__()
        assert source_vocabulary_size is None or not config.tie_source, "two vocabularies have one matrix each"
        self.config = config
        self.vocabulary_size = vocabulary_size
        self.embedding = Embedding(vocabulary_size, config)
        self.source_embedding = None
        if not config.tie_source:
            self.source_embedding = Embedding(source_vocabulary_size or vocabulary_size, config, output=False)
        self.encoder = Encoder(config, attend)
        self.decoder = Decoder(config, attend=attend)
        _initialise(self)

    def forward(self, source: Tensor, source_mask: Tensor, target: Tensor) -> Tensor:
        """source [B, S], source_mask [B, S], target [B, T] that begins with BOS -> logits [B, T, V]."""
        states = self.decode(target, self.encode(source, source_mask), source_mask)
        return self.embedding.project(states)

    def encode(self, source: Tensor, source_mask: Tensor) -> Tensor:
        """source [B, S], source_mask [B, S] -> memory [B, S, D]."""
        embed = self.embedding if self.source_embedding is None else self.source_embedding
        return self.encoder(embed(source), _over_keys(source_mask))  # type: ignore[no-any-return]

    def decode(self, target: Tensor, memory: Tensor, source_mask: Tensor) -> Tensor:
        """target [B, T], memory [B, S, D] -> states [B, T, D], which `embedding.project` turns into logits.

        Padding at the end of a target needs no mask: no earlier position attends to it.
        """
        return self.decoder(self.embedding(target), memory, _over_keys(source_mask))  # type: ignore[no-any-return]

    def start(self, memory: Tensor, source_mask: Tensor, beams: int) -> DecoderCache:
        """The cache of a search with `beams` rows for each sentence of memory [B, S, D]."""
        return self.decoder.start(memory, _over_keys(source_mask), memory.shape[0] * beams, beams)

    def decode_step(self, tokens: Tensor, cache: DecoderCache) -> Tensor:
        """Each row's newest token [R] -> logits of its next one [R, V]; the cache grows by one column."""
        states = self.decoder.step(self.embedding(tokens.unsqueeze(1), cache.positions(self.config.max_length)), cache)
        return self.embedding.project(states.squeeze(1))

    def cross_attention(self, source: Tensor, source_mask: Tensor, target: Tensor) -> Tensor:
        """Weights with which each target position [B, T] attends to each source position: [L, B, H, T, S]."""
        memory = self.encode(source, source_mask)
        return self.decoder.cross_weights(self.embedding(target), memory, _over_keys(source_mask))


class LanguageModel(nn.Module):
    """A decoder without cross-attention over tied embeddings; `encoder_layers` of its configuration is not used."""

    def __init__(self, config: ModelConfig, vocabulary_size: int, attend: AttentionFunction = fused_attention) -> None:
        super().__init__()
        self.config = config
        self.vocabulary_size = vocabulary_size
        self.embedding = Embedding(vocabulary_size, config)
        self.decoder = Decoder(config, cross_attention=False, attend=attend)
        _initialise(self)

    def forward(self, target: Tensor) -> Tensor:
        """target [B, T] that begins with BOS -> logits [B, T, V]."""
        return self.embedding.project(self.decode(target))

    def decode(self, target: Tensor) -> Tensor:
        """target [B, T] -> states [B, T, D], as `Transformer.decode` without a memory."""
        return self.decoder(self.embedding(target), None, None)  # type: ignore[no-any-return]

    def start(self, rows: int) -> DecoderCache:
        """The cache of `rows` sequences."""
        return self.decoder.start(None, None, rows, 1)

    def decode_step(self, tokens: Tensor, cache: DecoderCache) -> Tensor:
        """Each row's newest token [R] -> logits of its next one [R, V]."""
        states = self.decoder.step(self.embedding(tokens.unsqueeze(1), cache.positions(self.config.max_length)), cache)
        return self.embedding.project(states.squeeze(1))


AnyModel = Transformer | LanguageModel
"""What is trained."""


def _over_keys(mask: Tensor) -> Tensor:
    """[B, S] -> [B, 1, 1, S]."""
    return mask[:, None, None, :]


def _initialise(model: nn.Module) -> None:
    """Xavier-uniform matrices and zero biases; embeddings keep their own initial values."""
    for module in model.modules():
        if isinstance(module, nn.Linear):
            nn.init.xavier_uniform_(module.weight)
            nn.init.zeros_(module.bias)
