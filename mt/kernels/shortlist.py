"""Shortlist: the few hundred tokens that the translation of a sentence may contain.

The shortlist of a sentence contains tokens that are always allowed, likely translations of the source tokens, and the
source tokens themselves, so that names, numbers and addresses can be copied (L'Hostis et al. 2016, "Vocabulary
Selection Strategies for NMT", section 3). Letters of alphabets, digits, signs and bytes are always allowed, so that the
model can write any text. A sentence with a token whose translations are not known is not limited.

The file of a shortlist states how translations with it were compared with those without it.
"""

import logging
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, ValidationError
from safetensors import safe_open

from mt.arrays import Array, Arrays, load_arrays, reading, save_arrays
from mt.errors import ModelError, problems
from mt.files import atomic_file
from mt.section import Section
from mt.tokenizer import EOS, Tokenizer

logger = logging.getLogger(__name__)

SHORTLIST_FILE = "shortlist.safetensors"
SPACE = "\u2581"  # SentencePiece's mark for the space before a word


class ShortlistCheck(Section):
    """Comparison of translations with a shortlist and without it."""

    sentences: int = Field(ge=1)
    bleu: float
    """BLEU without the shortlist, the mean of all directions."""
    shortlist_bleu: float
    """BLEU with the shortlist, the mean of all directions."""
    changed: float = Field(ge=0, le=1)
    """Share of the translations that differ. Most of them differ because probabilities are normalised over the allowed
    tokens, which changes the scores of all hypotheses a little."""
    excluded: float = Field(ge=0, le=1)
    """Share of the translations without the shortlist that contain a token that it does not allow."""
    tokens: float = Field(ge=0)
    """Mean number of target tokens that a sentence allows."""
    conditions: str
    """Text, number format and search options of the translations, and signature of BLEU."""


@dataclass(frozen=True)
class Shortlist:
    """Target tokens that are always allowed, and target tokens that each source token allows.

    Shapes: A tokens that are always allowed, V vocabulary, U tokens whose translations are not known. `always` and
    `rare` are in ascending order. Source token t also allows allowed[offsets[t] : offsets[t + 1]]. A source with
    a token in `rare` allows the whole vocabulary.
    """

    always: NDArray[np.int32]  # [A]
    offsets: NDArray[np.int64]  # [V + 1]
    allowed: NDArray[np.int32]  # [offsets[V]]
    rare: NDArray[np.int32]  # [U]
    check: ShortlistCheck | None = None

    @classmethod
    def build(
        cls,
        pieces: Sequence[str],
        eos: int,
        frequent: Iterable[int],
        translations: Iterable[tuple[int, int]],
        rare: Iterable[int] = (),
    ) -> "Shortlist":
        """Build a shortlist.

        Args:
            pieces: The pieces of the vocabulary.
            eos: The id of EOS.
            frequent: Target tokens that are always allowed.
            translations: Pairs of a source token and a target token that it allows.
            rare: Source tokens whose translations are not known.
        """
        ids = {piece: id for id, piece in enumerate(pieces)}
        allowed = [{id, *space_variants(piece, ids)} for id, piece in enumerate(pieces)]
        for source, target in translations:
            allowed[source].add(target)
        spelling = (id for id, piece in enumerate(pieces) if is_single_character(piece))
        usual = {eos, *frequent, *spelling}
        lists = [sorted(targets.difference(usual)) for targets in allowed]
        return cls(
            np.array(sorted(usual), np.int32),
            np.cumsum([0, *map(len, lists)], dtype=np.int64),
            np.array([target for targets in lists for target in targets], np.int32),
            np.array(sorted(rare), np.int32),
        )

    @property
    def vocabulary_size(self) -> int:
        return len(self.offsets) - 1

    def ids(self, source: Sequence[int]) -> NDArray[np.int32]:
        """Return the ids of the target tokens that the translation of `source` may contain, in ascending order."""
        if np.isin(source, self.rare).any():
            return np.arange(self.vocabulary_size, dtype=np.int32)
        parts = [self.allowed[self.offsets[token] : self.offsets[token + 1]] for token in source]
        return np.unique(np.concatenate([self.always, *parts]))

    def union(self, other: "Shortlist") -> "Shortlist":
        """Return a shortlist without a check that allows what this or `other`, of the same vocabulary, allows."""
        tokens = range(self.vocabulary_size)
        lists = [
            np.union1d(*(each.allowed[each.offsets[token] : each.offsets[token + 1]] for each in (self, other)))
            for token in tokens
        ]
        return Shortlist(
            np.union1d(self.always, other.always),
            np.cumsum([0, *map(len, lists)], dtype=np.int64),
            np.concatenate([np.empty(0, np.int32), *lists]),
            np.intersect1d(self.rare, other.rare),
        )

    def select(self, kept: Sequence[int]) -> "Shortlist":
        """Return the shortlist for a vocabulary whose token i is token kept[i] of this vocabulary."""
        places = np.full(self.vocabulary_size, -1, np.int32)
        places[kept] = np.arange(len(kept))

        def new(ids: NDArray[np.int32]) -> NDArray[np.int32]:
            return np.sort(places[ids][places[ids] >= 0])

        lists = [new(self.allowed[self.offsets[token] : self.offsets[token + 1]]) for token in kept]
        offsets = np.cumsum([0, *map(len, lists)], dtype=np.int64)
        return Shortlist(new(self.always), offsets, np.concatenate(lists), new(self.rare), self.check)

    def arrays(self) -> dict[str, Array]:
        return {"always": self.always, "offsets": self.offsets, "allowed": self.allowed, "rare": self.rare}


