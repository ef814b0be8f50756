"""Import of Hugging Face MarianMT models (transformers.MarianMTModel), the format in which the hub has OPUS-MT."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from mt.config import ModelConfig
from mt.errors import LanguageError, ModelError, problems
from mt.interop.fairseq_layers import layer_rows
from mt.interop.foreign import ForeignModel, Side
from mt.interop.mapping import Row, Table, drop_tied_copies
from mt.interop.origin import ALLOWED_PICKLE, AS_MARIAN, ImportOptions, Origin, load_pickle, named_tensors, shown
from mt.languages import Direction
from mt.model.embedding import sinusoidal_positions
from mt.weights import load_weights

BIAS = "final_logits_bias"
SHARED = "model.shared.weight"
SOURCE, TARGET, OUTPUT = "model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight", "lm_head.weight"
POSITIONS = ("model.encoder.embed_positions.weight", "model.decoder.embed_positions.weight")
UNKNOWN = "<unk>"
SIDES = ("source", "target")
SAFE, PICKLE = "model.safetensors", "pytorch_model.bin"

ACTIVATIONS = {"relu": "relu", "gelu": "gelu", "swish": "swish", "silu": "swish"}

OPTIONS: Mapping[str, tuple[Any, tuple[Any, ...]]] = {
    "model_type": (None, ("marian",)),
    "activation_function": ("gelu", tuple(ACTIVATIONS)),
    "scale_embedding": (False, (True, False)),
    "share_encoder_decoder_embeddings": (True, (True, False)),
    "tie_word_embeddings": (True, (True, False)),
    "normalize_before": (False, (False,)),
    "normalize_embedding": (False, (False,)),
    "static_position_embeddings": (True, (True,)),
}
"""Default in transformers and supported values of each option of config.json."""

EQUAL = (("encoder_attention_heads", "decoder_attention_heads"), ("encoder_ffn_dim", "decoder_ffn_dim"))


def read_marian_mt(origin: Origin, import_options: ImportOptions) -> ForeignModel:
    """Read a MarianMT directory. Raises: ModelError that lists the files that are missing or cannot be read."""
    folder = MarianMTFolder.read(origin.folder, import_options.allow_pickle)
    weights, wrong = folder.learned_weights()
    source, target = folder.sides()
    wrong = [*folder.option_problems(), *folder.size_problems(source, target), *wrong]
    return ForeignModel(
        name=origin.name,
        kind="MarianMT model (Hugging Face)",
        architecture={**folder.architecture(), **(AS_MARIAN if import_options.as_marian else {})},
        table=marian_mt_table,
        weights=weights,
        source=source,
        target=target,
        decoding=folder.decoding(),
        direction=folder.direction(),
        problems=wrong,
        provenance=origin.provenance(folder.files),
    )


@dataclass(frozen=True)
class MarianMTFolder:
    """Content of a MarianMT directory."""

    config: Mapping[str, Any]
    generation: Mapping[str, Any]
    tokenizer: Mapping[str, Any]
    vocabularies: tuple[Mapping[str, int], Mapping[str, int]]  # of source and target
    sentencepiece: tuple[bytes, bytes]
    weights: Mapping[str, Tensor]
    files: tuple[str, ...]  # the files that were read

    @classmethod
    def read(cls, folder: Path, allow_pickle: bool) -> "MarianMTFolder":
        pickled = allow_pickle and not (folder / SAFE).is_file() and (folder / PICKLE).is_file()
        weights = folder / (PICKLE if pickled else SAFE)
        needed = ["config.json", "vocab.json", "source.spm", "target.spm", weights.name]
        lacking = [name for name in needed if not (folder / name).is_file()]
        if lacking:
            listed = (f"{name} is missing" + _hint(folder, name) for name in lacking)
            raise ModelError(problems(f"{folder} is no MarianMT model that can be imported", listed))
        optional_files = {name: _json(folder / name) for name in ("generation_config.json", "tokenizer_config.json")}
        source = _vocabulary(folder / "vocab.json")
        two = (folder / "target_vocab.json").is_file() and optional_files["tokenizer_config.json"].get(
            "separate_vocabs", True
        )
        optional = ["target_vocab.json"] if two else []
        return cls(
            config=_json(folder / "config.json"),
            generation=optional_files["generation_config.json"],
            tokenizer=optional_files["tokenizer_config.json"],
            vocabularies=(source, _vocabulary(folder / "target_vocab.json") if two else source),
            sentencepiece=((folder / "source.spm").read_bytes(), (folder / "target.spm").read_bytes()),
            weights=named_tensors(load_pickle(weights), weights) if pickled else load_weights(weights),
            files=(*needed, *optional),
        )

    def option(self, name: str) -> Any:
        default, _ = OPTIONS[name]
        return self.config.get(name, default)

    def option_problems(self) -> Iterator[str]:
        """Yield a problem for each option with an unsupported value."""
        for name, (_, accepted) in OPTIONS.items():
            if self.option(name) not in accepted:
                yield f"{name} is {shown(self.option(name))}; accepted: {', '.join(map(repr, accepted))}"
        for one, other in EQUAL:
            if self.config.get(one) != self.config.get(other):
                yield f"{one} is {self.config.get(one)} and {other} is {self.config.get(other)}; accepted: equal values"

    def sides(self) -> tuple[Side, Side]:
        """Return the vocabularies. In MarianMT the padding piece also begins a target, and may have a probability."""
        config = self.config
        pad = config.get("pad_token_id", 58100)
        banned = {**config, **self.generation}
        renormalised = banned.get("renormalize_logits") and [pad] in (banned.get("bad_words_ids") or [])
        sides = [
            Side(
                ids=ids,
                sentencepiece=sentencepiece,
                unk=ids.get(UNKNOWN, -1),
                eos=config.get("eos_token_id", 0),
                pad=pad,
                start=config.get("decoder_start_token_id", 58100),
                pad_counts=not renormalised,
            )
            for ids, sentencepiece in zip(self.vocabularies, self.sentencepiece, strict=True)
        ]
        return sides[0], sides[1]

    def size_problems(self, source: Side, target: Side) -> Iterator[str]:
        """Yield a problem for each vocabulary whose size differs from config.json."""
        size = self.config.get("vocab_size")
        decoder_size = self.config.get("decoder_vocab_size") or size
        if len(source.ids) != size:
            stated = f"config.json's vocab_size is {size}"
            yield f"vocab.json has {len(source.ids)} pieces, but {stated}; accepted: equal sizes"
        if len(target.ids) != decoder_size:
            name = "vocab.json" if source.ids is target.ids else "target_vocab.json"
            stated = f"config.json's decoder_vocab_size is {decoder_size}"
            yield f"{name} has {len(target.ids)} pieces, but {stated}; accepted: equal sizes"

    def architecture(self) -> dict[str, Any]:
        """Return the values of our ModelConfig."""
        theirs = {
            "d_ff": "encoder_ffn_dim",
            "heads": "encoder_attention_heads",
            "max_length": "max_position_embeddings",
        }
        same = ("encoder_layers", "decoder_layers", "d_model", "dropout", "attention_dropout", "activation_dropout")
        theirs |= {name: name for name in same}
        return {
            "norm": "post",
            "positions": "concatenated",
            "activation": ACTIVATIONS.get(
                self.option("activation_function"), "relu"
            ),  # `option_problems` reports an unknown activation
            "scale_embedding": bool(self.option("scale_embedding")),
            "tie_source": bool(self.option("share_encoder_decoder_embeddings")),
            "tie_output": bool(self.option("tie_word_embeddings")),
            **{ours: self.config[name] for ours, name in theirs.items() if name in self.config},
        }

    def decoding(self) -> dict[str, Any]:
        """Return the values of our DecodingConfig."""
        search = {"beam_size": "num_beams", "length_penalty": "length_penalty"}
        search |= {"no_repeat_ngram": "no_repeat_ngram_size"}
        values = {**self.config, **self.generation}
        return {ours: values[key] for ours, key in search.items() if values.get(key) is not None}

    def direction(self) -> str:
        """Return the direction that the tokenizer states, or an empty string if it does not name two languages."""
        try:
            return str(Direction.parse("-".join(str(self.tokenizer.get(f"{side}_lang")) for side in SIDES)))
        except LanguageError:
            return ""

    def learned_weights(self) -> tuple[dict[str, Tensor], list[str]]:
        """Return the weights except constants and tied copies, and a message for each wrong constant or copy."""
        shared, tied = (self.option(name) for name in ("share_encoder_decoder_embeddings", "tie_word_embeddings"))
        copies = [(SHARED, SOURCE), (SHARED, TARGET)] if shared else []
        copies += [(SHARED if shared else TARGET, OUTPUT)] if tied else []
        learned, wrong = drop_tied_copies(self.weights, copies)
        for name in POSITIONS:
            if name in learned and not self._is_sinusoidal(learned.pop(name)):
                wrong.append(f"{name} is not the sinusoidal table; accepted: sinusoidal positions")
        learned[BIAS] = learned[BIAS].flatten() if BIAS in learned else torch.zeros(len(self.vocabularies[1]))
        return learned, wrong

    def _is_sinusoidal(self, stored: Tensor) -> bool:
        """Return whether `stored` [length, d_model] is the sinusoidal table with all sines before all cosines."""
        d_model = self.config.get("d_model")
        if stored.dim() != 2 or stored.shape[1] != d_model or d_model % 2 or not d_model:
            return False
        table = sinusoidal_positions(*stored.shape)
        return torch.allclose(stored.float(), torch.cat((table[:, ::2], table[:, 1::2]), dim=1), atol=1e-3)


def marian_mt_table(config: ModelConfig) -> Table:
    """Return the table from MarianMT's weight names to ours."""
    return tuple(_rows(config))


