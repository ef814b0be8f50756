"""Hugging Face's MarianMT models (transformers.MarianMTModel, as OPUS-MT publishes them) as models of ours.

Their positions are all sines, then all cosines; ours alternate (Vaswani et al. 2017, section 3.5). That is another
order of the d_model channels: every weight that reads or writes them is reordered, and nothing else changes.
Their decoder begins with a token of its own choice, commonly padding: its embedding becomes that of our BOS.
"""

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from pydantic import ValidationError
from torch import Tensor

from mt.checkpoint import Description, load_weights, save_model
from mt.config import ModelConfig
from mt.errors import ModelError, MTError, problems
from mt.interop.mapping import Row, Table, misplaced, place
from mt.interop.output import check_output
from mt.model.embedding import sinusoidal_positions
from mt.model.transformer import Transformer
from mt.tokenizer import Tokenizer, rearrange

BIAS = "final_logits_bias"
SHARED = "model.shared.weight"
TIED = ("model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight", "lm_head.weight")
POSITIONS = ("model.encoder.embed_positions.weight", "model.decoder.embed_positions.weight")
UNKNOWN = "<unk>"

OPTIONS: Mapping[str, tuple[Any, tuple[Any, ...]]] = {
    "model_type": (None, ("marian",)),
    "activation_function": ("gelu", ("relu", "gelu")),
    "scale_embedding": (False, (True,)),
    "share_encoder_decoder_embeddings": (True, (True,)),
    "tie_word_embeddings": (True, (True,)),
    "normalize_before": (False, (False,)),
    "normalize_embedding": (False, (False,)),
}
"""Options of config.json: the value of one that is absent, as transformers has it, and the values that we can take."""

EQUAL = (("encoder_attention_heads", "decoder_attention_heads"), ("encoder_ffn_dim", "decoder_ffn_dim"))

CHANNELS: Mapping[str, int] = {
    **dict.fromkeys(("tokens.weight", "query.weight", "key.weight", "value.weight", "inner.weight"), 1),
    **dict.fromkeys(("output.weight", "output.bias", "outer.weight", "outer.bias", "norm.weight", "norm.bias"), 0),
}
"""By the last two parts of our names, which dimension lies along the d_model channels; in other weights none does."""


def import_marian(folder: Path, out: Path, direction: str) -> None:
    """Read a MarianMT directory with safetensors weights and write it as a model directory of ours, `out`.

    `direction` is what it translates, such as "en-de". Raises ModelError that lists every file that is missing, every
    option that we lack and every weight without a place, of another shape or unknown.
    """
    check_output(out, folder)
    source = Source.read(folder)
    found = [*source.option_problems(), *source.vocabulary_problems()]
    description, tokenizer = None, None
    with suppress(ValidationError):  # which the description reports, with all else
        found += source.weight_problems(ModelConfig.model_validate(source.architecture()))
    try:
        description = source.description(out.name, direction)
    except ValidationError as error:
        listed = {".".join(map(str, problem["loc"])): problem["msg"] for problem in error.errors()}
        found += [f"{place}: {message}" for place, message in listed.items()]
    try:
        tokenizer = Tokenizer(rearrange(source.sentencepiece, source.pieces(), str(folder / "source.spm")))
    except MTError as error:
        found.append(str(error))
    if found or description is None or tokenizer is None:
        raise ModelError(problems(f"{folder} cannot be imported", found))
    save_model(out, source.our_weights(description.model), tokenizer, description, _card(source, direction))


