"""Lexical translation probabilities by IBM model 1, in bounded memory.

Brown et al. 1993, "The Mathematics of Statistical Machine Translation", section 4: each target token is aligned to one
source token or to the empty word, and all alignments have the same prior probability. The translation probabilities are
learned by expectation maximisation (equations 14 and 15).

V is the size of the vocabulary, which source and target have in common. The key of a source token s and a target token
t is s * V + t.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from mt.tokenizer import PAD

CELLS_PER_BLOCK = 4_000_000
"""Number of pairs of a source and a target token that are processed at once, in about 300 MB of memory."""

EMPTY = PAD
"""Token id that represents the empty word. No text contains this id."""

Int = NDArray[np.int64]
Float = NDArray[np.float64]
Ids = Sequence[int]


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
    pairs: Sequence[tuple[Ids, Ids]], vocabulary_size: int, iterations: int = 5, block_cells: int = CELLS_PER_BLOCK
) -> TranslationTable:
    """Learn a table from sentence pairs of token ids. Each iteration reads all pairs."""
    blocks = partial(_blocks, pairs, vocabulary_size, block_cells)
    keys = np.unique(np.concatenate([np.empty(0, np.int64), *(keys for keys, *_ in blocks())]))
    sources, probabilities = keys // vocabulary_size, np.ones(len(keys))
    for _ in range(iterations):
        counts = np.zeros(len(keys))
        for block_keys, cells, widths in blocks():
            places = np.searchsorted(keys, block_keys)
            expected = probabilities[places][cells]
            expected /= np.repeat(np.add.reduceat(expected, np.cumsum(widths) - widths), widths)
            counts[places] += np.bincount(cells, expected)
        probabilities = counts / np.bincount(sources, counts)[sources]
    occurrences, frequencies = (
        np.bincount(np.fromiter(chain.from_iterable(side), np.int64), minlength=vocabulary_size)
        for side in ([source for source, _ in pairs], [target for _, target in pairs])
    )
    return TranslationTable(vocabulary_size, keys, probabilities, frequencies, occurrences)


def _blocks(pairs: Sequence[tuple[Ids, Ids]], vocabulary_size: int, block_cells: int) -> Iterator[tuple[Int, Int, Int]]:
    """Yield the cells of so many pairs that they have `block_cells` cells together, or of all other pairs.

    A cell is a target token of a sentence with one possible alignment: a source token of the pair, or the empty word.
    The arrays have the different keys of the cells in ascending order, the index of the key of each cell, and the
    number of cells of each target token.
    """
    keys: list[Int] = []
    widths: list[Int] = []
    size = 0
    for number, (source, target) in enumerate(pairs, 1):
        aligned = np.array([EMPTY, *source], np.int64) * vocabulary_size
        keys.append(np.tile(aligned, len(target)) + np.repeat(np.array(target, np.int64), len(aligned)))
        widths.append(np.full(len(target), len(aligned)))
        size += len(keys[-1])
        if size >= block_cells or number == len(pairs):
            different, cells = np.unique(np.concatenate(keys), return_inverse=True)
            yield different, cells, np.concatenate(widths)
            keys, widths, size = [], [], 0
