"""Export to CTranslate2 through the library's model specification (`ctranslate2.specs`)."""

from collections.abc import Iterator
from pathlib import Path

from torch import Tensor

from mt.checkpoint import LoadedModel, load_model
from mt.config import ModelConfig
from mt.errors import ModelError, problems
from mt.files import atomic_folder
from mt.interop.mapping import Row, Table, find_misplaced, rename_weights
from mt.interop.output import check_output, exported_card
from mt.model.embedding import position_table
from mt.tokenizer import BOS, EOS, SOURCE_FILE, TARGET_FILE, UNK, VOCABULARY_FILE

try:
    from ctranslate2.specs import common_spec, model_spec, transformer_spec
except ModuleNotFoundError:  # an optional dependency, which `export_ctranslate2` reports
    transformer_spec = None

POSITIONS = "embedding.positions"  # our position table; stored, because CTranslate2 would compute a different one

LONGEST_INPUT = 1024  # tokens, the default limit of CTranslate2; the position table has one row per token


def export_ctranslate2(model: Path, out: Path, quantization: str | None = None) -> None:
    """Convert the model directory `model` to a model of CTranslate2 in the folder `out`. An existing model is replaced.

    The folder also gets `tokenizer.model` and a README.md with an example program. The weights are float32, which
    CTranslate2 converts to its `compute_type` when it loads them, or in a `quantization` of CTranslate2.

    Raises:
        ModelError: ctranslate2 is not installed, the model cannot be loaded, CTranslate2 has no counterpart of a
            weight, or `out` exists and is not a model.
    """
    if transformer_spec is None:
        raise ModelError("ctranslate2 is not installed. Run pip install 'mt-service[interop]'")
    check_output(out, model)
    loaded = load_model(model)
    spec = specification(loaded)
    spec.validate()
    spec.optimize(quantization)
    with atomic_folder(out) as temporary:
        spec.save(str(temporary))
        for name, content in loaded.tokenizer.files.items():
            if name != VOCABULARY_FILE:  # CTranslate2 writes its own
                (temporary / name).write_bytes(content)
        (temporary / "README.md").write_text(_card(loaded, model), encoding="utf-8")


def specification(loaded: LoadedModel) -> "transformer_spec.TransformerSpec":
    """Return the CTranslate2 specification of a model, with its weights.

    Raises:
        ModelError: Some weights exist in only one of the two formats. The message lists them.
    """
    kinds = common_spec.Activation
    activations = {"relu": kinds.RELU, "gelu": kinds.GELU, "swish": kinds.SWISH}
    config, tokenizer = loaded.description.model, loaded.tokenizer
    spec = transformer_spec.TransformerSpec.from_config(
        (config.encoder_layers, config.decoder_layers),
        config.heads,
        pre_norm=config.norm == "pre",
        activation=activations[config.activation],
        layernorm_embedding=config.embedding_norm,
    )
    weights = dict(loaded.model.state_dict())
    if config.positions != "learned":
        weights[POSITIONS] = position_table(config, max(config.max_length, LONGEST_INPUT))
    fill(spec, weights, tuple(weight_rows(config)))
    spec.encoder.scale_embeddings = spec.decoder.scale_embeddings = config.scale_embedding
    spec.register_source_vocabulary(tokenizer.pieces(range(len(tokenizer))))
    spec.register_target_vocabulary(tokenizer.target.pieces(range(len(tokenizer.target))))
    spec.config.unk_token, spec.config.bos_token, spec.config.eos_token = tokenizer.pieces([UNK, BOS, EOS])
    spec.config.decoder_start_token = spec.config.bos_token
    spec.config.add_source_eos = True
    spec.config.layer_norm_epsilon = config.norm_epsilon
    return spec


def fill(spec: "transformer_spec.TransformerSpec", weights: dict[str, Tensor], rows: Table) -> None:
    """Copy `weights` into a specification. `rows` maps our weight names to those of the specification.

    Raises:
        ModelError: Some weights exist in only one of the two formats. The message lists them.
    """
    required, optional = _names(spec)
    named = {name for row in rows for name in row.targets}
    wrong = list(find_misplaced(rows, weights, required | (optional & named)))
    if wrong:
        raise ModelError(problems("the weights do not fit CTranslate2's Transformer", wrong))
    for name, tensor in rename_weights(rows, weights).items():
        scope, _, attribute = name.rpartition("/")
        setattr(model_spec.index_spec(spec, scope), attribute, tensor)