@dataclass(frozen=True)
class Source:
    """A MarianMT directory in memory."""

    folder: Path
    config: Mapping[str, Any]
    generation: Mapping[str, Any]
    vocabulary: Mapping[str, int]
    sentencepiece: bytes
    target_sentencepiece: bytes
    weights: Mapping[str, Tensor]
    licence: str | None

    @classmethod
    def read(cls, folder: Path) -> "Source":
        """Raises ModelError that names every file that is missing or cannot be read."""
        found = []
        for name in ("config.json", "vocab.json", "source.spm", "target.spm", "model.safetensors"):
            if not (folder / name).is_file():
                found.append(f"{name} is missing" + _hint(folder, name))
        if found:
            raise ModelError(problems(f"{folder} is no MarianMT model that can be imported", found))
        generation, readme = folder / "generation_config.json", folder / "README.md"
        text = readme.read_text(encoding="utf-8", errors="replace") if readme.is_file() else ""
        stated = re.search(r"^license:\s*(\S+)", text, re.MULTILINE)
        return cls(
            folder=folder,
            config=_json(folder / "config.json"),
            generation=_json(generation) if generation.is_file() else {},
            vocabulary=_vocabulary(folder / "vocab.json"),
            sentencepiece=(folder / "source.spm").read_bytes(),
            target_sentencepiece=(folder / "target.spm").read_bytes(),
            weights=load_weights(folder / "model.safetensors"),
            licence=stated[1] if stated else None,
        )

    @property
    def special_ids(self) -> tuple[int, int, int, int]:
        """Their ids of what are our pad, unk, bos and eos."""
        config = self.config
        return (
            config.get("pad_token_id", 58100),
            self.vocabulary.get(UNKNOWN, -1),
            config.get("decoder_start_token_id", 58100),
            config.get("eos_token_id", 0),
        )

    def pieces(self) -> list[str]:
        """Their vocabulary without the special pieces, in their order: what our ids from 4 on mean."""
        by_id = sorted(self.vocabulary.items(), key=lambda item: item[1])
        return [piece for piece, number in by_id if number not in self.special_ids]

    def option_problems(self) -> Iterator[str]:
        """Every option whose value we cannot take."""
        for option, (default, accepted) in OPTIONS.items():
            value = self.config.get(option, default)
            if value not in accepted:
                yield f"{option} is {value!r}; accepted: {', '.join(map(repr, accepted))}"
        for one, other in EQUAL:
            if self.config.get(one) != self.config.get(other):
                yield f"{one} is {self.config.get(one)} and {other} {self.config.get(other)}; accepted: equal ones"
        if self.target_sentencepiece != self.sentencepiece:
            yield "source.spm and target.spm differ; accepted: one SentencePiece model for both sides"

    def vocabulary_problems(self) -> Iterator[str]:
        """What keeps vocab.json from being a joint vocabulary of the size that config.json states."""
        size, ids = self.config.get("vocab_size"), sorted(self.vocabulary.values())
        if ids != list(range(len(ids))) or len(ids) != size or self.config.get("decoder_vocab_size", size) != size:
            stated = f"vocab_size {size} and decoder_vocab_size {self.config.get('decoder_vocab_size', size)}"
            yield f"vocab.json has {len(ids)} pieces, config.json {stated}; accepted: ids from 0, and equal sizes"
        names = ("pad_token_id", f"the id of {UNKNOWN}", "decoder_start_token_id", "eos_token_id")
        for name, number in zip(names, self.special_ids, strict=True):
            if number not in ids:
                yield f"{name} is {number!r}; accepted: one id of vocab.json"
        tags = [piece for piece in self.vocabulary if re.fullmatch(r">>.+<<", piece)]
        if tags:
            yield f"vocab.json has {len(tags)} target-language tags, such as {tags[0]}; accepted: none"

    def architecture(self) -> dict[str, Any]:
        """The values of our ModelConfig."""
        theirs = {
            "d_ff": "encoder_ffn_dim",
            "heads": "encoder_attention_heads",
            "activation": "activation_function",
            "max_length": "max_position_embeddings",
        }
        same = ("encoder_layers", "decoder_layers", "d_model", "dropout", "attention_dropout", "activation_dropout")
        theirs |= {name: name for name in same}
        default, accepted = OPTIONS["activation_function"]
        config = {"activation_function": default, **self.config}
        if config["activation_function"] not in accepted:  # `option_problems` says so
            config["activation_function"] = accepted[0]
        return {"norm": "post", **{ours: config[name] for ours, name in theirs.items() if name in config}}

    def description(self, name: str, direction: str) -> Description:
        """Our `config.json` of it. Raises ValidationError."""
        search = {"beam_size": "num_beams", "length_penalty": "length_penalty"}
        asked = {**self.config, **self.generation}
        return Description.model_validate(
            {
                "name": re.sub(r"[^\w.-]", "-", name),
                "directions": (direction,),
                "vocabulary_size": len(self.pieces()) + 4,
                "model": self.architecture(),
                "decoding": {ours: asked[key] for ours, key in search.items() if asked.get(key) is not None},
            }
        )

    def weight_problems(self, config: ModelConfig) -> Iterator[str]:
        """Every weight that has no place, another shape, or a value that our architecture does not have."""
        with torch.device("meta"):
            ours = Transformer(config, len(self.vocabulary)).state_dict()
        table, weights = marian_table(config), self._own_weights()
        yield from misplaced(table, weights, ours)
        for row in table:
            (name,), (target,) = row.sources, row.targets
            if name in weights and target in ours and weights[name].shape != ours[target].shape:
                yield f"{name} has the shape {list(weights[name].shape)}, not {list(ours[target].shape)}"
        yield from (f"{name} has values that are not finite" for name, w in weights.items() if not w.isfinite().all())
        pad, _, start, _ = self.special_ids
        biased = set(self.weights.get(BIAS, torch.zeros(1)).flatten().nonzero().flatten().tolist())
        biased -= {pad, start}  # no search produces these two
        if biased:
            yield f"{BIAS} is not zero for {len(biased)} pieces; accepted: zero but for padding"
        for name in TIED:
            if name in self.weights and SHARED in weights and not torch.equal(self.weights[name], weights[SHARED]):
                yield f"{name} differs from {SHARED}; accepted: embeddings tied three ways"
        expected = sinusoidal_positions(config.max_length, config.d_model)
        expected = expected[:, channel_order(config.d_model).argsort()]
        for name in POSITIONS:
            stored = self.weights.get(name, expected)
            if stored.shape != expected.shape or not torch.allclose(stored.float(), expected, atol=1e-3):
                yield f"{name} is not the sinusoidal table; accepted: positions that were not learned"

    def our_weights(self, config: ModelConfig) -> dict[str, Tensor]:
        """Our state dictionary, of a source without problems."""
        order = channel_order(config.d_model)
        own = self._own_weights()
        rows = [*self.special_ids, *(self.vocabulary[piece] for piece in self.pieces())]
        own[SHARED] = own[SHARED][rows]
        placed = place(marian_table(config), own)
        return {name: _reordered(name, tensor, order).float() for name, tensor in placed.items()}

    def _own_weights(self) -> dict[str, Tensor]:
        """The weights without constants and copies; the embeddings may be stored under the name of a copy."""
        own = {name: w for name, w in self.weights.items() if name not in (*TIED, *POSITIONS, BIAS)}
        stored = next((self.weights[name] for name in (SHARED, *TIED) if name in self.weights), None)
        return own if stored is None else {**own, SHARED: stored}


