"""Export of prepared text as plain files with one sentence or one tab-separated pair per line."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from mt.data.dataset import ParallelDataset, PreparedData
from mt.files import atomic_folder
from mt.languages import Direction


def export_text(data: PreparedData, folder: Path) -> None:
    """Write the tokenizer and the text of prepared data to `folder`. If `folder` exists, it is replaced.

    If the data has a direction and its reverse, such as en-de and de-en, only the pairs of the first of them are
    written, because both have the same pairs.
    """
    directions = [Direction.parse(text) for text in data.meta["directions"]]
    with atomic_folder(folder) as temporary:
        for name, content in data.tokenizer.files.items():
            (temporary / name).write_bytes(content)
        for index, direction in enumerate(directions):
            if direction.reversed not in directions[:index]:
                for part, dataset in (("train", data.train), ("valid", data.valid)):
                    _write_pairs(dataset, index, direction, temporary / f"{part}.{direction}")


def _write_pairs(dataset: ParallelDataset, index: int, direction: Direction, path: Path) -> None:
    """Write the pairs of `direction`, whose index is `index`, to two files `path`.LANGUAGE and to `path`.tsv."""
    rows = np.flatnonzero(dataset.direction == index)
    sides = [[" ".join(text.split()) for text in dataset.texts(side, rows)] for side in ("source", "target")]
    _write_lines(path.with_name(f"{path.name}.{direction.source}"), sides[0])
    _write_lines(path.with_name(f"{path.name}.{direction.target}"), sides[1])
    _write_lines(path.with_name(f"{path.name}.tsv"), map("\t".join, zip(*sides, strict=True)))


def _write_lines(path: Path, lines: Iterable[str]) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(f"{line}\n" for line in lines)