def save_shortlist(folder: Path, shortlist: Shortlist, tokenizer: Tokenizer) -> None:
    """Write a shortlist with its check into a model directory, together with the digest of `tokenizer`."""
    assert shortlist.check is not None
    with atomic_file(folder / SHORTLIST_FILE) as file:
        metadata = {"tokenizer": tokenizer.digest, "check": shortlist.check.model_dump_json()}
        arrays = shortlist.arrays()
        if shortlist.vocabulary_size <= 1 << 16:
            arrays["allowed"] = arrays["allowed"].astype(np.uint16)
        save_arrays(file, arrays, metadata)


def load_shortlist(folder: Path, tokenizer: Tokenizer) -> Shortlist | None:
    """Return the shortlist in a model directory, or None if there is none.

    The file of version 0.2 states no comparison with translations without a shortlist, and is not used.

    Raises:
        ModelError: The file is not a shortlist for `tokenizer`.
    """
    path = folder / SHORTLIST_FILE
    if not path.exists():
        return None
    with reading(path), safe_open(path, "np") as file:
        metadata = file.metadata() or {}
    if "check" not in metadata:
        logger.info("%s is not used, because it states no comparison (run mt-service shortlist again)", path)
        return None
    arrays = dict(load_arrays(path))
    if "allowed" in arrays and arrays["allowed"].dtype == np.uint16:
        arrays["allowed"] = arrays["allowed"].astype(np.int32)
    wrong = flaws(arrays, len(tokenizer), EOS)
    check = None
    try:
        check = ShortlistCheck.model_validate_json(metadata["check"])
    except ValidationError:
        wrong.append("its comparison is damaged; accepted: a file that `mt-service shortlist` wrote")
    if metadata.get("tokenizer") != tokenizer.digest:
        wrong.append(
            "the file is for another tokenizer; accepted: a file that `mt-service shortlist` wrote for this model"
        )
    if wrong:
        raise ModelError(problems(f"{path} cannot be used (the file is optional)", wrong))
    return Shortlist(arrays["always"], arrays["offsets"], arrays["allowed"], arrays["rare"], check)


def space_variants(piece: str, ids: dict[str, int]) -> Iterator[int]:
    """Yield the id of `piece` without its leading space, or with a leading space if it has none.

    A word that is copied from the source may need this piece. Yield nothing if `ids` does not contain it.
    """
    other = piece[1:] if piece.startswith(SPACE) else SPACE + piece
    if other in ids:
        yield ids[other]


def is_single_character(piece: str) -> bool:
    """Return whether `piece` is one byte, or one digit, sign or letter of an alphabet, with or without a leading space.

    The leading space alone is accepted too. CJK ideographs, Hangul and kana are not letters of an alphabet, because
    there are too many. Such a character is allowed if it is frequent, translates a source token or occurs in the
    source; otherwise bytes can write it.
    """
    if len(piece) == 6 and piece.startswith("<0x"):
        return True
    text = piece.removeprefix(SPACE)
    if len(text) != 1:
        return not text
    return not (unicodedata.category(text) == "Lo" and unicodedata.east_asian_width(text) == "W")


def flaws(arrays: Arrays, vocabulary_size: int, eos: int) -> list[str]:
    """Return the problems of a shortlist's arrays, one message each. The list is empty if they fit the vocabulary."""
    types = {"always": "int32", "offsets": "int64", "allowed": "int32", "rare": "int32"}
    invalid = [
        f"{name} is missing or not a 1-D array of {dtype}"
        for name, dtype in types.items()
        if name not in arrays or arrays[name].dtype != dtype or arrays[name].ndim != 1
    ]
    if invalid:
        return invalid
    always, offsets, allowed, rare = (arrays[name] for name in types)
    if len(offsets) != vocabulary_size + 1:
        return [
            f"the shortlist is for {len(offsets) - 1} tokens; accepted: {vocabulary_size}, the number in the tokenizer"
        ]
    if offsets[0] != 0 or offsets[-1] != len(allowed) or not (np.diff(offsets) >= 0).all():
        invalid.append(
            f"offsets are not valid; accepted: ascending numbers from 0 to {len(allowed)}, the length of allowed"
        )
    for name, ids in (("always", always), ("allowed", allowed), ("rare", rare)):
        if len(ids) and not 0 <= int(ids.min()) <= int(ids.max()) < vocabulary_size:
            invalid.append(
                f"{name} has ids from {int(ids.min())} to {int(ids.max())}; accepted: 0 to {vocabulary_size - 1}"
            )
    if not (np.diff(always) > 0).all():
        invalid.append("always is not sorted or repeats an id; accepted: ascending ids, each once")
    if eos not in always:
        invalid.append(f"always lacks EOS; accepted: ids that include {eos}")
    return invalid