def marian_table(config: ModelConfig) -> Table:
    """MarianMT's names (the sources) and ours (the targets)."""
    return tuple(_rows(config))


def _rows(config: ModelConfig) -> Iterator[Row]:
    yield Row((SHARED,), ("embedding.tokens.weight",))
    feed_forward = {
        "fc1": "feed_forward.inner",
        "fc2": "feed_forward.outer",
        "final_layer_norm": "around_feed_forward.norm",
    }
    encoder = {**_attention("self_attn", "self_attention"), **feed_forward}
    decoder = {**encoder, **_attention("encoder_attn", "cross_attention")}
    for side, modules, layers in (
        ("encoder", encoder, config.encoder_layers),
        ("decoder", decoder, config.decoder_layers),
    ):
        for index in range(layers):
            for theirs, ours in modules.items():
                for kind in ("weight", "bias"):
                    name = f"{side}.layers.{index}."
                    yield Row((f"model.{name}{theirs}.{kind}",), (f"{name}{ours}.{kind}",))


def _attention(theirs: str, ours: str) -> dict[str, str]:
    projections = {"q": "query", "k": "key", "v": "value", "out": "output"}
    modules = {f"{theirs}.{short}_proj": f"{ours}.{projection}" for short, projection in projections.items()}
    return {**modules, f"{theirs}_layer_norm": f"around_{ours}.norm"}


def channel_order(d_model: int) -> Tensor:
    """Which of their channels each of ours is: [d_model]. Sines and cosines alternate where theirs are halves."""
    return torch.arange(d_model).view(2, -1).T.flatten()


def _reordered(name: str, tensor: Tensor, order: Tensor) -> Tensor:
    dimension = CHANNELS.get(".".join(name.split(".")[-2:]))
    return tensor if dimension is None else tensor.index_select(dimension, order)


def _hint(folder: Path, name: str) -> str:
    if name == "model.safetensors" and (folder / "pytorch_model.bin").exists():
        return " (pytorch_model.bin is a pickle, which could run code; accepted: safetensors)"
    return ""


def _json(path: Path) -> dict[str, Any]:
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ModelError(f"{path}: not a JSON file ({error})") from error
    if not isinstance(values, dict):
        raise ModelError(f"{path}: holds {type(values).__name__}; accepted: a JSON object")
    return values


def _vocabulary(path: Path) -> dict[str, int]:
    values = _json(path)
    if not all(isinstance(number, int) for number in values.values()):
        raise ModelError(f"{path}: not every piece has a whole number; accepted: pieces and their ids")
    return values


def _card(source: Source, direction: str) -> str:
    """`README.md` of the imported model."""
    origin = source.config.get("_name_or_path") or source.folder.resolve().name
    licence = source.licence or "not stated there; ask its authors before passing it on"
    return f"""# {origin}, imported

Translates {direction}. Load it with `Translator.load`, or serve it with `python -m service --model` and this directory.

- From: the MarianMT model `{origin}` (Hugging Face's format), by `scripts/import_model.py`.
- Licence: {licence}.
- Weights: the same numbers in another order, as float32; nothing was trained here.
"""
