"""Export of prepared text as plain files with one sentence or one tab-separated pair per line."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from mt.data.dataset import ParallelDataset, PreparedData
from mt.data_config import CorpusConfig
from mt.files import atomic_folder
from mt.languages import Direction


def export_text(data: PreparedData, corpora: Sequence[CorpusConfig], folder: Path, sample: int | None = None) -> None:
    """Write the tokenizer and the text of prepared data to `folder`. If `folder` exists, it is replaced.

    The pairs of the first of the training `corpora` are written to `train1.en-de.en` and `train1.en-de.de`, those of
    the second to `train2`, and so on. With `sample`, at most so many evenly spaced pairs of each corpus are also
    written, to `sample1`, `sample2` and so on. If the data has a direction and its reverse, such as en-de and de-en,
    only the pairs of the first of them are written, because both have the same pairs.
    """
    directions = [Direction.parse(text) for text in data.meta["directions"]]
    with atomic_folder(folder) as temporary:
        for name, content in data.tokenizer.files.items():
            (temporary / name).write_bytes(content)
        for index, direction in enumerate(directions):
            if direction.reversed in directions[:index]:
                continue
            for number, corpus in enumerate(corpora):
                if corpus.may_have(direction):
                    rows = np.flatnonzero((data.train.direction == index) & (data.train.corpus == number))
                    _write_pairs(data.train, rows, direction, temporary / f"train{number + 1}.{direction}")
                    if sample is not None:
                        chosen = rows[np.linspace(0, len(rows) - 1, min(sample, len(rows))).astype(int)]
                        _write_pairs(data.train, chosen, direction, temporary / f"sample{number + 1}.{direction}")
            rows, path = np.flatnonzero(data.valid.direction == index), temporary / f"valid.{direction}"
            sides = _write_pairs(data.valid, rows, direction, path)
            _write_lines(path.with_name(f"{path.name}.tsv"), map("\t".join, zip(*sides, strict=True)))


def _write_pairs(dataset: ParallelDataset, rows: np.ndarray, direction: Direction, path: Path) -> list[list[str]]:
    """Write the pairs `rows` of `dataset` to two files `path`.LANGUAGE. Return their sources and their targets."""
    sides = [[" ".join(text.split()) for text in dataset.texts(side, rows)] for side in ("source", "target")]
    for language, lines in zip((direction.source, direction.target), sides, strict=True):
        _write_lines(path.with_name(f"{path.name}.{language}"), lines)
    return sides


def _write_lines(path: Path, lines: Iterable[str]) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(f"{line}\n" for line in lines)
