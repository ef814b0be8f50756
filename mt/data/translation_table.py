"""Lexical translation probabilities by IBM model 1, in bounded memory.

Brown et al. 1993, "The Mathematics of Statistical Machine Translation", section 4: each target token is aligned to one
source token or to the empty word, and all alignments have the same prior probability. The translation probabilities are
learned by expectation maximisation (equations 14 and 15).

V is the size of the vocabulary, which source and target have in common. The key of a source token s and a target token
t is s * V + t.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from mt.tokenizer import PAD

CELLS_PER_BLOCK = 4_000_000
"""Maximum number of pairs of a source and a target token that are processed at once, in about 300 MB of memory."""

MAX_ENTRIES = 40_000_000
"""Maximum number of entries of a table. An entry takes 16 bytes, and several times as much during learning."""

EMPTY = PAD
"""Token id that represents the empty word. No text contains this id."""

Int = NDArray[np.int64]
Float = NDArray[np.float64]


class Sequences(Protocol):
    """Sentences of token ids: sentence i is data[offsets[i] : offsets[i + 1]]."""

    @property
    def offsets(self) -> np.ndarray: ...
    @property
    def data(self) -> np.ndarray: ...


@dataclass(frozen=True)
class FlatSequences:
    """Sentences of token ids, in memory: sentence i is data[offsets[i] : offsets[i + 1]]."""

    data: np.ndarray
    offsets: np.ndarray

    @classmethod
    def from_lists(cls, sentences: Iterable[Sequence[int]]) -> "FlatSequences":
        arrays = [np.asarray(sentence, np.int32) for sentence in sentences]
        offsets = np.cumsum([0, *map(len, arrays)], dtype=np.int64)
        return cls(np.concatenate([np.empty(0, np.int32), *arrays]), offsets)

    @classmethod
    def select(cls, sequences: Sequences, indices: np.ndarray) -> "FlatSequences":
        """Return a copy of the sentences with these indices, in the order of `indices`."""
        starts = np.asarray(sequences.offsets[indices], np.int64)
        lengths = np.asarray(sequences.offsets[indices + 1], np.int64) - starts
        offsets = np.concatenate(([0], np.cumsum(lengths)))
        return cls(sequences.data[np.repeat(starts - offsets[:-1], lengths) + np.arange(offsets[-1])], offsets)


@dataclass(frozen=True)
class TranslationTable:
    """Table of E probabilities p(target token | source token), and how frequent each target and source token is.

    `probabilities[i]` is the probability for `keys[i]`. The keys are in ascending order. Pairs of tokens without a key
    have probability 0. The source token `EMPTY` is the empty word. `frequencies` is indexed by target token, and
    `occurrences` by source token.
    """

    vocabulary_size: int
    keys: Int  # [E]
    probabilities: Float  # [E]
    frequencies: Int | Float  # [V]
    occurrences: Int  # [V]

    def probability(self, source: int, target: int) -> float:
        key = source * self.vocabulary_size + target
        place = int(np.searchsorted(self.keys, key))
        return float(self.probabilities[place]) if place < len(self.keys) and self.keys[place] == key else 0.0

    def best(self, count: int, besides: Sequence[int] = ()) -> tuple[Int, Int]:
        """Return the `count` most probable target tokens of each source token, without those in `besides`.

        The result is two arrays of equal length, with one element for each pair: source tokens and target tokens. The
        pairs are in ascending order of the source token, then in descending order of probability.
        """
        sources, targets = np.divmod(self.keys, self.vocabulary_size)
        kept = (sources != EMPTY) & ~np.isin(targets, np.asarray(besides, np.int64))
        sources, targets, probabilities = sources[kept], targets[kept], self.probabilities[kept]
        order = np.lexsort((targets, -probabilities, sources))
        sources, targets = sources[order], targets[order]
        rank = np.arange(len(sources)) - np.searchsorted(sources, sources)
        return sources[rank < count], targets[rank < count]

    def frequent(self, count: int) -> Int:
        """Return the `count` most frequent target tokens, the most frequent first. Unused tokens are left out."""
        order = np.argsort(-self.frequencies, kind="stable")[:count]
        return order[self.frequencies[order] > 0]


def learn_translation_table(
    source: Sequences,
    target: Sequences,
    indices: np.ndarray,
    vocabulary_size: int,
    iterations: int = 5,
    progress: Callable[[int], None] = lambda pairs: None,
) -> TranslationTable:
    """Learn a table from the sentence pairs with these indices. Each iteration reads all pairs.

    `progress` is called after each block of pairs with the number of pairs in the block. If the table would have more
    than MAX_ENTRIES entries, the entries with the lowest expected counts are dropped.
    """
    keys, counts = np.empty(0, np.int64), np.empty(0)
    frequencies = np.zeros(vocabulary_size, np.int64)
    for chosen in _blocks(source, target, indices):
        sides = FlatSequences.select(source, chosen), FlatSequences.select(target, chosen)
        block = _Block.of(*sides, vocabulary_size)
        frequencies += np.bincount(block.targets, minlength=vocabulary_size)
        expected = block.expected(np.ones(len(block.keys)))  # the first iteration uses uniform probabilities
        keys, counts = _merged((keys, counts), (block.keys, expected))
        progress(len(chosen))
    probabilities = _normalised(keys, counts, vocabulary_size)
    for _ in range(iterations - 1):
        counts = np.zeros(len(keys))
        for chosen in _blocks(source, target, indices):
            sides = FlatSequences.select(source, chosen), FlatSequences.select(target, chosen)
            block = _Block.of(*sides, vocabulary_size)
            places = np.minimum(np.searchsorted(keys, block.keys), len(keys) - 1)
            known = keys[places] == block.keys
            counts[places[known]] += block.expected(np.where(known, probabilities[places], 0.0))[known]
            progress(len(chosen))
        probabilities = _normalised(keys, counts, vocabulary_size)
    occurrences = np.bincount(FlatSequences.select(source, indices).data, minlength=vocabulary_size)
    return TranslationTable(vocabulary_size, keys, probabilities, frequencies, occurrences)


@dataclass(frozen=True)
class _Block:
    """Sentence pairs that are processed at once, as cells.

    A cell is a target token of a sentence with one possible alignment: a source token of the pair, or the empty word.
    """

    keys: Int  # different keys (source * V + target) of the cells, in ascending order
    places: Int  # the index in `keys` of each cell
    starts: Int  # the index of the first cell of each target token
    widths: Int  # the number of cells of each target token
    targets: np.ndarray  # ids of the target tokens

    @classmethod
    def of(cls, source: FlatSequences, target: FlatSequences, vocabulary_size: int) -> "_Block":
        lengths = np.diff(source.offsets) + 1
        with_empty = np.insert(source.data.astype(np.int64), source.offsets[:-1], EMPTY)
        begins = np.cumsum(lengths) - lengths
        target_lengths = np.diff(target.offsets)
        widths = np.repeat(lengths, target_lengths)
        starts = np.cumsum(widths) - widths
        shift = np.repeat(np.repeat(begins, target_lengths) - starts, widths)
        sources = with_empty[shift + np.arange(len(shift))]
        targets = target.data.astype(np.int64)
        keys, places = np.unique(sources * vocabulary_size + np.repeat(targets, widths), return_inverse=True)
        return cls(keys, places, starts, widths, targets)

    def expected(self, probabilities: Float) -> Float:
        """Return the expected count of each of `keys`. `probabilities` has the probability of each of `keys`."""
        cells = probabilities[self.places]
        totals = np.add.reduceat(cells, self.starts)
        cells /= np.repeat(np.where(totals > 0, totals, 1.0), self.widths)
        return np.bincount(self.places, cells, len(self.keys)).astype(np.float64, copy=False)


def _blocks(source: Sequences, target: Sequences, indices: np.ndarray) -> Iterator[np.ndarray]:
    """Divide `indices` into blocks of sentence pairs. A block has one pair, or at most CELLS_PER_BLOCK cells."""
    lengths = [np.asarray(side.offsets[indices + 1], np.int64) - side.offsets[indices] for side in (source, target)]
    cells = np.cumsum((lengths[0] + 1) * lengths[1])
    at = 0
    while at < len(indices):
        done = cells[at - 1] if at else 0
        end = max(at + 1, int(np.searchsorted(cells, done + CELLS_PER_BLOCK, "right")))
        yield indices[at:end]
        at = end


def _merged(first: tuple[Int, Float], second: tuple[Int, Float]) -> tuple[Int, Float]:
    keys, places = np.unique(np.concatenate((first[0], second[0])), return_inverse=True)
    counts: Float = np.bincount(places, np.concatenate((first[1], second[1])), len(keys)).astype(np.float64, copy=False)
    if len(keys) > MAX_ENTRIES:
        kept = np.sort(np.argpartition(-counts, MAX_ENTRIES)[:MAX_ENTRIES])
        keys, counts = keys[kept], counts[kept]
    return keys, counts


def _normalised(keys: Int, counts: Float, vocabulary_size: int) -> Float:
    sources = keys // vocabulary_size
    totals = np.bincount(sources, counts, vocabulary_size)
    return counts / np.where(totals > 0, totals, 1.0)[sources]
