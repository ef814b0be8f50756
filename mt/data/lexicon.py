"""Which target token translates which source token, learnt from pairs: IBM model 1, in bounded memory.

Brown et al. 1993, "The Mathematics of Statistical Machine Translation", section 4: each target token comes from one
source token, or from the empty word, whichever it is of them as likely beforehand; its translations are learnt by
expectation maximisation (equations 14 and 15).
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from mt.tokenizer import PAD

CELLS_A_BLOCK = 4_000_000
"""Pairs of a source and a target token that are worked on together: about 300 MB."""

MOST_ENTRIES = 40_000_000
"""Of a table while it is learnt; it is 16 bytes an entry, and several times that while one is made of two."""

EMPTY = PAD
"""Stands for the empty word: no text has it."""

Whole = NDArray[np.int64]
Real = NDArray[np.float64]


class Sequences(Protocol):
    """Ids of many sentences: sentence i is data[offsets[i] : offsets[i + 1]]."""

    @property
    def offsets(self) -> np.ndarray: ...
    @property
    def data(self) -> np.ndarray: ...


@dataclass(frozen=True)
class Flat:
    """Sequences in memory."""

    data: np.ndarray
    offsets: np.ndarray

    @classmethod
    def of(cls, sentences: Iterable[Sequence[int]]) -> "Flat":
        arrays = [np.asarray(sentence, np.int32) for sentence in sentences]
        offsets = np.cumsum([0, *map(len, arrays)], dtype=np.int64)
        return cls(np.concatenate([np.empty(0, np.int32), *arrays]), offsets)

    @classmethod
    def chosen(cls, sequences: Sequences, indices: np.ndarray) -> "Flat":
        """These sentences, in this order."""
        starts = np.asarray(sequences.offsets[indices], np.int64)
        lengths = np.asarray(sequences.offsets[indices + 1], np.int64) - starts
        offsets = np.concatenate(([0], np.cumsum(lengths)))
        return cls(sequences.data[np.repeat(starts - offsets[:-1], lengths) + np.arange(offsets[-1])], offsets)


@dataclass(frozen=True)
class Lexicon:
    """p(target | source) of those pairs of tokens that sentences have in common, and how often each target occurs.

    Entry i is of source keys[i] // V and target keys[i] % V; keys ascend. The empty word is `EMPTY`.
    """

    vocabulary_size: int
    keys: Whole  # [E]
    probabilities: Real  # [E]
    frequencies: Whole  # [V]

    def probability(self, source: int, target: int) -> float:
        key = source * self.vocabulary_size + target
        place = int(np.searchsorted(self.keys, key))
        return float(self.probabilities[place]) if place < len(self.keys) and self.keys[place] == key else 0.0

    def best(self, count: int, besides: Sequence[int] = ()) -> tuple[Whole, Whole]:
        """The `count` likeliest targets of each source that are not among `besides`: sources [M], targets [M].

        Sources ascend; the targets of each come best first.
        """
        sources, targets = np.divmod(self.keys, self.vocabulary_size)
        kept = (sources != EMPTY) & ~np.isin(targets, np.asarray(besides, np.int64))
        sources, targets, probabilities = sources[kept], targets[kept], self.probabilities[kept]
        order = np.lexsort((targets, -probabilities, sources))
        sources, targets = sources[order], targets[order]
        rank = np.arange(len(sources)) - np.searchsorted(sources, sources)
        return sources[rank < count], targets[rank < count]

    def frequent(self, count: int) -> Whole:
        """The `count` most frequent targets, the most frequent first; fewer if no more occur."""
        order = np.argsort(-self.frequencies, kind="stable")[:count]
        return order[self.frequencies[order] > 0]


def learn_lexicon(
    source: Sequences,
    target: Sequences,
    indices: np.ndarray,
    vocabulary_size: int,
    iterations: int = 5,
    progress: Callable[[int], None] = lambda pairs: None,
) -> Lexicon:
    """A lexicon of the pairs `indices`, read once an iteration; `progress` is told how many pairs were read.

    Where more than MOST_ENTRIES pairs of tokens occur together, the least likely are forgotten.
    """
    keys, counts = np.empty(0, np.int64), np.empty(0)
    frequencies = np.zeros(vocabulary_size, np.int64)
    for chosen in _blocks(source, target, indices):
        block = _Block.of(Flat.chosen(source, chosen), Flat.chosen(target, chosen), vocabulary_size)
        frequencies += np.bincount(block.targets, minlength=vocabulary_size)
        own = block.expected(np.ones(len(block.keys)))  # at first all translations are as likely
        keys, counts = _merged((keys, counts), (block.keys, own))
        progress(len(chosen))
    probabilities = _normalised(keys, counts, vocabulary_size)
    for _ in range(iterations - 1):
        counts = np.zeros(len(keys))
        for chosen in _blocks(source, target, indices):
            block = _Block.of(Flat.chosen(source, chosen), Flat.chosen(target, chosen), vocabulary_size)
            places = np.minimum(np.searchsorted(keys, block.keys), len(keys) - 1)
            known = keys[places] == block.keys
            counts[places[known]] += block.expected(np.where(known, probabilities[places], 0.0))[known]
            progress(len(chosen))
        probabilities = _normalised(keys, counts, vocabulary_size)
    return Lexicon(vocabulary_size, keys, probabilities, frequencies)


@dataclass(frozen=True)
class _Block:
    """Sentence pairs as cells: for each target token in turn, one for the empty word and for each source token."""

    keys: Whole  # of the pairs of tokens that occur, ascending
    places: Whole  # of each cell's pair of tokens among them
    starts: Whole  # the first cell of each target token
    widths: Whole  # cells of each target token
    targets: np.ndarray

    @classmethod
    def of(cls, source: Flat, target: Flat, vocabulary_size: int) -> "_Block":
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

    def expected(self, probabilities: Real) -> Real:
        """How often each of `keys` was the translation that was made, if `probabilities` are theirs."""
        if len(self.keys) == 0:
            return np.empty(0)
        cells = probabilities[self.places]
        totals = np.add.reduceat(cells, self.starts)
        cells /= np.repeat(np.where(totals > 0, totals, 1.0), self.widths)
        return np.bincount(self.places, cells, len(self.keys)).astype(np.float64, copy=False)


def _blocks(source: Sequences, target: Sequences, indices: np.ndarray) -> Iterator[np.ndarray]:
    """The indices, cut so that none has many more than CELLS_A_BLOCK cells."""
    lengths = [np.asarray(each.offsets[indices + 1], np.int64) - each.offsets[indices] for each in (source, target)]
    cells = np.cumsum((lengths[0] + 1) * lengths[1])
    at = 0
    while at < len(indices):
        done = cells[at - 1] if at else 0
        end = max(at + 1, int(np.searchsorted(cells, done + CELLS_A_BLOCK, "right")))
        yield indices[at:end]
        at = end


def _merged(one: tuple[Whole, Real], other: tuple[Whole, Real]) -> tuple[Whole, Real]:
    keys, places = np.unique(np.concatenate((one[0], other[0])), return_inverse=True)
    counts: Real = np.bincount(places, np.concatenate((one[1], other[1])), len(keys)).astype(np.float64, copy=False)
    if len(keys) > MOST_ENTRIES:
        kept = np.sort(np.argpartition(-counts, MOST_ENTRIES)[:MOST_ENTRIES])
        keys, counts = keys[kept], counts[kept]
    return keys, counts


def _normalised(keys: Whole, counts: Real, vocabulary_size: int) -> Real:
    sources = keys // vocabulary_size
    totals = np.bincount(sources, counts, vocabulary_size)
    return counts / np.where(totals > 0, totals, 1.0)[sources]
