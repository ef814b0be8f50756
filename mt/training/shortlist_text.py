"""Parallel text from which the shortlist of a model is created, and the pairs on which it is compared."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np

from mt.data.corpus import read_tsv
from mt.data.dataset import PreparedData
from mt.data.translation_table import FlatSequences, Sequences
from mt.description import CalibrationPair
from mt.errors import DataError
from mt.languages import Direction, DirectionSet
from mt.tokenizer import Tokenizer

ALIGNED_PAIRS = 100_000
"""Default number of pairs of a direction that are aligned: about a minute on one core."""

ALIGNED_IN_TOTAL = 400_000
"""Number of pairs of all directions that are aligned at the end of a training."""


@dataclass(frozen=True)
class DirectionText:
    """Parallel text of one direction, as token ids. `rows` are the indices of the pairs to align."""

    direction: Direction
    source: Sequences
    target: Sequences
    rows: np.ndarray


def prepared_text(
    tokenizer: Tokenizer, data: PreparedData, known: DirectionSet, directions: DirectionSet, pairs: int = ALIGNED_PAIRS
) -> list[DirectionText]:
    """Return at most `pairs` evenly spaced training pairs of each of `directions`.

    `known` are the directions of the recipe of `data`; directions that it lacks are left out. If `tokenizer` differs
    from the tokenizer of `data`, the pairs are encoded again.
    """
    texts = []
    for direction in (each for each in directions if each in known):
        rows = np.flatnonzero(data.train.direction == list(known).index(direction))
        rows = rows[:: max(1, -(-len(rows) // pairs))]
        if tokenizer.digest == data.tokenizer.digest:
            texts.append(DirectionText(direction, data.train.source, data.train.target, rows))
        else:
            sides = (data.train.texts(side, rows) for side in ("source", "target"))
            texts.append(_encoded(tokenizer, direction, *sides))
    return texts


def corpus_text(
    tokenizer: Tokenizer,
    files: Sequence[tuple[str, str]],
    directions: DirectionSet,
    held_out: int,
    pairs: int = ALIGNED_PAIRS,
) -> tuple[list[DirectionText], list[CalibrationPair]]:
    """Return at most `pairs` evenly spaced pairs of tab-separated files, and about `held_out` other pairs.

    Each file has a path and the languages of its columns, such as "en,de". It is used in each of `directions` whose
    languages it has; the pairs that are held out are the same in both directions. Raises: DataError if a file cannot be
    used, or if the files lack one of `directions`.
    """
    texts, others = [], []
    for direction in directions:
        chosen = []
        columns = [(Path(path), languages.split(",")) for path, languages in files]
        columns = [(path, tags) for path, tags in columns if direction.source in tags and direction.target in tags]
        if not columns:
            raise DataError(f"no corpus has {direction}; accepted: files with the languages of {directions}")
        for path, tags in columns:
            places = tags.index(direction.source), tags.index(direction.target)
            total = sum(1 for _ in read_tsv(path, *places))
            step = max(1, -(-total * len(columns) // pairs))
            chosen += [pair for pair in islice(read_tsv(path, *places), 0, None, step) if pair.source.strip()]
        every = max(2, len(chosen) * len(directions) // max(held_out, 1))
        others += [
            CalibrationPair(direction=direction, source=pair.source, target=pair.target) for pair in chosen[::every]
        ]
        kept = [pair for number, pair in enumerate(chosen) if number % every]
        sides = [pair.source for pair in kept], [pair.target for pair in kept]
        texts.append(_encoded(tokenizer, direction, *sides))
    return texts, others


def _encoded(
    tokenizer: Tokenizer, direction: Direction, sources: Sequence[str], targets: Sequence[str]
) -> DirectionText:
    """Encode the pairs of one direction."""
    source = FlatSequences.from_lists(tokenizer.encode_many(sources))
    target = FlatSequences.from_lists(tokenizer.target.encode_many(targets))
    return DirectionText(direction, source, target, np.arange(len(sources)))
