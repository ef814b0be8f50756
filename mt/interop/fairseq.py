"""Transformers of fairseq (fairseq/models/transformer): a checkpoint, its dictionaries, and a SentencePiece model.

A checkpoint is a pickle. It is read only if the caller allows it, and then by torch's reader of plain tensors; the one
class beside them is argparse.Namespace, which holds the options and can do no more than hold them.
"""

import argparse
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from mt.config import ModelConfig
from mt.errors import ModelError, problems
from mt.interop.copies import without_copies
from mt.interop.foreign import ForeignModel, Side
from mt.interop.layers import layer_rows
from mt.interop.mapping import Row, Table
from mt.interop.origin import Origin, Wishes, load_pickle, named_tensors, need_pickles

SOURCE, TARGET, OUTPUT = (
    "encoder.embed_tokens.weight",
    "decoder.embed_tokens.weight",
    "decoder.output_projection.weight",
)
CONSTANTS = ("version", "embed_positions._float_tensor")  # how the names of what was not learned end

BEGIN, PAD, END, UNKNOWN = "<s>", "<pad>", "</s>", "<unk>"
SPECIAL = (BEGIN, PAD, END, UNKNOWN)  # in the order of their ids, which no dictionary lists

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
"""Options, and the values that we can take; the first is what one that is absent means."""

EQUAL = ("attention_heads", "ffn_embed_dim", "embed_dim", "normalize_before")
"""Options that have a value for each side, `encoder_` and `decoder_`, which must be the same."""


def read_fairseq(origin: Origin, wishes: Wishes) -> ForeignModel:
    """A folder of fairseq's. Raises ModelError that names every file that is missing or cannot be read."""
    folder = origin.folder
    checkpoint = _one(folder, "*.pt")
    need_pickles(checkpoint, wishes)
    content = load_pickle(checkpoint, [argparse.Namespace])
    options, weights = _options(content), content.get("model")
    if not isinstance(weights, dict):
        raise ModelError(f"{checkpoint}: holds no model; accepted: a checkpoint of fairseq")
    languages = [options.get("source_lang"), options.get("target_lang")]
    dictionaries = [folder / f"dict.{language}.txt" for language in languages]
    own = [folder / f"{side}.spm" for side in ("source", "target")]
    pieces = own if all(path.is_file() for path in own) else [_one(folder, "*.model")] * 2
    lacking = [f"{path.name} is missing" for path in dictionaries if not path.is_file()]
    if lacking:
        raise ModelError(problems(f"{folder} is no fairseq model that can be imported", dict.fromkeys(lacking)))
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
        direction="-".join(map(str, languages)),
        problems=[*_option_problems(options), *wrong],
        provenance=origin.provenance(dict.fromkeys(path.name for path in (checkpoint, *dictionaries, *pieces))),
    )


def _one(folder: Path, pattern: str) -> Path:
    found = sorted(folder.glob(pattern))
    if len(found) != 1:
        there = ", ".join(path.name for path in found) or "none"
        raise ModelError(f"{folder}: files {pattern} are: {there}; accepted: one (text must be cut by SentencePiece)")
    return found[0]


def _options(content: Mapping[str, Any]) -> dict[str, Any]:
    """Of the task and the model; old checkpoints have them in one."""
    cfg = content.get("cfg") or {}
    parts = [content.get("args"), *(cfg.get(part) for part in ("task", "model"))]
    return {
        name: value
        for part in parts
        if part
        for name, value in (part if isinstance(part, dict) else vars(part)).items()
    }


def _option_problems(options: Mapping[str, Any]) -> Iterator[str]:
    for name, accepted in OPTIONS.items():
        value = options.get(name, accepted[0])
        if value not in accepted:
            yield f"{name} is {value!r}; accepted: {', '.join(map(repr, accepted))}"
    for name in EQUAL:
        one, other = (options.get(f"{side}_{name}") for side in ("encoder", "decoder"))
        if one != other:
            yield f"encoder_{name} is {one} and decoder_{name} {other}; accepted: equal ones"


def _side(dictionary: Path, sentencepiece: Path) -> Side:
    """A line has a piece and how often it occurs. What marks the end begins a translation, too. Raises ModelError."""
    try:
        lines = dictionary.read_text(encoding="utf-8").split("\n")  # a piece may hold U+2028
    except (OSError, UnicodeDecodeError) as error:
        raise ModelError(f"{dictionary}: cannot be read ({error})") from error
    pieces = [*SPECIAL, *(line.removesuffix(" #fairseq:overwrite").rpartition(" ")[0] for line in lines if line)]
    ids = {piece: id for id, piece in enumerate(pieces)}
    unk, pad, end = (SPECIAL.index(piece) for piece in (UNKNOWN, PAD, END))
    return Side(ids, sentencepiece.read_bytes(), unk=unk, eos=end, pad=pad, start=end)


def _architecture(options: Mapping[str, Any]) -> dict[str, Any]:
    """The values of our ModelConfig. Positions are counted from the id after padding's."""
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
    return without_copies({name: w for name, w in weights.items() if not name.endswith(CONSTANTS)}, copies)


def fairseq_table(config: ModelConfig) -> Table:
    """fairseq's names (the sources) and ours (the targets)."""
    return tuple(_rows(config))


def _rows(config: ModelConfig) -> Iterator[Row]:
    yield Row((TARGET,), ("embedding.tokens.weight",))
    if not config.tie_source:
        yield Row((SOURCE,), ("source_embedding.tokens.weight",))
    if not config.tie_output:
        yield Row((OUTPUT,), ("embedding.output",))
    yield from layer_rows(config)
    if config.norm == "pre":
        for side in ("encoder", "decoder"):
            for kind in ("weight", "bias"):
                yield Row((f"{side}.layer_norm.{kind}",), (f"{side}.norm.{kind}",))
