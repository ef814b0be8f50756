"""Export to directories that the transformers library loads.

Post-norm models become MarianMT models. Pre-norm models become PEGASUS models (Zhang et al. 2020), which differ from
MarianMT models in transformers only in the norm and in their stored position tables. M2M-100 models are pre-norm too,
but transformers computes their positions, which are not those of our models.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from mt.arrays import save_arrays
from mt.checkpoint import LoadedModel, load_model
from mt.config import ModelConfig
from mt.errors import ModelError, problems
from mt.files import atomic_folder
from mt.interop.foreign import BIAS as OUR_BIAS
from mt.interop.foreign import TAG
from mt.interop.huggingface import POSITIONS, marian_mt_rows
from mt.interop.huggingface_files import BIAS, SAFE, SHARED, SOURCE, TARGET
from mt.interop.mapping import Row, find_misplaced, parameter_rows, rename_weights
from mt.interop.output import check_output, exported_card
from mt.interop.residual import sines_first
from mt.model.embedding import position_table
from mt.tokenizer import BOS, EOS, PAD, SOURCE_FILE, TARGET_FILE, UNK


@dataclass(frozen=True)
class Architecture:
    """Architecture of transformers: its name, the value of `model_type`, and its class.

    `accepted` has the options of our models that the architecture lacks, each with the values for which it computes the
    same.
    """

    name: str
    model_type: str
    model_class: str
    accepted: Mapping[str, tuple[Any, ...]]


ACCEPTED: Mapping[str, tuple[Any, ...]] = {"norm_epsilon": (1e-5,), "embedding_norm": (False,)}
MARIAN_MT = Architecture(
    "MarianMT",
    "marian",
    "MarianMTModel",
    {**ACCEPTED, "positions": ("interleaved", "concatenated"), "first_position": (0,)},
)
PEGASUS = Architecture(
    "PEGASUS",
    "pegasus",
    "PegasusForConditionalGeneration",
    {**ACCEPTED, "positions": ("interleaved", "concatenated", "tensor2tensor"), "tie_source": (True,)},
)


def architecture_of(config: ModelConfig) -> Architecture:
    """Return the architecture of transformers in which a model is exported."""
    return MARIAN_MT if config.norm == "post" else PEGASUS


def export_huggingface(model: Path, out: Path) -> None:
    """Convert the model directory `model` to a directory `out` of transformers. An existing model there is replaced.

    Ids and weights stay the same, with one exception: if a post-norm model interleaves sines and cosines, its residual
    stream is permuted, because MarianMT has all sines first.

    Raises:
        ModelError: The model cannot be loaded, transformers does not support a weight or options of the model (the
            message lists these options), or `out` exists and is not a model.
    """
    check_output(out, model)
    loaded = load_model(model)
    architecture = architecture_of(loaded.description.model)
    wrong = list(unsupported(loaded.description.model))
    if loaded.tokenizer.tags_each_side:
        wrong.append("its translations begin with a token of the target language; accepted: --to ctranslate2")
    if wrong:
        raise ModelError(problems(f"{model} cannot be a {architecture.name} model", wrong))
    weights, sources = huggingface_weights(loaded), vocabulary(loaded)
    tokenizer, target = loaded.tokenizer, loaded.tokenizer.target
    separate = tokenizer.pieces(range(len(tokenizer))) != target.pieces(range(len(target)))
    texts = {
        "config.json": _json(_config(loaded)),
        "generation_config.json": _json(_generation(loaded)),
        "tokenizer_config.json": _json(_tokenizer(loaded, separate)),
        "vocab.json": _json(sources),
        "README.md": _card(loaded, model),
    }
    if separate:
        texts["target_vocab.json"] = _json({piece: id for id, piece in enumerate(target.pieces(range(len(target))))})
    with atomic_folder(out) as temporary:
        save_arrays(temporary / SAFE, {name: weight.numpy() for name, weight in weights.items()}, {"format": "pt"})
        files = tokenizer.files
        (temporary / "source.spm").write_bytes(files[SOURCE_FILE])
        (temporary / "target.spm").write_bytes(files.get(TARGET_FILE, files[SOURCE_FILE]))
        for name, text in texts.items():
            (temporary / name).write_text(text, encoding="utf-8")


def unsupported(config: ModelConfig) -> Iterator[str]:
    """Yield a message for each option whose value the architecture of transformers does not support."""
    architecture = architecture_of(config)
    for name, accepted in architecture.accepted.items():
        if (value := getattr(config, name)) not in accepted:
            yield f"{name} is {value!r}; {architecture.name} accepts {', '.join(map(repr, accepted))}"


def huggingface_weights(loaded: LoadedModel) -> dict[str, Tensor]:
    """Return the weights of the model under the names of transformers.

    Raises:
        ModelError: Some weights exist in only one of the two formats. The message lists them.
    """
    description, config = loaded.description, loaded.description.model
    ours: dict[str, Tensor] = dict(loaded.model.state_dict())
    if config.norm == "post" and config.positions == "interleaved":
        ours = sines_first(ours)
    ours.setdefault(OUR_BIAS, torch.zeros(description.vocabulary_size))
    rows = [*marian_mt_rows(config.model_copy(update={"logits_bias": True}))]
    if config.norm == "pre":
        for side in ("encoder", "decoder"):
            rows += parameter_rows(f"model.{side}.layer_norm", f"{side}.norm")
    table = [Row(row.targets, row.sources) for row in rows]
    wrong = list(find_misplaced(table, ours, [name for row in table for name in row.targets]))
    if wrong:
        raise ModelError(problems("the weights do not fit transformers", wrong))
    weights = rename_weights(table, ours)
    weights[BIAS] = weights[BIAS][None]
    if config.norm == "pre":
        weights |= {name: position_table(config, config.max_length) for name in POSITIONS}
    if SHARED in weights and not config.tie_output:  # transformers does not tie the output layer here
        weights |= dict.fromkeys((SOURCE, TARGET), weights[SHARED])
    return weights


def vocabulary(loaded: LoadedModel) -> dict[str, int]:
    """Return the ids of the source pieces. Language tags have the form that MarianTokenizer needs, such as `>>de<<`."""
    tags = _tags(loaded)
    pieces = loaded.tokenizer.pieces(range(len(loaded.tokenizer)))
    return {tags.get(id, piece): id for id, piece in enumerate(pieces)}


def _tags(loaded: LoadedModel) -> dict[int, str]:
    tokenizer, description = loaded.tokenizer, loaded.description
    tags = {}
    for target in sorted(description.directions.targets):
        for id in tokenizer.source_prefix("", target, description.directions):
            (piece,) = tokenizer.pieces([id])
            tags[id] = piece if TAG.fullmatch(piece) else f">>{target}<<"
    return tags


def _config(loaded: LoadedModel) -> dict[str, Any]:
    description, model = loaded.description, loaded.description.model
    architecture = architecture_of(model)
    separate = {"decoder_vocab_size": description.vocabulary_size, "share_encoder_decoder_embeddings": model.tie_source}
    return {
        "architectures": [architecture.model_class],
        "model_type": architecture.model_type,
        "dtype": "float32",
        "is_encoder_decoder": True,
        "vocab_size": description.source_vocabulary_size or description.vocabulary_size,
        "max_position_embeddings": model.max_length,
        "d_model": model.d_model,
        **{f"{side}_layers": getattr(model, f"{side}_layers") for side in ("encoder", "decoder")},
        **{f"{side}_attention_heads": model.heads for side in ("encoder", "decoder")},
        **{f"{side}_ffn_dim": model.d_ff for side in ("encoder", "decoder")},
        "activation_function": model.activation,
        "scale_embedding": model.scale_embedding,
        **(separate if architecture is MARIAN_MT else {}),
        "tie_word_embeddings": model.tie_output,
        "dropout": model.dropout,
        "attention_dropout": model.attention_dropout,
        "activation_dropout": model.activation_dropout,
        **_special_ids(),
    }


def _special_ids() -> dict[str, int | None]:
    ids = {"pad_token_id": PAD, "bos_token_id": BOS, "eos_token_id": EOS}
    return {**ids, "decoder_start_token_id": BOS, "forced_eos_token_id": None}


def _generation(loaded: LoadedModel) -> dict[str, Any]:
    """Return the content of generation_config.json: the default options of `generate`."""
    decoding = loaded.description.decoding
    return {
        **_special_ids(),
        "num_beams": decoding.beam_size,
        "length_penalty": decoding.length_penalty,
        "no_repeat_ngram_size": decoding.no_repeat_ngram,
        "early_stopping": False,
        "max_length": loaded.description.model.max_length,
        "suppress_tokens": [PAD, UNK, BOS],
    }


def _tokenizer(loaded: LoadedModel, separate: bool) -> dict[str, Any]:
    directions = loaded.description.directions
    direction = next(iter(directions))
    languages = {"source_lang": direction.source, "target_lang": direction.target}
    return {
        "tokenizer_class": "MarianTokenizer",
        "model_max_length": loaded.description.model.max_length,
        "separate_vocabs": separate,
        "bos_token": "<s>",
        "split_special_tokens": True,  # "</s>" in an input is tokenized as text
        **(languages if len(directions) == 1 else {}),
    }


def _json(values: Mapping[str, Any]) -> str:
    return json.dumps(values, ensure_ascii=False, indent=1) + "\n"


def _card(loaded: LoadedModel, model: Path) -> str:
    description = loaded.description
    languages = sorted({*description.directions.sources, *description.directions.targets})
    tag = next(iter(_tags(loaded).values()), "")
    front = "".join(f"- {code}\n" for code in languages)
    body = f"""Run this program in this folder, or replace `.` by its path:

```python
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained(".")
model = AutoModelForSeq2SeqLM.from_pretrained(".")
batch = tokenizer(["{tag}A text."], return_tensors="pt", padding=True)
print(tokenizer.batch_decode(model.generate(**batch), skip_special_tokens=True)[0])
```

{_notes(loaded, tag)}"""
    return f"---\nlanguage:\n{front}library_name: transformers\npipeline_tag: translation\n---\n\n" + exported_card(
        description, "Hugging Face's transformers", body, model
    )


def _notes(loaded: LoadedModel, tag: str) -> str:
    """Return the section of README.md about the differences between translations by transformers and by mt-service."""
    decoding, model = loaded.description.decoding, loaded.description.model
    lines = [
        "- The input is one sentence; our pipeline splits texts and preserves links, placeholders and markup.",
        "- U+2581 in a text is read as a space, `>>` at its beginning as a tag up to `<<`; white space around a "
        "translation is dropped.",
        f"- `generate` stops at max_length ({model.max_length}); our search stops at "
        f"{decoding.max_length_factor:g} times the number of source tokens plus {decoding.max_length_offset}.",
    ]
    if tag:
        lines.append("- Write no space between the tag and the text: a space changes the tokens.")
    if decoding.normalization == "gnmt":
        lines.append(
            "- Our search divides scores by ((5 + n) / 6) ** length_penalty, transformers by n ** length_penalty. "
            "Beams may be ranked differently."
        )
    return "What to know:\n\n" + "\n".join(lines) + "\n"
