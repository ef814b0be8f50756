"""Shortlist: the few hundred tokens that the translation of a sentence may contain.

The shortlist of a sentence contains tokens that are always allowed, likely translations of the source tokens, and the
source tokens themselves, so that names, numbers and addresses can be copied (L'Hostis et al. 2016, "Vocabulary
Selection Strategies for NMT", section 3). Letters of alphabets, digits, signs and bytes are always allowed, so that the
model can write any text.
"""

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors import safe_open

from mt.arrays import Array, Arrays, load_arrays, save_arrays
from mt.errors import ModelError, problems
from mt.files import atomic_file
from mt.tokenizer import EOS, Tokenizer

SHORTLIST_FILE = "shortlist.safetensors"
SPACE = "\u2581"  # SentencePiece's mark for the space before a word


@dataclass(frozen=True)
class Shortlist:
    """Target tokens that are always allowed, and target tokens that each source token allows.

    Shapes: A tokens that are always allowed, V vocabulary. `always` is in ascending order. Source token t allows itself
    and allowed[offsets[t] : offsets[t + 1]].
    """

    always: NDArray[np.int32]  # [A]
    offsets: NDArray[np.int64]  # [V + 1]
    allowed: NDArray[np.int32]  # [offsets[V]]

    @classmethod
    def build(
        cls, pieces: Sequence[str], eos: int, frequent: Iterable[int], translations: Iterable[tuple[int, int]]
    ) -> "Shortlist":
        """Build a shortlist.

        Args:
            pieces: The pieces of the vocabulary.
            eos: The id of EOS.
            frequent: Target tokens that are always allowed.
            translations: Pairs of a source token and a target token that it allows.
        """
        ids = {piece: id for id, piece in enumerate(pieces)}
        allowed = [{id, *space_variants(piece, ids)} for id, piece in enumerate(pieces)]
        for source, target in translations:
            allowed[source].add(target)
        spelling = (id for id, piece in enumerate(pieces) if is_single_character(piece))
        always = sorted({eos, *frequent, *spelling})
        return cls(
            np.array(always, np.int32),
            np.cumsum([0, *map(len, allowed)], dtype=np.int64),
            np.array([target for targets in allowed for target in sorted(targets)], np.int32),
        )

    @property
    def vocabulary_size(self) -> int:
        return len(self.offsets) - 1

    def ids(self, source: Sequence[int]) -> NDArray[np.int32]:
        """Return the ids of the target tokens that the translation of `source` may contain, in ascending order."""
        parts = [self.allowed[self.offsets[token] : self.offsets[token + 1]] for token in source]
        return np.unique(np.concatenate([self.always, *parts]))

    def arrays(self) -> dict[str, Array]:
        return {"always": self.always, "offsets": self.offsets, "allowed": self.allowed}


def save_shortlist(folder: Path, shortlist: Shortlist, tokenizer: Tokenizer) -> None:
    """Write a shortlist into a model directory, together with the digest of `tokenizer`."""
    with atomic_file(folder / SHORTLIST_FILE) as file:
        save_arrays(file, shortlist.arrays(), {"tokenizer": tokenizer.digest})


def load_shortlist(folder: Path, tokenizer: Tokenizer) -> Shortlist | None:
    """Return the shortlist in a model directory, or None if there is none.

    Raises:
        ModelError: The file is not a shortlist for `tokenizer`.
    """
    path = folder / SHORTLIST_FILE
    if not path.exists():
        return None
    arrays = load_arrays(path)
    wrong = flaws(arrays, len(tokenizer), EOS)
    with safe_open(path, "np") as file:
        if (file.metadata() or {}).get("tokenizer") != tokenizer.digest:
            wrong.append(
                "the file is for another tokenizer; accepted: a file that `mt-service shortlist` wrote for this model"
            )
    if wrong:
        raise ModelError(problems(f"{path} cannot be used (the file is optional)", wrong))
    return Shortlist(arrays["always"], arrays["offsets"], arrays["allowed"])


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
    types = {"always": "int32", "offsets": "int64", "allowed": "int32"}
    invalid = [
        f"{name} is missing or not a 1-D array of {dtype}"
        for name, dtype in types.items()
        if name not in arrays or arrays[name].dtype != dtype or arrays[name].ndim != 1
    ]
    if invalid:
        return invalid
    always, offsets, allowed = (arrays[name] for name in types)
    if len(offsets) != vocabulary_size + 1:
        return [
            f"the shortlist is for {len(offsets) - 1} tokens; accepted: {vocabulary_size}, the number in the tokenizer"
        ]
    if offsets[0] != 0 or offsets[-1] != len(allowed) or not (np.diff(offsets) >= 0).all():
        invalid.append(
            f"offsets are not valid; accepted: ascending numbers from 0 to {len(allowed)}, the length of allowed"
        )
    for name, ids in (("always", always), ("allowed", allowed)):
        if len(ids) and not 0 <= int(ids.min()) <= int(ids.max()) < vocabulary_size:
            invalid.append(
                f"{name} has ids from {int(ids.min())} to {int(ids.max())}; accepted: 0 to {vocabulary_size - 1}"
            )
    if not (np.diff(always) > 0).all():
        invalid.append("always is not sorted or repeats an id; accepted: ascending ids, each once")
    if eos not in always:
        invalid.append(f"always lacks EOS; accepted: ids that include {eos}")
    return invalid
