"""Import of a model of another toolkit: the interface of the readers, the checks, and the conversion.

A reader returns a ForeignModel. Problems that the reader finds are reported together with those found here.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from pydantic import ValidationError
from torch import Tensor

from mt.arrays import Array
from mt.checkpoint import LoadedModel, save_model
from mt.config import ModelConfig
from mt.description import Description
from mt.errors import LanguageError, ModelError, MTError, problems
from mt.interop.mapping import Row, find_misplaced, rename_weights
from mt.languages import DirectionSet, standard_tag, three_letter_code
from mt.model.embedding import NEVER
from mt.model.skip_initialization import SkipInitialization
from mt.model.transformer import Transformer
from mt.tokenizer import BOS, PAD, SPECIAL_PIECES
from mt.vocabulary import Vocabulary, VocabularyTokenizer

TAG = re.compile(r">>.+<<")
FLOATS = (torch.float32, torch.float64, torch.bfloat16, torch.float16)
SHOWN = 20  # maximum number of language tags in an error message

BIAS = "embedding.bias"
TARGET_ROWS = ("embedding.tokens.weight", "embedding.output", BIAS)
SOURCE_ROWS = ("source_embedding.tokens.weight",)


@dataclass(frozen=True)
class Side:
    """Vocabulary of the source or the target with the ids of the other toolkit, and the SentencePiece model.

    `start` is the id that begins a target; None stands for a zero vector. `pad` is None if no piece is for padding.
    """

    ids: Mapping[str, int]
    sentencepiece: bytes
    unk: int
    eos: int
    pad: int | None = None
    start: int | None = None
    pad_counts: bool = True  # whether the other model can assign padding a probability

    @cached_property
    def rows(self) -> list[int | None]:
        """Return the other toolkit's id for each of our ids.

        Ours are pad, unk, bos, eos, then all others in the same order.
        """
        special = [self.pad, self.unk, self.start, self.eos]
        return [*special, *(id for id in sorted(set(self.ids.values())) if id not in special)]

    @property
    def pieces(self) -> list[str]:
        """Return the pieces in the order of our ids."""
        piece_of = {id: piece for piece, id in self.ids.items()}
        others = (piece_of[id] for id in self.rows[len(SPECIAL_PIECES) :] if id is not None)
        return [*SPECIAL_PIECES, *(f"<{piece}>" if piece in SPECIAL_PIECES else piece for piece in others)]

    @property
    def impossible_ids(self) -> list[int]:
        """Return our ids that must get probability 0, because the other toolkit's model never produces them."""
        ids = [PAD] if self.pad is None or not self.pad_counts else []
        return [*ids, BOS] if self.start in (None, self.pad, self.unk, self.eos) else ids

    def problems(self, name: str) -> Iterator[str]:
        """Yield a message for each fault of the ids, which must be 0 to V - 1 for V pieces.

        `name` is the vocabulary's name.
        """
        ids = sorted(self.ids.values())
        if ids != list(range(len(ids))):
            yield f"{name}: ids are missing, repeated or too large; accepted: each id from 0 to {len(ids) - 1} once"
        needed = {"<unk>": self.unk, "the end": self.eos}
        optional = {"padding": self.pad, "the start": self.start}
        for piece, id in (needed | {piece: id for piece, id in optional.items() if id is not None}).items():
            if type(id) is not int or id not in ids:
                yield f"{name}: the id of {piece} is {id}, which no piece has; accepted: 0 to {len(ids) - 1}"


@dataclass(frozen=True)
class ForeignModel:
    """Model of another toolkit, as a reader returns it. Weights have the toolkit's names, but torch's layout."""

    name: str
    kind: str  # "MarianMT model (Hugging Face)"
    architecture: Mapping[str, Any]  # fields of our ModelConfig
    table: Callable[[ModelConfig], Iterable[Row]]
    weights: Mapping[str, Tensor]
    source: Side
    target: Side
    decoding: Mapping[str, Any]
    directions: Sequence[str] | Mapping[str, Sequence[str]]  # as DirectionSet reads them; empty if not stated
    problems: Sequence[str]
    provenance: Sequence[str]  # lines for README.md
    tags: Mapping[str, str] = field(default_factory=dict)
    """Token of each language, if sources and translations begin with the tokens of their languages; otherwise empty."""


