"""Import of fairseq Transformers (fairseq/models/transformer): checkpoint, dictionaries and SentencePiece model.

A checkpoint is a pickle. It is read only if the caller allows pickles, and by torch's reader for plain tensors
(`weights_only`). The only other class that a checkpoint may contain is argparse.Namespace, which holds the options.
"""

import argparse
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from mt.config import ModelConfig
from mt.errors import ModelError, problems
from mt.interop.fairseq_layers import layer_rows
from mt.interop.foreign import ForeignModel, Side
from mt.interop.mapping import Row, Table, drop_tied_copies, embedding_rows, parameter_rows
from mt.interop.origin import ImportOptions, Origin, load_pickle, named_tensors, require_pickles, shown

SOURCE, TARGET, OUTPUT = (
    "encoder.embed_tokens.weight",
    "decoder.embed_tokens.weight",
    "decoder.output_projection.weight",
)
CONSTANTS = ("version", "embed_positions._float_tensor")  # suffixes of names of entries that are not learned

BEGIN, PAD, END, UNKNOWN = "<s>", "<pad>", "</s>", "<unk>"
SPECIAL = (BEGIN, PAD, END, UNKNOWN)  # in the order of their ids; dictionaries do not list them

OPTIONS: Mapping[str, tuple[Any, ...]] = {
    "activation_fn": ("relu", "gelu", "swish"),
    "encoder_learned_pos": (False,),
    "decoder_learned_pos": (False,),
    "no_token_positional_embeddings": (False,),
    "layernorm_embedding": (False,),
    "no_cross_attention": (False,),
    "cross_self_attention": (False,),
    "no_decoder_final_norm": (False,),
    "adaptive_input": (False,),
    "adaptive_softmax_cutoff": (None,),
    "encoder_layers_to_keep": (None,),
    "decoder_layers_to_keep": (None,),
    "quant_noise_pq": (0,),
}
"""Options with the supported values. The first value is the default."""

EQUAL = ("attention_heads", "ffn_embed_dim", "embed_dim", "normalize_before")
"""Options that exist with the prefixes `encoder_` and `decoder_`. Both must have the same value."""


def read_fairseq(origin: Origin, import_options: ImportOptions) -> ForeignModel:
    """Read a model of fairseq from a folder.

    Raises:
        ModelError: Files are missing or cannot be read.
    """
    folder = origin.folder
    checkpoint = _one(folder, "*.pt")
    require_pickles(checkpoint, import_options)
    content = load_pickle(checkpoint, [argparse.Namespace])
    options, weights = _options(content), content.get("model")
    if not isinstance(weights, dict):
        raise ModelError(f"{checkpoint}: has no entry 'model'; accepted: a fairseq checkpoint")
    languages = [_language(options, name, checkpoint) for name in ("source_lang", "target_lang")]
    dictionaries = [folder / f"dict.{language}.txt" for language in languages]
    by_side = [folder / f"{side}.spm" for side in ("source", "target")]
    pieces = by_side if all(path.is_file() for path in by_side) else [_one(folder, "*.model")] * 2
    lacking = [f"{path.name} is missing" for path in dictionaries if not path.is_file()]
    if lacking:
        raise ModelError(problems(f"{folder} cannot be imported as a fairseq model", dict.fromkeys(lacking)))
    source, target = (_side(path, model) for path, model in zip(dictionaries, pieces, strict=True))
    weights, wrong = _own_weights(named_tensors(weights, checkpoint), options)
    return ForeignModel(
        name=origin.name,
        kind="fairseq model",
        architecture=_architecture(options),
        table=fairseq_table,
        weights=weights,
        source=source,
        target=target,
        decoding={},
        directions=["-".join(languages)],
        problems=[*_option_problems(options), *wrong],
        provenance=origin.provenance(dict.fromkeys(path.name for path in (checkpoint, *dictionaries, *pieces))),
    )


def _one(folder: Path, pattern: str) -> Path:
    paths = sorted(folder.glob(pattern))
    if len(paths) != 1:
        names = ", ".join(path.name for path in paths) or "none"
        raise ModelError(f"{folder}: the files that match {pattern} are: {names}; accepted: exactly one such file")
    return paths[0]


