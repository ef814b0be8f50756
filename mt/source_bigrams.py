"""The pairs of neighbouring source tokens in the training text of a model.

A source with many pairs that are not in this set is unlike the training text: it is from another domain, in another
language, or noise. The probability that the model gives to its translation then says little about quality.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol
from zlib import crc32

import numpy as np
from numpy.typing import NDArray
from safetensors import safe_open

from mt.arrays import Array, load_arrays, save_arrays
from mt.errors import ModelError, problems
from mt.tokenizer import EOS, Tokenizer

MAX_TOKENS = 20_000_000  # tokens of the training text that are read; the texts are evenly spaced in the corpora
MIN_COUNT = 2  # occurrences of a pair in the training text; a single one may be an error
BITS_PER_PAIR = 8  # at least, so that at most one in eight pairs outside the set is taken for a member
MIN_BITS, MAX_BITS = 1 << 12, 1 << 24
BIGRAMS_FILE = "source_bigrams.safetensors"

# Multipliers of a multiply-shift hash of 64 bits (Dietzfelbinger et al. 1997): arbitrary odd numbers.
LANGUAGE, FIRST, SECOND, MIX = 0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0xD6E8FEB86659FD93
ALL_ONES = (1 << 64) - 1


class TextsOfTokens(Protocol):
    """Sequence of texts, each an array of token ids."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int) -> Array: ...


@dataclass(frozen=True)
class SourceBigrams:
    """Set of pairs (token, next token) for each source language, as a Bloom filter with one hash function.

    A pair with hash h belongs to the set if bit h & 7 of `bits`[h >> 3] is 1. EOS precedes and follows each text.
    """

    bits: NDArray[np.uint8]  # [2 ** n]

    @classmethod
    def build(
        cls,
        texts: TextsOfTokens,
        directions: Array,
        languages: Sequence[str],
        known: "SourceBigrams | None" = None,
        max_tokens: int = MAX_TOKENS,
    ) -> "SourceBigrams":
        """Build the set from `texts`, the sources of a training text, and of the members of `known`.

        `languages`[`directions`[i]] is the language of text i. Pairs that occur only once are left out.
        """
        keys = list(_frequent_keys(texts, directions, languages, max_tokens))
        members = np.concatenate(keys) if keys else np.empty(0, np.uint64)
        size = min(max(MIN_BITS, 1 << (BITS_PER_PAIR * len(members)).bit_length()), MAX_BITS)
        size = max(size, 8 * len(known.bits)) if known else size
        hashes = (members >> np.uint64(64 - (size.bit_length() - 1))).astype(np.int64)
        bits = np.zeros(size // 8, np.uint8)
        np.bitwise_or.at(bits, hashes >> 3, np.uint8(1) << (hashes & 7).astype(np.uint8))
        if known:  # the first bits of a hash are its place, so that each bit of a smaller filter becomes several
            wider = np.repeat(np.unpackbits(known.bits, bitorder="little"), len(bits) // len(known.bits))
            bits |= np.packbits(wider, bitorder="little")
        return cls(bits)

    def novelty(self, language: str, tokens: Sequence[int]) -> float:
        """Return the share of the pairs in `tokens` that are not in the set. `tokens` must have no tags and no EOS."""
        return sum(self.new_pairs(language, tokens)) / (len(tokens) + 1)

    def new_pairs(self, language: str, tokens: Sequence[int]) -> list[bool]:
        """Return whether each pair in `tokens` is missing in the set: EOS and the first token, ..., the last and EOS.

        `tokens` must have no tags and no EOS.
        """
        bits, shift = self._bytes, 64 - (8 * len(self.bits)).bit_length() + 1
        first, new = EOS, []
        salt = _salt(language)
        for second in (*tokens, EOS):
            key = (salt + first * FIRST + second * SECOND) & ALL_ONES
            place = (((key ^ (key >> 32)) * MIX) & ALL_ONES) >> shift
            new.append(not bits[place >> 3] >> (place & 7) & 1)
            first = second
        return new

    @property
    def _bytes(self) -> memoryview:
        return self.bits.data  # a memoryview gives Python ints, which are faster here than numpy's


def save_source_bigrams(folder: Path, bigrams: SourceBigrams, tokenizer: Tokenizer) -> None:
    """Write a set into a model directory, together with the digest of `tokenizer`."""
    save_arrays(folder / BIGRAMS_FILE, {"bits": bigrams.bits}, {"tokenizer": tokenizer.digest})


def load_source_bigrams(folder: Path, tokenizer: Tokenizer) -> SourceBigrams | None:
    """Return the set in a model directory, or None if there is none.

    Raises:
        ModelError: The file is not a set of bigrams for `tokenizer`.
    """
    path = folder / BIGRAMS_FILE
    if not path.exists():
        return None
    bits = load_arrays(path).get("bits")
    with safe_open(path, "np") as file:
        digest = (file.metadata() or {}).get("tokenizer")
    wrong = []
    if bits is None or bits.dtype != np.uint8 or bits.ndim != 1 or len(bits) & (len(bits) - 1) or not len(bits):
        wrong.append("bits is missing or invalid; accepted: a 1-D array of uint8 with a power of two as its length")
    if digest != tokenizer.digest:
        wrong.append("the file is for another tokenizer; accepted: a file that training wrote for this model")
    if wrong or bits is None:
        raise ModelError(problems(f"{path} cannot be used (the file is optional)", wrong))
    return SourceBigrams(bits)


def _salt(language: str) -> int:
    return crc32(language.encode()) * LANGUAGE & ALL_ONES


def _frequent_keys(
    texts: TextsOfTokens, directions: Array, languages: Sequence[str], max_tokens: int
) -> Iterator[NDArray[np.uint64]]:
    """Yield an array for each language: the 64-bit hashes of the pairs that occur at least MIN_COUNT times."""
    step = max(1, -(-sum(len(texts[index]) for index in range(0, len(texts), 100)) * 100 // max_tokens))
    eos = np.array([EOS], np.uint64)
    for language in dict.fromkeys(languages):
        of_language = [number for number, other in enumerate(languages) if other == language]
        chosen = np.flatnonzero(np.isin(directions, of_language))[::step]
        parts = [part for index in chosen for part in (texts[index].astype(np.uint64), eos)]
        if not parts:
            continue
        tokens = np.concatenate([eos, *parts])
        keys = (tokens[:-1] * np.uint64(FIRST) + tokens[1:] * np.uint64(SECOND) + np.uint64(_salt(language))).view(
            np.uint64
        )
        mixed, counts = np.unique((keys ^ (keys >> np.uint64(32))) * np.uint64(MIX), return_counts=True)
        yield mixed[counts >= MIN_COUNT]