def write_model(model: ForeignModel, out: Path, directions: Sequence[str]) -> None:
    """Write the model directory `out`. If `directions` is empty, the directions are those that the model's files state.

    Raises:
        ModelError: An option is not supported, or vocabularies, weights or directions are wrong. The message lists all
            such problems.
    """
    stated = list(directions) or model.directions
    wrong = [*model.problems, *_vocabulary_problems(model)]
    config, description, tokenizer = None, None, None
    try:
        config = ModelConfig.model_validate({**model.architecture, "logits_bias": True})
        wrong += _weight_problems(model, config)
    except ValidationError as error:
        wrong += _listed(error)
    tags, missing = _tags(model, stated)
    wrong += missing
    try:
        tokenizer = _tokenizer(model, tags)
    except MTError as error:
        wrong.append(str(error))
    if config is not None and stated:
        try:
            description = _description(model, out.name, stated, config)
        except ValidationError as error:
            wrong += _listed(error)
    if wrong or config is None or description is None or tokenizer is None:
        raise ModelError(problems(f"{model.name} cannot be imported", dict.fromkeys(wrong)))
    imported = LoadedModel(OurWeights(model, config), tokenizer, description)
    save_model(out, imported, _card(model, description.directions))


def _listed(error: ValidationError) -> list[str]:
    listed = {".".join(map(str, problem["loc"])): problem["msg"] for problem in error.errors()}
    return [f"{place}: {message}" for place, message in listed.items()]


def _vocabulary_problems(model: ForeignModel) -> Iterator[str]:
    shared = model.source.ids == model.target.ids
    yield from model.source.problems("the vocabulary" if shared else "the source's vocabulary")
    if not shared:
        yield from model.target.problems("the target's vocabulary")
    if model.architecture.get("tie_source", True) and not shared:
        yield "source and target share one embedding matrix, but their vocabularies differ"


def _model(model: ForeignModel, config: ModelConfig) -> Transformer:
    """Return our model of the same size on the meta device, which stores only shapes."""
    with torch.device("meta"), SkipInitialization():
        source_size = None if config.tie_source else len(model.source.ids)
        return Transformer(config, len(model.target.ids), source_vocabulary_size=source_size)


def _weight_problems(model: ForeignModel, config: ModelConfig) -> Iterator[str]:
    """Yield a message for each weight that exists in only one format, or has a wrong shape, type or value."""
    ours, weights, table = _model(model, config).state_dict(), model.weights, tuple(model.table(config))
    filled = {target for row in table for target in row.targets}
    yield from find_misplaced(table, weights, [name for name in ours if name != BIAS or BIAS in filled])
    for row in table:
        (name,) = row.sources
        for target in row.targets:
            if name in weights and target in ours and weights[name].shape != ours[target].shape:
                yield f"{name} has the shape {list(weights[name].shape)}; accepted: {list(ours[target].shape)}"
    for name, weight in weights.items():
        if weight.dtype not in FLOATS:
            yield f"{name} has the type {weight.dtype}; accepted: {', '.join(map(str, FLOATS))}"
        elif weight.numel() and not all(extreme.isfinite() for extreme in weight.aminmax()):
            yield f"{name} has infinite or NaN values"


class OurWeights(Mapping[str, Array]):
    """Weights under our names. Each array is computed when it is read. `_weight_problems` must have found nothing."""

    def __init__(self, model: ForeignModel, config: ModelConfig) -> None:
        renamed = rename_weights(model.table(config), model.weights)
        self._renamed = {BIAS: torch.zeros(len(model.target.ids)), **renamed}
        self._sides = ((model.target, TARGET_ROWS), (model.source, SOURCE_ROWS))

    def __getitem__(self, name: str) -> Array:
        weight = self._renamed[name]
        for side, names in self._sides:
            if name in names:
                weight = _arranged(weight, side.rows)
        if name == BIAS:
            weight[self._sides[0][0].impossible_ids] = NEVER
        array: Array = weight.float().numpy()
        return array

    def __iter__(self) -> Iterator[str]:
        return iter(self._renamed)

    def __len__(self) -> int:
        return len(self._renamed)