def _options(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of the task and of the model in one dictionary. New checkpoints store the two separately."""
    cfg = content.get("cfg") or {}
    parts = [content.get("args"), *(cfg.get(part) for part in ("task", "model"))]
    return {
        name: value
        for part in parts
        if part
        for name, value in (part if isinstance(part, dict) else vars(part)).items()
    }


def _language(options: Mapping[str, Any], name: str, checkpoint: Path) -> str:
    """Return the language code in the option `name`. File names contain this code.

    Raises:
        ModelError: The value is not a language code.
    """
    language = options.get(name)
    if not (isinstance(language, str) and re.fullmatch(r"\w{1,20}([-@.]\w{1,20})*", language)):
        raise ModelError(f"{checkpoint}: {name} is {shown(language)}; accepted: a language such as 'en'")
    return language


def _option_problems(options: Mapping[str, Any]) -> Iterator[str]:
    for name, accepted in OPTIONS.items():
        value = options.get(name, accepted[0])
        if value not in accepted:
            yield f"{name} is {shown(value)}; accepted: {', '.join(map(repr, accepted))}"
    for name in EQUAL:
        one, other = (options.get(f"{side}_{name}") for side in ("encoder", "decoder"))
        if one != other:
            yield f"encoder_{name} is {shown(one)} and decoder_{name} is {shown(other)}; accepted: equal values"


def _side(dictionary: Path, sentencepiece: Path) -> Side:
    """Read a dictionary, which has a piece and its count on each line. In fairseq, the end token also begins a target.

    Raises:
        ModelError: The file cannot be read.
    """
    try:
        lines = dictionary.read_text(encoding="utf-8").split("\n")  # a piece may hold U+2028
    except (OSError, UnicodeDecodeError) as error:
        raise ModelError(f"{dictionary}: cannot be read ({error})") from error
    pieces = [*SPECIAL, *(line.removesuffix(" #fairseq:overwrite").rpartition(" ")[0] for line in lines if line)]
    ids = {piece: id for id, piece in enumerate(pieces)}
    unk, pad, end = (SPECIAL.index(piece) for piece in (UNKNOWN, PAD, END))
    return Side(ids, sentencepiece.read_bytes(), unk=unk, eos=end, pad=pad, start=end)


def _architecture(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of our ModelConfig. In fairseq, positions are counted from the id of padding plus 1."""
    same = ("encoder_layers", "decoder_layers", "dropout", "attention_dropout", "activation_dropout")
    theirs = {"d_model": "encoder_embed_dim", "d_ff": "encoder_ffn_embed_dim", "heads": "encoder_attention_heads"}
    theirs |= {name: name for name in same}
    lengths = [options.get(f"max_{side}_positions") or 1024 for side in ("source", "target")]
    activation, everything = options.get("activation_fn", "relu"), bool(options.get("share_all_embeddings"))
    return {
        "norm": "pre" if options.get("encoder_normalize_before") else "post",
        "positions": "tensor2tensor",
        "first_position": SPECIAL.index(PAD) + 1,
        "activation": activation if activation in OPTIONS["activation_fn"] else "relu",
        "scale_embedding": not options.get("no_scale_embedding"),
        "tie_source": everything,
        "tie_output": everything or bool(options.get("share_decoder_input_output_embed")),
        "max_length": min(lengths),
        **{ours: options[name] for ours, name in theirs.items() if name in options},
    }


def _own_weights(weights: Mapping[str, Tensor], options: Mapping[str, Any]) -> tuple[dict[str, Tensor], list[str]]:
    architecture = _architecture(options)
    copies = [(TARGET, SOURCE)] if architecture["tie_source"] else []
    copies += [(TARGET, OUTPUT)] if architecture["tie_output"] else []
    return drop_tied_copies({name: w for name, w in weights.items() if not name.endswith(CONSTANTS)}, copies)


def fairseq_table(config: ModelConfig) -> Table:
    return tuple(_rows(config))


def _rows(config: ModelConfig) -> Iterator[Row]:
    yield from embedding_rows(SOURCE, TARGET, OUTPUT, config)
    yield from layer_rows(config)
    if config.norm == "pre":
        for side in ("encoder", "decoder"):
            yield from parameter_rows(f"{side}.layer_norm", f"{side}.norm")
