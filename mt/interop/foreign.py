"""A model of another toolkit as its reader hands it over: checked as a whole, put in our order, written as one of ours.

Readers say in our words what they found; what they found wrong is reported together with what is found here.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from pydantic import ValidationError
from torch import Tensor

from mt.checkpoint import FLOATS, Description, save_model
from mt.config import ModelConfig
from mt.errors import ModelError, MTError, problems
from mt.interop.languages import THREE_LETTERS
from mt.interop.mapping import Table, misplaced, place
from mt.model.embedding import NEVER
from mt.model.transformer import Transformer
from mt.tokenizer import BOS, PAD, SPECIAL_PIECES, Vocabulary, VocabularyTokenizer

TAG = re.compile(r">>.+<<")
SHOWN = 20  # tags that an error names

BIAS = "embedding.bias"
TARGET_ROWS = ("embedding.tokens.weight", "embedding.output", BIAS)
SOURCE_ROWS = ("source_embedding.tokens.weight",)


@dataclass(frozen=True)
class Side:
    """The vocabulary of one side, by the ids of the other toolkit, and what cuts text into its pieces.

    `start` is what its decoder begins with; None is a vector of zeros. `pad` is None if it has no such piece.
    """

    ids: Mapping[str, int]
    sentencepiece: bytes
    unk: int
    eos: int
    pad: int | None = None
    start: int | None = None
    pad_counts: bool = True  # whether the piece of padding has a probability

    @cached_property
    def rows(self) -> list[int | None]:
        """Their id of each of ours: pad, unk, bos, eos, then all others in their order."""
        special = [self.pad, self.unk, self.start, self.eos]
        return [*special, *(id for id in sorted(set(self.ids.values())) if id not in special)]

    @property
    def pieces(self) -> list[str]:
        """Our vocabulary."""
        piece_of = {id: piece for piece, id in self.ids.items()}
        others = (piece_of[id] for id in self.rows[len(SPECIAL_PIECES) :] if id is not None)
        return [*SPECIAL_PIECES, *(f"<{piece}>" if piece in SPECIAL_PIECES else piece for piece in others)]

    @property
    def silent(self) -> list[int]:
        """Those of our ids that must have no probability, because they have none there or have it at another id."""
        found = [PAD] if self.pad is None or not self.pad_counts else []
        return [*found, BOS] if self.start in (None, self.pad, self.unk, self.eos) else found

    def problems(self, what: str) -> Iterator[str]:
        """What keeps the ids from being those of rows, one after another."""
        ids = sorted(self.ids.values())
        if ids != list(range(len(ids))):
            yield f"{what}: the ids of {len(ids)} pieces are not 0 to {len(ids) - 1}, each once"
        needed = {"<unk>": self.unk, "the end": self.eos}
        optional = {"padding": self.pad, "the start": self.start}
        for name, id in (needed | {name: id for name, id in optional.items() if id is not None}).items():
            if type(id) is not int or id not in ids:
                yield f"{what}: the id of {name} is {id}; accepted: one of its ids"


@dataclass(frozen=True)
class ForeignModel:
    """What a reader found. Weights are as torch's layers have them, under the other toolkit's names."""

    name: str
    kind: str  # "MarianMT model (Hugging Face)"
    architecture: Mapping[str, Any]  # values of our ModelConfig
    table: Callable[[ModelConfig], Table]
    weights: Mapping[str, Tensor]
    source: Side
    target: Side
    decoding: Mapping[str, Any]
    direction: str  # what it says that it translates; may be empty
    problems: Sequence[str]
    provenance: Sequence[str]  # lines of the card


def write(found: ForeignModel, out: Path, directions: Sequence[str]) -> None:
    """Write it as a model directory of ours, `out`, that translates `directions`, or what it says itself if none.

    Raises ModelError that lists all that is wrong: options, vocabularies, weights and directions.
    """
    directions = tuple(directions) or ((found.direction,) if found.direction else ())
    wrong = [*found.problems, *_vocabulary_problems(found)]
    config, description, tokenizer = None, None, None
    try:
        config = ModelConfig.model_validate({**found.architecture, "logits_bias": True})
        wrong += _weight_problems(found, config)
    except ValidationError as error:
        wrong += _listed(error)
    tags, missing = _tags(found.source, directions)
    wrong += missing
    try:
        tokenizer = _tokenizer(found, tags)
    except MTError as error:
        wrong.append(str(error))
    if config is not None and directions:
        try:
            description = _description(found, out.name, directions, config)
        except ValidationError as error:
            wrong += _listed(error)
    if wrong or config is None or description is None or tokenizer is None:
        raise ModelError(problems(f"{found.name} cannot be imported", dict.fromkeys(wrong)))
    save_model(out, _our_weights(found, config), tokenizer, description, _card(found, directions))


def _listed(error: ValidationError) -> list[str]:
    listed = {".".join(map(str, problem["loc"])): problem["msg"] for problem in error.errors()}
    return [f"{place}: {message}" for place, message in listed.items()]


def _vocabulary_problems(found: ForeignModel) -> Iterator[str]:
    one = found.source.ids == found.target.ids
    yield from found.source.problems("the vocabulary" if one else "the source's vocabulary")
    if not one:
        yield from found.target.problems("the target's vocabulary")
    if found.architecture.get("tie_source", True) and found.source.ids != found.target.ids:
        yield "the embeddings of source and target are one matrix, but their vocabularies differ"


def _model(found: ForeignModel, config: ModelConfig) -> Transformer:
    """A model of ours with their numbers of pieces, without values."""
    with torch.device("meta"):
        source_size = None if config.tie_source else len(found.source.ids)
        return Transformer(config, len(found.target.ids), source_vocabulary_size=source_size)


def _weight_problems(found: ForeignModel, config: ModelConfig) -> Iterator[str]:
    """Every weight that has no place, another shape, another type, or values that are no numbers."""
    ours, weights, table = _model(found, config).state_dict(), found.weights, found.table(config)
    filled = {target for row in table for target in row.targets}
    yield from misplaced(table, weights, [name for name in ours if name != BIAS or BIAS in filled])
    for row in table:
        (name,) = row.sources
        for target in row.targets:
            if name in weights and target in ours and weights[name].shape != ours[target].shape:
                yield f"{name} has the shape {list(weights[name].shape)}, not {list(ours[target].shape)}"
    for name, weight in weights.items():
        if weight.dtype not in FLOATS:
            yield f"{name} has the type {weight.dtype}; accepted: {', '.join(map(str, FLOATS))}"
        elif not weight.isfinite().all():
            yield f"{name} has values that are not finite"


def _our_weights(found: ForeignModel, config: ModelConfig) -> dict[str, Tensor]:
    """Our state dictionary, of a model without problems."""
    placed = place(found.table(config), found.weights)
    placed.setdefault(BIAS, torch.zeros(len(found.target.ids)))
    for side, names in ((found.target, TARGET_ROWS), (found.source, SOURCE_ROWS)):
        for name in names:
            if name in placed:
                placed[name] = _arranged(placed[name], side.rows)
    placed[BIAS][found.target.silent] = NEVER
    return {name: weight.float() for name, weight in placed.items()}


def _arranged(weight: Tensor, rows: Sequence[int | None]) -> Tensor:
    """These rows of a weight; zeros where there is none."""
    chosen = weight[[row or 0 for row in rows]]
    chosen[[row is None for row in rows]] = 0
    return chosen


def _tokenizer(found: ForeignModel, tags: Mapping[str, str]) -> VocabularyTokenizer:
    """Raises TokenizerError."""
    source, target = found.source, found.target
    own = tuple(target.pieces) if target.pieces != source.pieces else None
    vocabulary = Vocabulary(pieces=tuple(source.pieces), target_pieces=own, tags=dict(tags))
    differ = own is not None or target.sentencepiece != source.sentencepiece
    names = ("the source's tokenizer", "the target's tokenizer")
    return VocabularyTokenizer(
        source.sentencepiece, vocabulary, target.sentencepiece if differ else None, names if differ else names[:1] * 2
    )


def _tags(source: Side, directions: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """The tag of each target language, of a model that has tags; and what is wrong."""
    there = [piece for piece in source.ids if TAG.fullmatch(piece)]
    shown = ", ".join(there[:SHOWN]) + (" ..." if len(there) > SHOWN else "")
    if not directions:
        hint = f", into a language of its tags, {shown}" if there else ", such as --direction en-de"
        return {}, [f"it does not say what it translates; accepted: --direction{hint}"]
    languages = list(dict.fromkeys(direction.partition("-")[2] for direction in directions))
    if not there:
        several = f"it has no tags, so it cannot be told which of {', '.join(languages)} to translate into"
        return {}, [several] if len(languages) > 1 else []
    tags = {}
    for language in languages:
        names = (f">>{code}<<" for code in (language, THREE_LETTERS.get(language, language)))
        tags[language] = next((name for name in names if name in there), "")
    return tags, [
        f"it has no tag for {language!r}; accepted: one of {shown}" for language, tag in tags.items() if not tag
    ]


def _description(found: ForeignModel, name: str, directions: Sequence[str], config: ModelConfig) -> Description:
    """Raises ValidationError."""
    return Description.model_validate(
        {
            "name": re.sub(r"[^\w.-]", "-", name),
            "directions": tuple(directions),
            "vocabulary_size": len(found.target.rows),
            "source_vocabulary_size": None if config.tie_source else len(found.source.rows),
            "model": config,
            "decoding": found.decoding,
        }
    )


def _card(found: ForeignModel, directions: Sequence[str]) -> str:
    """`README.md` of the imported model."""
    lines = "\n".join(f"- {line}" for line in found.provenance)
    return f"""# {found.name}, imported

Translates {", ".join(directions)}. Load it with `Translator.load`, or serve it with `python -m service --model` and \
this directory.

- From: the {found.kind} `{found.name}`, by `scripts/import_model.py`.
{lines}
- Weights: the same numbers under other names, as float32; nothing was trained here.
"""
