"""Lexical translation probabilities by IBM model 1, in bounded memory.

Brown et al. 1993, "The Mathematics of Statistical Machine Translation", section 4: each target token is aligned to one
source token or to the empty word, and all alignments have the same prior probability. The translation probabilities are
learned by expectation maximisation (equations 14 and 15).

V is the size of the vocabulary, which source and target have in common. The key of a source token s and a target token
t is s * V + t.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

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


@dataclass(frozen=True)
class TokenLists:
    """Sentences of token ids: sentence i is data[offsets[i] : offsets[i + 1]]."""

    data: Int
    offsets: Int

    @classmethod
    def of(cls, sentences: Sequence[Sequence[int]]) -> "TokenLists":
        offsets = np.cumsum([0, *map(len, sentences)], dtype=np.int64)
        return cls(np.fromiter(chain.from_iterable(sentences), np.int64, int(offsets[-1])), offsets)

    @property
    def lengths(self) -> Int:
        return np.diff(self.offsets)

    def part(self, begin: int, end: int) -> "TokenLists":
        offsets = self.offsets[begin : end + 1]
        return TokenLists(self.data[offsets[0] : offsets[-1]], offsets - offsets[0])


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
    source: TokenLists, target: TokenLists, vocabulary_size: int, iterations: int = 5
) -> TranslationTable:
    """Learn a table from sentence pairs. Each iteration reads all pairs.

    If the table would have more than MAX_ENTRIES entries, the entries with the lowest expected counts are dropped.
    """
    keys, counts = np.empty(0, np.int64), np.empty(0)
    for block in _blocks(source, target, vocabulary_size):
        expected = block.expected(np.ones(len(block.keys)))  # the first iteration uses uniform probabilities
        keys, counts = _merged((keys, counts), (block.keys, expected))
    probabilities = _normalised(keys, counts, vocabulary_size)
    for _ in range(iterations - 1):
        counts = np.zeros(len(keys))
        for block in _blocks(source, target, vocabulary_size):
            places = np.minimum(np.searchsorted(keys, block.keys), len(keys) - 1)
            known = keys[places] == block.keys
            counts[places[known]] += block.expected(np.where(known, probabilities[places], 0.0))[known]
        probabilities = _normalised(keys, counts, vocabulary_size)
    frequencies, occurrences = (np.bincount(side.data, minlength=vocabulary_size) for side in (target, source))
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

    @classmethod
    def of(cls, source: TokenLists, target: TokenLists, vocabulary_size: int) -> "_Block":
        lengths = source.lengths + 1
        with_empty = np.insert(source.data, source.offsets[:-1], EMPTY)
        begins = np.cumsum(lengths) - lengths
        widths = np.repeat(lengths, target.lengths)
        starts = np.cumsum(widths) - widths
        shift = np.repeat(np.repeat(begins, target.lengths) - starts, widths)
        sources = with_empty[shift + np.arange(len(shift))]
        targets = np.repeat(target.data, widths)
        keys, places = np.unique(sources * vocabulary_size + targets, return_inverse=True)
        return cls(keys, places, starts, widths)

    def expected(self, probabilities: Float) -> Float:
        """Return the expected count of each of `keys`. `probabilities` has the probability of each of `keys`."""
        cells = probabilities[self.places]
        totals = np.add.reduceat(cells, self.starts)
        cells /= np.repeat(np.where(totals > 0, totals, 1.0), self.widths)
        return np.bincount(self.places, cells, len(self.keys)).astype(np.float64, copy=False)


def _blocks(source: TokenLists, target: TokenLists, vocabulary_size: int) -> Iterator[_Block]:
    """Divide sentence pairs into blocks. A block has one pair, or at most CELLS_PER_BLOCK cells."""
    cells = np.cumsum((source.lengths + 1) * target.lengths)
    begin = 0
    while begin < len(cells):
        done = cells[begin - 1] if begin else 0
        end = max(begin + 1, int(np.searchsorted(cells, done + CELLS_PER_BLOCK, "right")))
        yield _Block.of(source.part(begin, end), target.part(begin, end), vocabulary_size)
        begin = end


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
