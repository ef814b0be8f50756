"""Parallel text on disk: encoded once, memory-mapped, so that a corpus larger than memory trains as a small one does.

A prepared folder holds the tokenizer, `meta.json` and a folder each for `train`, `valid` and, if a model is tuned, each
corpus that is watched, `watch-0` and so on. Its name carries a fingerprint of all that went into it, so that a changed
recipe, corpus or model to tune is never served stale data.
"""

import hashlib
import json
import math
import shutil
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path

import numpy as np

from mt.config import CorpusConfig, Recipe
from mt.data.cleaning import Cleaner
from mt.data.corpus import Pair, read_alone, read_parallel, read_tsv
from mt.errors import DataError, problems
from mt.locks import waited_for
from mt.tokenizer import Tokenizer, load_tokenizer, train_tokenizer

VERSION = 3  # of what `prepare` writes: part of the fingerprint
CHUNK = 20_000  # pairs encoded at a time

Progress = Callable[[str, int], None]


class Ragged:
    """Sequences of different lengths in one memory-mapped array: item i is data[offsets[i] : offsets[i + 1]]."""

    def __init__(self, path: Path) -> None:
        """`path` without its suffixes `.data.npy` and `.offsets.npy`."""
        self.offsets = np.load(path.with_name(path.name + ".offsets.npy"), mmap_mode="r")
        self.data = np.load(path.with_name(path.name + ".data.npy"), mmap_mode="r")

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, index: int) -> np.ndarray:
        item: np.ndarray = self.data[self.offsets[index] : self.offsets[index + 1]]
        return item

    @property
    def lengths(self) -> np.ndarray:
        """Lengths of all items, [N]."""
        return np.diff(self.offsets)


class RaggedWriter:
    """Appends sequences to disk; `close` gives them the form that `Ragged` maps."""

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
    """Pairs as ids and as text. `direction[i]` indexes the recipe's directions, `corpus[i]` this part's corpora.

    Those of a language model have empty sources.
    """

    source: Ragged
    target: Ragged
    source_text: Ragged
    target_text: Ragged
    direction: np.ndarray
    corpus: np.ndarray

    @classmethod
    def load(cls, folder: Path) -> "ParallelDataset":
        return cls(
            source=Ragged(folder / "source"),
            target=Ragged(folder / "target"),
            source_text=Ragged(folder / "source_text"),
            target_text=Ragged(folder / "target_text"),
            direction=np.load(folder / "direction.npy"),
            corpus=np.load(folder / "corpus.npy"),
        )

    def __len__(self) -> int:
        return len(self.direction)

    def texts(self, side: str, indices: Iterable[int]) -> list[str]:
        """The text of the pairs `indices`, of `source` or `target`."""
        ragged = self.source_text if side == "source" else self.target_text
        return [ragged[int(index)].tobytes().decode() for index in indices]


@dataclass(frozen=True)
class Prepared:
    """A prepared folder, loaded."""

    folder: Path
    tokenizer: Tokenizer
    train: ParallelDataset
    valid: ParallelDataset
    meta: dict[str, object]
    """`digest` is that of all of it: pairs, their order, tokenizer."""
    watch: dict[str, ParallelDataset] = field(default_factory=dict)
    """By the path that the recipe gives."""


def read_corpus(corpus: CorpusConfig, root: Path, direction: str) -> Iterator[Pair]:
    """The pairs of one corpus in a direction; nothing where it is for others, or its columns lack a language of it.

    If that is one language alone, they have no sources.
    """
    if corpus.directions and direction not in corpus.directions:
        return
    if "-" not in direction:
        if not corpus.columns:
            yield from read_alone(corpus.file(root, direction))
        elif direction in corpus.columns:
            yield from read_tsv(root / corpus.path, None, corpus.columns.index(direction))
        return
    source, target = direction.split("-")
    if not corpus.columns:
        yield from read_parallel(corpus.file(root, source), corpus.file(root, target))
    elif source in corpus.columns and target in corpus.columns:
        yield from read_tsv(root / corpus.path, corpus.columns.index(source), corpus.columns.index(target))