def _rows(config: ModelConfig) -> Iterator[Row]:
    yield Row((SHARED if config.tie_source else TARGET,), ("embedding.tokens.weight",))
    if not config.tie_source:
        yield Row((SOURCE,), ("source_embedding.tokens.weight",))
    if not config.tie_output:
        yield Row((OUTPUT,), ("embedding.output",))
    if config.logits_bias:
        yield Row((BIAS,), ("embedding.bias",))
    yield from layer_rows(config, "model.")


def _hint(folder: Path, name: str) -> str:
    if name == SAFE and (folder / PICKLE).exists():
        return f" ({PICKLE} is a pickle; accepted: {SAFE}, or {ALLOWED_PICKLE})"
    return ""


def _json(path: Path) -> dict[str, Any]:
    """Return the JSON object in a file, or an empty one if the file is missing.

    Raises: ModelError if the file holds anything else.
    """
    if not path.exists():
        return {}
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ModelError(f"{path}: not a JSON file ({error})") from error
    if not isinstance(values, dict):
        raise ModelError(f"{path}: holds a JSON value of type {type(values).__name__}; accepted: a JSON object")
    return values


def _vocabulary(path: Path) -> dict[str, int]:
    values = _json(path)
    if not all(isinstance(number, int) for number in values.values()):
        raise ModelError(f"{path}: an id is not an integer; accepted: a JSON object from pieces to integer ids")
    return values
