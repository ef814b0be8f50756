"""Names of the weights of Transformer layers, which are the same in all models of transformers that are imported."""

from collections.abc import Iterator

from mt.config import ModelConfig
from mt.interop.mapping import Row, parameter_rows

FEED_FORWARD = {
    "fc1": "feed_forward.inner",
    "fc2": "feed_forward.outer",
    "final_layer_norm": "around_feed_forward.norm",
}


def layer_rows(config: ModelConfig) -> Iterator[Row]:
    """Yield the table rows for the weights of all encoder and decoder layers."""
    encoder = {**_attention("self_attn", "self_attention"), **FEED_FORWARD}
    decoder = {**encoder, **_attention("encoder_attn", "cross_attention")}
    for side, modules, layers in (
        ("encoder", encoder, config.encoder_layers),
        ("decoder", decoder, config.decoder_layers),
    ):
        for index in range(layers):
            for theirs, ours in modules.items():
                name = f"{side}.layers.{index}."
                yield from parameter_rows(f"model.{name}{theirs}", f"{name}{ours}")


def _attention(theirs: str, ours: str) -> dict[str, str]:
    projections = {"q": "query", "k": "key", "v": "value", "out": "output"}
    modules = {f"{theirs}.{short}_proj": f"{ours}.{projection}" for short, projection in projections.items()}
    return {**modules, f"{theirs}_layer_norm": f"around_{ours}.norm"}
