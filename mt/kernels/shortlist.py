"""Shortlist: the target tokens that the translation of a sentence may contain (mt/data/shortlist.py makes them).

The shortlist of a sentence contains tokens that are always allowed, and the tokens that its source tokens allow
(L'Hostis et al. 2016, "Vocabulary Selection Strategies for NMT", section 3). A sentence with a token whose translations
are not known is not limited.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors import safe_open

from mt.arrays import Array, Arrays, load_arrays, reading, save_arrays
from mt.decoding.options import SpecialIds
from mt.errors import ModelError, problems
from mt.files import atomic_file

SHORTLIST_FILE = "shortlist.safetensors"


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

    @property
    def vocabulary_size(self) -> int:
        return len(self.offsets) - 1

    def ids(self, source: Sequence[int]) -> NDArray[np.int32]:
        """Return the ids of the target tokens that the translation of `source` may contain, in ascending order."""
        if np.isin(source, self.rare).any():
            return np.arange(self.vocabulary_size, dtype=np.int32)
        parts = [self.allowed[self.offsets[token] : self.offsets[token + 1]] for token in source]
        return np.unique(np.concatenate([self.always, *parts]))

    def arrays(self) -> dict[str, Array]:
        return {"always": self.always, "offsets": self.offsets, "allowed": self.allowed, "rare": self.rare}


def save_shortlist(folder: Path, shortlist: Shortlist, tokenizer: str) -> None:
    """Write a shortlist into a model directory, together with the digest `tokenizer` of the model's tokenizer."""
    arrays = shortlist.arrays()
    if shortlist.vocabulary_size <= 1 << 16:
        arrays["allowed"] = arrays["allowed"].astype(np.uint16)
    with atomic_file(folder / SHORTLIST_FILE) as file:
        save_arrays(file, arrays, {"tokenizer": tokenizer})


def load_shortlist(folder: Path, tokenizer: str, vocabulary_size: int) -> Shortlist | None:
    """Return the shortlist in a model directory, or None if there is none.

    `tokenizer` is the digest of the model's tokenizer.

    Raises:
        ModelError: The file is not a shortlist for this tokenizer.
    """
    path = folder / SHORTLIST_FILE
    if not path.exists():
        return None
    with reading(path), safe_open(path, "np") as file:
        metadata = file.metadata() or {}
    arrays = dict(load_arrays(path))
    if "allowed" in arrays and arrays["allowed"].dtype == np.uint16:
        arrays["allowed"] = arrays["allowed"].astype(np.int32)
    wrong = flaws(arrays, vocabulary_size, SpecialIds().eos)
    if metadata.get("tokenizer") != tokenizer:
        wrong.append(
            "the file is for another tokenizer; accepted: a file that `mt-service shortlist` wrote for this model"
        )
    if wrong:
        raise ModelError(problems(f"{path} cannot be used (the file is optional)", wrong))
    return Shortlist(arrays["always"], arrays["offsets"], arrays["allowed"], arrays["rare"])


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