def corpus_files(recipe: Recipe) -> list[Path]:
    """Every file that training and validation read. Raises DataError naming all that are missing, test sets too."""

    def files_of(*parts: tuple[CorpusConfig, ...]) -> list[Path]:
        corpora = [corpus for part in parts for corpus in part]
        root, directions = recipe.data.root, recipe.data.directions
        return sorted({corpus.file(root, each) for corpus in corpora for each in corpus.languages(directions)})

    files = files_of(recipe.data.train, recipe.data.valid, _watched(recipe))
    missing = [str(file) for file in [*files, *files_of(recipe.data.test)] if not file.is_file()]
    if missing:
        raise DataError(
            problems("these files of the recipe are missing", missing)
            + "\naccepted: the files under data.root (or MT_DATA); scripts/fetch_data.py brings the public ones"
        )
    return files


def prepared_folder(recipe: Recipe, under: Path) -> Path:
    """Where a recipe's prepared data lies: its name, and a fingerprint of its settings and files.

    Raises DataError for missing files, TokenizerError if the model to tune has no tokenizer that can be loaded.
    """
    unmixed = {part: {"__all__": {"weight"}} for part in ("train", "valid")}  # weights count as batches are made
    data = recipe.data.model_dump_json(include={"root", "directions", "train", "valid"}, exclude=unmixed)
    tokenizer = recipe.tokenizer.model_dump_json()
    if recipe.tuning:
        watched = recipe.tuning.model_dump_json(include={"watch"})
        tokenizer = f"{load_tokenizer(recipe.tuning.model).digest} {watched}"
    described = f"{VERSION} {data} {recipe.cleaning.model_dump_json()} {tokenizer}"
    files = [f"{file.name} {file.stat().st_size} {file.stat().st_mtime_ns}" for file in corpus_files(recipe)]
    digest = hashlib.sha256("\n".join([described, *files]).encode()).hexdigest()
    return under / f"{recipe.run_name}-{digest[:12]}"


def prepare(recipe: Recipe, under: Path, threads: int = 1, progress: Progress = lambda stage, pairs: None) -> Path:
    """Read, clean, train the tokenizer and encode; returns the prepared folder, at once if it is there already.

    `progress` hears the stage and the pairs done. Raises DataError for a corpus that cannot be used.
    """
    folder = prepared_folder(recipe, under)
    if folder.is_dir():
        return folder
    under.mkdir(parents=True, exist_ok=True)
    with waited_for(folder):
        if not folder.is_dir():  # nor has another process made it meanwhile
            aside = folder.with_name(folder.name + ".part")
            shutil.rmtree(aside, ignore_errors=True)
            try:
                _write_prepared(recipe, aside, threads, progress)
            except BaseException:
                shutil.rmtree(aside, ignore_errors=True)
                raise
            aside.rename(folder)
    return folder


def load_prepared(folder: Path) -> Prepared:
    """Map a folder that `prepare` made."""
    meta = json.loads((folder / "meta.json").read_text(encoding="utf-8"))
    return Prepared(
        folder,
        load_tokenizer(folder),
        ParallelDataset.load(folder / "train"),
        ParallelDataset.load(folder / "valid"),
        meta,
        {path: ParallelDataset.load(folder / f"watch-{n}") for n, path in enumerate(meta.get("watch", ()))},
    )


def _watched(recipe: Recipe) -> tuple[CorpusConfig, ...]:
    return recipe.tuning.watch if recipe.tuning else ()


def _write_prepared(recipe: Recipe, folder: Path, threads: int, progress: Progress) -> None:
    dropped: dict[str, list[dict[str, object]]] = {}
    parts = {"train": recipe.data.train, "valid": recipe.data.valid}
    watched = _watched(recipe)
    parts |= {f"watch-{number}": (corpus,) for number, corpus in enumerate(watched)}
    for part, corpora in parts.items():
        (folder / part).mkdir(parents=True)
        _write_text(recipe, corpora, folder / part, dropped if part == "train" else None, progress)
    tokenizer = load_tokenizer(recipe.tuning.model) if recipe.tuning else _train_tokenizer(recipe, folder, threads)
    for name, content in tokenizer.files.items():
        (folder / name).write_bytes(content)
    for part in parts:
        _write_ids(folder / part, tokenizer, threads, partial(progress, f"encode {part}"))
    meta = {
        "directions": list(recipe.data.directions),
        "vocabulary_size": len(tokenizer),
        "pairs": {part: len(np.load(folder / part / "direction.npy")) for part in parts},
        "watch": [corpus.path for corpus in watched],
        "digest": _digest(folder),
        "dropped": dropped,
    }
    (folder / "meta.json").write_text(json.dumps(meta, indent=2, ensure_ascii=False), encoding="utf-8")


