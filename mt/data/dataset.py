"""Encoded parallel text in memory-mapped files, so that a corpus may be larger than memory.

A prepared folder is written by mt/data/preparation.py. It contains the tokenizer, `meta.json`, the list of dropped
pairs, and the folders `train` and `valid`. If a model is fine-tuned, it also contains a folder for each monitored
corpus: `monitor-0`, `monitor-1` and so on.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from mt.tokenizer import Tokenizer
from mt.vocabulary import load_tokenizer


class Ragged:
    """Sequences of different lengths in one memory-mapped array: item i is data[offsets[i] : offsets[i + 1]]."""

    def __init__(self, path: Path) -> None:
        """Memory-map the files `path`.data.npy and `path`.offsets.npy."""
        self.offsets = np.load(path.with_name(path.name + ".offsets.npy"), mmap_mode="r")
        self.data = np.load(path.with_name(path.name + ".data.npy"), mmap_mode="r")

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, index: int) -> np.ndarray:
        item: np.ndarray = self.data[self.offsets[index] : self.offsets[index + 1]]
        return item

    def take(self, indices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the elements of the items `indices`, one item after another, and the length of each of these items."""
        begins = np.asarray(self.offsets[indices])
        lengths = self.offsets[indices + 1] - begins
        places = np.repeat(begins - np.cumsum(lengths) + lengths, lengths) + np.arange(lengths.sum())
        return np.asarray(self.data[places]), np.asarray(lengths)

    def text(self, index: int) -> str:
        """Return item `index` as text. Its elements must be UTF-8 bytes."""
        return self[index].tobytes().decode()

    @property
    def lengths(self) -> np.ndarray:
        return np.diff(self.offsets)


class RaggedWriter:
    """Writer of the two files that `Ragged` reads. The files exist after `close`."""

    def __init__(self, path: Path, dtype: type[np.generic]) -> None:
        self.path = path
        self.dtype = dtype
        self.lengths: list[int] = []
        self._raw = path.with_name(path.name + ".raw")
        self._file = self._raw.open("wb")

    def append(self, items: Iterable[np.ndarray]) -> None:
        for item in items:
            self.lengths.append(len(item))
            self._file.write(item.astype(self.dtype, copy=False).tobytes())

    def append_text(self, text: str) -> None:
        self.append([np.frombuffer(text.encode(), np.uint8)])

    def close(self) -> None:
        self._file.close()
        offsets = np.concatenate(([0], np.cumsum(self.lengths, dtype=np.int64)))
        np.save(self.path.with_name(self.path.name + ".offsets.npy"), offsets)
        total = int(offsets[-1])
        raw = np.memmap(self._raw, self.dtype, "r", shape=(total,)) if total else np.empty(0, self.dtype)
        np.save(self.path.with_name(self.path.name + ".data.npy"), raw)
        self._raw.unlink()


@dataclass(frozen=True)
class ParallelDataset:
    """Sentence pairs as token ids and as text.

    `direction[i]` is the index of the direction of pair i among the directions of the recipe. `corpus[i]` is the index
    of the corpus of pair i among the training or validation corpora of the recipe.
    """

    source: Ragged
    target: Ragged
    source_text: Ragged
    target_text: Ragged
    direction: np.ndarray
    corpus: np.ndarray

    @classmethod
    def load(cls, folder: Path) -> "ParallelDataset":
        names = ("source", "target", "source_text", "target_text")
        source, target, source_text, target_text = (Ragged(folder / name) for name in names)
        direction, corpus = np.load(folder / "direction.npy"), np.load(folder / "corpus.npy")
        return cls(source, target, source_text, target_text, direction, corpus)

    def __len__(self) -> int:
        return len(self.direction)

    def texts(self, side: str, indices: Iterable[int]) -> list[str]:
        """Return the sources or targets of the pairs with these indices. `side` is "source" or "target"."""
        ragged = self.source_text if side == "source" else self.target_text
        return [ragged.text(int(index)) for index in indices]


@dataclass(frozen=True)
class PreparedData:
    """The content of a folder that `mt.data.preparation.prepare` wrote."""

    folder: Path
    tokenizer: Tokenizer
    train: ParallelDataset
    valid: ParallelDataset
    meta: dict[str, Any]
    """Content of `meta.json`: counts, warnings, and a digest of the pairs (in their order) and the tokenizer."""
    monitor: dict[str, ParallelDataset] = field(default_factory=dict)
    """Monitored corpora, by the path that the recipe gives."""


def load_prepared(folder: Path) -> PreparedData:
    """Return the content of a folder that `mt.data.preparation.prepare` wrote."""
    meta = json.loads((folder / "meta.json").read_text(encoding="utf-8"))
    return PreparedData(
        folder,
        load_tokenizer(folder),
        ParallelDataset.load(folder / "train"),
        ParallelDataset.load(folder / "valid"),
        meta,
        {path: ParallelDataset.load(folder / f"monitor-{n}") for n, path in enumerate(meta["monitor"])},
    )
