"""Names and shapes of the weights of a model, without torch."""

from collections.abc import Iterator

from mt.config import ModelConfig

Shapes = dict[str, tuple[int, ...]]


def transformer_shapes(config: ModelConfig, vocabulary_size: int, source_vocabulary_size: int | None = None) -> Shapes:
    """Return the shape of each weight of a Transformer (mt/model/transformer.py) by the name of the weight.

    `source_vocabulary_size` is None if source and target share one vocabulary.
    """
    shapes = dict(_embedding(config, vocabulary_size))
    if not config.tie_source:
        shapes["source_embedding.tokens.weight"] = (source_vocabulary_size or vocabulary_size, config.d_model)
    for side in ("source_input", "target_input"):
        shapes |= dict(_input_layer(config, side))
    return shapes | dict(_layers(config, "encoder", [])) | dict(_layers(config, "decoder", ["cross_attention"]))


def _embedding(config: ModelConfig, size: int) -> Iterator[tuple[str, tuple[int, ...]]]:
    yield "embedding.tokens.weight", (size, config.d_model)
    if not config.tie_output:
        yield "embedding.output", (size, config.d_model)
    if config.logits_bias:
        yield "embedding.bias", (size,)


def _input_layer(config: ModelConfig, name: str) -> Iterator[tuple[str, tuple[int, ...]]]:
    if config.positions == "learned":
        yield f"{name}.positions.weight", (config.max_length, config.d_model)
    if config.embedding_norm:
        yield from _norm(config, f"{name}.norm")


def _layers(config: ModelConfig, stack: str, attentions: list[str]) -> Iterator[tuple[str, tuple[int, ...]]]:
    count = config.encoder_layers if stack == "encoder" else config.decoder_layers
    for number in range(count):
        layer = f"{stack}.layers.{number}"
        for attention in ["self_attention", *attentions]:
            for part in ("query", "key", "value", "output"):
                yield from _linear(f"{layer}.{attention}.{part}", config.d_model, config.d_model)
            yield from _norm(config, f"{layer}.around_{attention}.norm")
        yield from _linear(f"{layer}.feed_forward.inner", config.d_ff, config.d_model)
        yield from _linear(f"{layer}.feed_forward.outer", config.d_model, config.d_ff)
        yield from _norm(config, f"{layer}.around_feed_forward.norm")
    if config.norm == "pre":
        yield from _norm(config, f"{stack}.norm")


def _linear(name: str, outputs: int, inputs: int) -> Iterator[tuple[str, tuple[int, ...]]]:
    yield f"{name}.weight", (outputs, inputs)
    yield f"{name}.bias", (outputs,)


def _norm(config: ModelConfig, name: str) -> Iterator[tuple[str, tuple[int, ...]]]:
    yield f"{name}.weight", (config.d_model,)
    yield f"{name}.bias", (config.d_model,)