def weight_rows(config: ModelConfig) -> Iterator[Row]:
    """Yield the rows that map our weight names to CTranslate2's."""
    source, target, output = "encoder/embeddings_0/weight", "decoder/embeddings/weight", "decoder/projection/weight"
    tied = (*([source] if config.tie_source else []), target, *([output] if config.tie_output else []))
    yield Row(("embedding.tokens.weight",), tied)
    if not config.tie_source:
        yield Row(("source_embedding.tokens.weight",), (source,))
    if not config.tie_output:
        yield Row(("embedding.output",), (output,))
    if config.logits_bias:
        yield Row(("embedding.bias",), ("decoder/projection/bias",))
    tables = {side: f"{side}/position_encodings/encodings" for side in ("encoder", "decoder")}
    if config.positions != "learned":
        yield Row((POSITIONS,), tuple(tables.values()))
    for ours, side in (("source_input", "encoder"), ("target_input", "decoder")):
        if config.positions == "learned":
            yield Row((f"{ours}.positions.weight",), (tables[side],))
        if config.embedding_norm:
            yield from _norm(f"{ours}.norm", f"{side}/layernorm_embedding")
    for side, layers in (("encoder", config.encoder_layers), ("decoder", config.decoder_layers)):
        for index in range(layers):
            yield from _layer(f"{side}.layers.{index}.", f"{side}/layer_{index}/", side == "decoder")
        if config.norm == "pre":
            yield from _norm(f"{side}.norm", f"{side}/layer_norm")


def _layer(ours: str, theirs: str, decoder: bool) -> Iterator[Row]:
    yield from _attention(ours, "self_attention", f"{theirs}self_attention", (("query", "key", "value"), ("output",)))
    if decoder:
        fused = (("query",), ("key", "value"), ("output",))
        yield from _attention(ours, "cross_attention", f"{theirs}attention", fused)
    yield from _linear((f"{ours}feed_forward.inner",), f"{theirs}ffn/linear_0")
    yield from _linear((f"{ours}feed_forward.outer",), f"{theirs}ffn/linear_1")
    yield from _norm(f"{ours}around_feed_forward.norm", f"{theirs}ffn/layer_norm")


def _attention(ours: str, name: str, theirs: str, fused: tuple[tuple[str, ...], ...]) -> Iterator[Row]:
    for index, projections in enumerate(fused):
        sources = tuple(f"{ours}{name}.{projection}" for projection in projections)
        yield from _linear(sources, f"{theirs}/linear_{index}")
    yield from _norm(f"{ours}around_{name}.norm", f"{theirs}/layer_norm")


def _linear(ours: tuple[str, ...], theirs: str) -> Iterator[Row]:
    for kind in ("weight", "bias"):
        yield Row(tuple(f"{name}.{kind}" for name in ours), (f"{theirs}/{kind}",))


def _norm(ours: str, theirs: str) -> Iterator[Row]:
    yield Row((f"{ours}.weight",), (f"{theirs}/gamma",))
    yield Row((f"{ours}.bias",), (f"{theirs}/beta",))


def _names(spec: "transformer_spec.TransformerSpec") -> tuple[set[str], set[str]]:
    """Return the names of the required weights and of the optional weights of a specification."""
    required, optional = set(), set()

    def visit(_: object, name: str, value: object) -> None:
        if value is None:
            required.add(name)
        elif isinstance(value, str) and value == model_spec.OPTIONAL:
            optional.add(name)

    model_spec.visit_spec(spec, visit)
    return required, optional


def _card(loaded: LoadedModel, model: Path) -> str:
    """Return the text of README.md, which shows how to translate with the exported model."""
    description = loaded.description
    decoding = description.decoding
    direction = next(iter(description.directions))
    prefix = loaded.tokenizer.source_prefix(direction.source, direction.target, description.directions)
    source = f"{loaded.tokenizer.pieces(prefix)} + pieces" if prefix else "pieces"
    begin = loaded.tokenizer.target.pieces(loaded.tokenizer.target_prefix(direction.target))
    forced, skipped = (f", target_prefix=[{begin}]", f"[{len(begin)}:]") if begin else ("", "")
    tokenizers = [f'tokenizer = sentencepiece.SentencePieceProcessor(model_file="{SOURCE_FILE}")']
    target = "tokenizer"
    if TARGET_FILE in loaded.tokenizer.files:
        target = "target"
        tokenizers.append(f'target = sentencepiece.SentencePieceProcessor(model_file="{TARGET_FILE}")')
    listed = "\n".join(tokenizers)
    body = f"""Run this program in this folder:

```python
import ctranslate2, sentencepiece

{listed}
translator = ctranslate2.Translator(".", device="cpu")
pieces = tokenizer.encode("A text.", out_type=str)
results = translator.translate_batch([{source}], beam_size={decoding.beam_size}, \
length_penalty={decoding.length_penalty}, disable_unk=True{forced})
print({target}.decode(results[0].hypotheses[0]{skipped}))
```
"""
    return exported_card(description, "CTranslate2", body, model)
