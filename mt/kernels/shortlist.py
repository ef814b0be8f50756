"""Which target tokens may come out of a sentence: a few hundred of a vocabulary of thousands.

Those that always may; the likely translations of the source's tokens; and the source's own tokens, so that what is
copied (names, numbers, addresses) can be: L'Hostis et al. 2016, "Vocabulary Selection Strategies for NMT", section 3.
Whatever the lists say, any text can be spelt: characters of alphabets, digits, signs and bytes always may come out.
"""

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

SPACE = "\u2581"  # with which SentencePiece begins a word


@dataclass(frozen=True)
class Shortlist:
    """For each source token the target tokens that it allows, beside those that are allowed always.

    `always` ascends; the tokens that t allows, itself among them, are allowed[offsets[t] : offsets[t + 1]].
    """

    always: Tensor  # int32 [A]
    offsets: Tensor  # int64 [V + 1]
    allowed: Tensor  # int32 [offsets[V]]

    @classmethod
    def build(
        cls, pieces: Sequence[str], eos: int, frequent: Iterable[int], translations: Iterable[tuple[int, int]]
    ) -> "Shortlist":
        """Of a vocabulary's pieces, its frequent target tokens, and pairs of a source token and a translation."""
        ids = {piece: id for id, piece in enumerate(pieces)}
        allowed = [{id, *twins(piece, ids)} for id, piece in enumerate(pieces)]
        for source, target in translations:
            allowed[source].add(target)
        spelling = (id for id, piece in enumerate(pieces) if spells(piece))
        always = sorted({eos, *frequent, *spelling})
        return cls(
            torch.tensor(always, dtype=torch.int32),
            torch.tensor(np.cumsum([0, *map(len, allowed)]), dtype=torch.int64),
            torch.tensor([target for targets in allowed for target in sorted(targets)], dtype=torch.int32),
        )

    @property
    def vocabulary_size(self) -> int:
        return len(self.offsets) - 1

    def ids(self, source: Sequence[int]) -> Tensor:
        """What may come out of a source: int64, ascending."""
        parts = [self.allowed[self.offsets[token] : self.offsets[token + 1]] for token in source]
        return torch.tensor(np.unique(torch.cat([self.always, *parts]).numpy()), dtype=torch.int64)

    def tensors(self) -> dict[str, Tensor]:
        return {"always": self.always, "offsets": self.offsets, "allowed": self.allowed}


def twins(piece: str, ids: dict[str, int]) -> Iterator[int]:
    """The piece's like at another place in a text, which is how it may have to be copied: with a space, or without."""
    other = piece[1:] if piece.startswith(SPACE) else SPACE + piece
    if other in ids:
        yield ids[other]


def spells(piece: str) -> bool:
    """Whether a piece is a byte, a digit, a sign, or a letter of an alphabet, with or without a space.

    The characters of which scripts have hundreds or thousands (CJK ideographs, Hangul, kana) are none: they come out
    where they are frequent, translate something, or stand in the source; or else as bytes.
    """
    if len(piece) == 6 and piece.startswith("<0x"):
        return True
    text = piece.removeprefix(SPACE)
    if len(text) != 1:
        return not text
    return not (unicodedata.category(text) == "Lo" and unicodedata.east_asian_width(text) == "W")


def flaws(tensors: dict[str, Tensor], vocabulary_size: int, eos: int) -> list[str]:
    """What keeps these tensors from being the shortlist of a vocabulary; nothing if they can be one."""
    types = {"always": torch.int32, "offsets": torch.int64, "allowed": torch.int32}
    found = [
        f"{name} is missing, or not a list of {dtype}"
        for name, dtype in types.items()
        if name not in tensors or tensors[name].dtype != dtype or tensors[name].dim() != 1
    ]
    if found:
        return found
    always, offsets, allowed = (tensors[name] for name in types)
    if len(offsets) != vocabulary_size + 1:
        return [f"it is for {len(offsets) - 1} tokens; accepted: {vocabulary_size}, those of the tokenizer"]
    if offsets[0] != 0 or offsets[-1] != len(allowed) or not bool((offsets.diff() >= 0).all()):
        found.append("offsets do not divide what is allowed; accepted: ascending from 0 to its length")
    for name, ids in (("always", always), ("allowed", allowed)):
        if len(ids) and not 0 <= int(ids.min()) <= int(ids.max()) < vocabulary_size:
            found.append(
                f"{name} holds ids from {int(ids.min())} to {int(ids.max())}; accepted: below {vocabulary_size}"
            )
    if not bool((always.diff() > 0).all()):
        found.append("always is not in order; accepted: ascending, each id once")
    if eos not in always:
        found.append(f"always lacks the end of the sentence; accepted: with {eos} in it")
    return found
