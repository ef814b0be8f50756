"""Names of the modules of Transformer layers: in our models, in those of transformers that are imported, in Marian.

Marian has no modules: for each, the names of its weight and its bias are given.
"""

from collections.abc import Iterator

from mt.config import ModelConfig
from mt.interop.mapping import Row, parameter_rows

ModuleNames = tuple[str, str, tuple[str, str]]
"""Our name of a module, that of transformers, and the names of its weight and bias in Marian."""


def _attention(ours: str, theirs: str, marian: str) -> Iterator[ModuleNames]:
    for projection, letter in (("query", "q"), ("key", "k"), ("value", "v"), ("output", "o")):
        name = "out" if letter == "o" else letter
        yield f"{ours}.{projection}", f"{theirs}.{name}_proj", (f"{marian}_W{letter}", f"{marian}_b{letter}")
    yield f"around_{ours}.norm", f"{theirs}_layer_norm", (f"{marian}_Wo_ln_scale", f"{marian}_Wo_ln_bias")


ENCODER: tuple[ModuleNames, ...] = (
    *_attention("self_attention", "self_attn", "self"),
    ("feed_forward.inner", "fc1", ("ffn_W1", "ffn_b1")),
    ("feed_forward.outer", "fc2", ("ffn_W2", "ffn_b2")),
    ("around_feed_forward.norm", "final_layer_norm", ("ffn_ffn_ln_scale", "ffn_ffn_ln_bias")),
)
DECODER = (*ENCODER, *_attention("cross_attention", "encoder_attn", "context"))


def layer_modules(config: ModelConfig) -> Iterator[tuple[str, int, ModuleNames]]:
    """Yield the side (encoder or decoder), the index of the layer and the names of each module of all layers."""
    for side, modules, layers in (
        ("encoder", ENCODER, config.encoder_layers),
        ("decoder", DECODER, config.decoder_layers),
    ):
        yield from ((side, index, names) for index in range(layers) for names in modules)


def huggingface_layer_rows(config: ModelConfig) -> Iterator[Row]:
    """Yield the table rows for the weights of all layers of a model of transformers."""
    for side, index, (ours, theirs, _) in layer_modules(config):
        yield from parameter_rows(f"model.{side}.layers.{index}.{theirs}", f"{side}.layers.{index}.{ours}")