def _digest(folder: Path) -> str:
    """Of all files in it, by their names and contents."""
    found = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        with path.open("rb") as file:
            content = hashlib.file_digest(file, "sha256").hexdigest()
        found.update(f"{path.relative_to(folder).as_posix()} {content}\n".encode())
    return found.hexdigest()


def _train_tokenizer(recipe: Recipe, folder: Path, threads: int) -> Tokenizer:
    """Of the text in `folder/train`."""
    return Tokenizer(
        train_tokenizer(
            _tokenizer_sentences(folder / "train", recipe.tokenizer.training_sentences),
            vocabulary_size=recipe.tokenizer.vocabulary_size,
            languages=recipe.data.languages if len(recipe.data.directions) > 1 else (),
            marks=recipe.data.marks,
            nfkc=recipe.tokenizer.nfkc,
            threads=threads,
        )
    )


def _write_text(
    recipe: Recipe,
    corpora: Sequence[CorpusConfig],
    folder: Path,
    dropped: dict[str, list[dict[str, object]]] | None,
    progress: Progress,
) -> None:
    """The pairs of every corpus and direction as text; with `dropped`, cleaned, and what was dropped and why in it."""
    writers = [RaggedWriter(folder / f"{side}_text", np.uint8) for side in ("source", "target")]
    directions, origins = array("H"), array("H")
    none: list[str] = []  # directions without a pair
    for index, direction in enumerate(recipe.data.directions):
        cleaner = Cleaner(recipe.cleaning, *direction.split("-"))
        before = len(directions)
        for number, corpus in enumerate(corpora):
            pairs = read_corpus(corpus, recipe.data.root, direction)
            for pair in pairs if dropped is None else cleaner.clean(pairs):
                for writer, text in zip(writers, (pair.source, pair.target), strict=True):
                    writer.append([np.frombuffer(text.encode(), np.uint8)])
                directions.append(index)
                origins.append(number)
                if len(directions) % CHUNK == 0:
                    progress(f"read {folder.name}", len(directions))
        if len(directions) == before:
            none.append(direction)
        if dropped is not None:
            dropped[direction] = [asdict(row) for row in cleaner.report()]
    if none and (folder.name in ("train", "valid") or not directions):
        raise DataError(
            f"no {folder.name} pairs are left for {', '.join(none)}; accepted: a corpus that holds each language"
        )
    for writer in writers:
        writer.close()
    np.save(folder / "direction.npy", np.array(directions))
    np.save(folder / "corpus.npy", np.array(origins))


def _tokenizer_sentences(folder: Path, limit: int) -> Iterator[str]:
    """Up to `limit` sentences, evenly spaced over both sides, or the one that has text."""
    sides = [side for side in (Ragged(folder / "source_text"), Ragged(folder / "target_text")) if len(side.data)]
    for ragged in sides:
        stride = max(1, math.ceil(len(sides) * len(ragged) / limit))
        for index in range(0, len(ragged), stride):
            yield ragged[index].tobytes().decode()


def _write_ids(folder: Path, tokenizer: Tokenizer, threads: int, progress: Callable[[int], None]) -> None:
    for side, own in (("source", tokenizer), ("target", tokenizer.target)):
        dtype = np.uint16 if len(own) <= 1 << 16 else np.int32
        texts = Ragged(folder / f"{side}_text")
        writer = RaggedWriter(folder / side, dtype)
        indices = iter(range(len(texts)))
        while chunk := list(islice(indices, CHUNK)):
            encoded = own.encode_many([texts[index].tobytes().decode() for index in chunk], threads)
            writer.append(np.array(ids, dtype) for ids in encoded)
            progress(chunk[-1] + 1)
        writer.close()