def _arranged(weight: Tensor, rows: Sequence[int | None]) -> Tensor:
    """Return a tensor whose row i is row rows[i] of `weight`, or zeros if rows[i] is None."""
    chosen = weight[torch.tensor([row or 0 for row in rows])]
    chosen[[row is None for row in rows]] = 0
    return chosen


def _tokenizer(model: ForeignModel, tags: Mapping[str, str]) -> VocabularyTokenizer:
    """Return our tokenizer for the model. `tags` are the language tokens.

    Raises:
        TokenizerError: A SentencePiece model cannot be used.
    """
    source, target = model.source, model.target
    target_pieces = tuple(target.pieces) if target.pieces != source.pieces else None
    vocabulary = Vocabulary(
        pieces=tuple(source.pieces), target_pieces=target_pieces, tags=dict(tags), tags_each_side=bool(model.tags)
    )
    differ = target_pieces is not None or target.sentencepiece != source.sentencepiece
    names = ("the source's tokenizer", "the target's tokenizer")
    return VocabularyTokenizer(
        source.sentencepiece, vocabulary, target.sentencepiece if differ else None, names if differ else names[:1] * 2
    )


def tag_languages(pieces: Iterable[str]) -> dict[str, str]:
    """Return the tag of each language, such as `>>deu<<`, by language, in the order of `pieces`.

    Pieces that are not tags of a known language are ignored.
    """
    tags: dict[str, str] = {}
    for piece in pieces:
        with suppress(LanguageError):
            tags.setdefault(standard_tag(piece[2:-2] if TAG.fullmatch(piece) else ""), piece)
    return tags


def _tags(model: ForeignModel, stated: Any) -> tuple[dict[str, str], list[str]]:
    """Return the language token of each language that needs one, and a list of problems.

    `stated` are the directions, as DirectionSet reads them. If `model.tags` is empty, only target languages have
    tokens.
    """
    known = list(model.tags) or [piece for piece in model.source.ids if TAG.fullmatch(piece)]
    shown = ", ".join(known[:SHOWN]) + (" ..." if len(known) > SHOWN else "")
    if not stated:
        hint = f"; its tags are for {shown}" if known else ", such as --direction en-de"
        return {}, [f"its files state no direction. Give one with --direction{hint}"]
    try:
        directions = DirectionSet.parse(stated)
    except LanguageError as error:
        return {}, [str(error)]
    if model.tags:
        lacking = [tag for tag in {**dict.fromkeys(directions.sources + directions.targets)} if tag not in model.tags]
        return dict(model.tags), [f"it has no token for the language {tag!r}; accepted: {shown}" for tag in lacking]
    languages = directions.targets
    if not known:
        several = f"it has no language tags, so it can have only one target language, not {', '.join(languages)}"
        return {}, [several] if len(languages) > 1 else []
    tags, standard = {}, tag_languages(known)
    for language in languages:
        exact, general = (language, language.replace("-", "_")), three_letter_code(language)
        names = (*(f">>{code}<<" for code in exact), standard.get(language, ""), f">>{general}<<")
        tags[language] = next((name for name in names if name in known), "")
    return tags, [
        f"it has no tag for {language!r}; accepted: one of {shown}" for language, tag in tags.items() if not tag
    ]


def _description(model: ForeignModel, name: str, stated: Any, config: ModelConfig) -> Description:
    """Return the metadata of our model.

    Raises:
        ValidationError: A value of the other toolkit's model is not valid.
    """
    return Description.model_validate(
        {
            "name": re.sub(r"[^\w.-]", "-", name),
            "directions": stated,
            "vocabulary_size": len(model.target.rows),
            "source_vocabulary_size": None if config.tie_source else len(model.source.rows),
            "model": config,
            "decoding": model.decoding,
        }
    )


def _card(model: ForeignModel, directions: DirectionSet) -> str:
    lines = "\n".join(f"- {line}" for line in model.provenance)
    return f"""# {model.name}, imported

Translates {directions}. Load it with `Translator.load`, or serve it with `mt-service serve --model` and \
this directory.

- From: the {model.kind} `{model.name}`, by `mt-service import`.
{lines}
- Weights: the same numbers under other names; nothing was trained here.
"""
