"""The data of scripts/starter.py: a compressed form of prepared data, and the pairs of teacher and student."""

import io
import json
import lzma
import shutil
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import numpy as np

from mt.arrays import load_arrays, save_arrays
from mt.config import Recipe
from mt.data.dataset import ParallelDataset, PreparedData, Ragged
from mt.data.preparation import prepared_digest
from mt.tokenizer import Tokenizer
from mt.vocabulary import load_tokenizer

PARTS = ("train", "valid")
SIDES = ("source", "target")

DROPOUT = 0.1
"""BPE-dropout rate of the sources of half of the training pairs."""

DISTILLED = 0.6
"""Share of the student's training pairs whose target is a translation of the teacher."""


def pack(prepared: Path, out: Path) -> None:
    """Write prepared data to `out` in a compressed form: each text of a language once, then the texts of each pair."""
    out.mkdir(parents=True)
    meta = json.loads((prepared / "meta.json").read_text(encoding="utf-8"))
    ids: dict[str, dict[bytes, int]] = {}  # the number of each text, by language
    arrays: dict[str, np.ndarray] = {}
    for part in PARTS:
        data = ParallelDataset.load(prepared / part)
        arrays[f"{part}.direction"], arrays[f"{part}.corpus"] = data.direction, data.corpus
        for number, side in enumerate(SIDES):
            languages = [direction.split("-")[number] for direction in meta["directions"]]
            texts = getattr(data, f"{side}_text")
            content, offsets = texts.data[:].tobytes(), texts.offsets.tolist()
            numbers = np.empty(len(data), np.int64)
            for index, direction in enumerate(data.direction.tolist()):
                known = ids.setdefault(languages[direction], {})
                numbers[index] = known.setdefault(content[offsets[index] : offsets[index + 1]], len(known))
            arrays[f"{part}.{side}"] = np.diff(numbers, prepend=0).astype(np.int32)  # mostly 1
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)  # type: ignore[arg-type]
    files = {f"{language}.txt.xz": b"\n".join(known) for language, known in ids.items()}
    files["pairs.npz.xz"] = buffer.getvalue()
    with ThreadPoolExecutor() as pool:
        for name, compressed in zip(files, pool.map(lzma.compress, files.values()), strict=True):
            (out / name).write_bytes(compressed)
            print(f"{name}: {len(files[name]):,} bytes, compressed {len(compressed):,}", flush=True)
    for name in ("meta.json", *load_tokenizer(prepared).files):
        shutil.copy(prepared / name, out / name)
    shutil.copy(prepared / "dropped.tsv", out / "dropped.tsv")


def expand(packed: Path, folder: Path, threads: int) -> None:
    """Write the prepared data of a pack to `folder`, which must not exist. The digest is checked."""
    temporary = folder.with_name(folder.name + ".part")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(parents=True)
    tokenizer = load_tokenizer(packed)
    meta = json.loads((packed / "meta.json").read_text(encoding="utf-8"))
    files = {path.name.removesuffix(".xz"): path for path in packed.glob("*.xz")}
    with ThreadPoolExecutor() as pool:
        contents = dict(
            zip(files, pool.map(lambda path: lzma.decompress(path.read_bytes()), files.values()), strict=True)
        )
    arrays = np.load(io.BytesIO(contents.pop("pairs.npz")))
    texts = {name.removesuffix(".txt"): content.split(b"\n") for name, content in contents.items()}
    dtype = np.uint16 if len(tokenizer) <= 1 << 16 else np.int32
    encoded = {
        language: [
            np.array(ids, dtype).tobytes() for ids in tokenizer.encode_many([t.decode() for t in known], threads)
        ]
        for language, known in texts.items()
    }
    for name, content in tokenizer.files.items():
        (temporary / name).write_bytes(content)
    shutil.copy(packed / "dropped.tsv", temporary / "dropped.tsv")
    for part in PARTS:
        (temporary / part).mkdir()
        directions = arrays[f"{part}.direction"]
        for name in ("direction", "corpus"):
            np.save(temporary / part / f"{name}.npy", arrays[f"{part}.{name}"])
        for number, side in enumerate(SIDES):
            languages = [direction.split("-")[number] for direction in meta["directions"]]
            numbers = list(zip(directions.tolist(), np.cumsum(arrays[f"{part}.{side}"]).tolist(), strict=True))
            for name, known, kind in ((f"{side}_text", texts, np.uint8), (side, encoded, dtype)):
                items = [known[languages[direction]][index] for direction, index in numbers]
                write_ragged(temporary / part / name, items, kind)
    if (digest := prepared_digest(temporary)) != meta["digest"]:
        print(f"the digest of the expanded data is {digest}, that of the packed data {meta['digest']}", flush=True)
    shutil.copy(packed / "meta.json", temporary / "meta.json")
    temporary.rename(folder)


def write_ragged(path: Path, items: Sequence[bytes], dtype: type[np.generic]) -> None:
    lengths = np.fromiter(map(len, items), np.int64, len(items)) // np.dtype(dtype).itemsize
    np.save(path.with_name(path.name + ".offsets.npy"), np.concatenate(([0], np.cumsum(lengths))))
    np.save(path.with_name(path.name + ".data.npy"), np.frombuffer(b"".join(items), dtype))


class RaggedArray(Ragged):
    """Sequences of different lengths in memory."""

    def __init__(self, offsets: np.ndarray, data: np.ndarray) -> None:
        self.offsets, self.data = offsets, data

    @classmethod
    def of(cls, items: Sequence[Sequence[int]], dtype: Any) -> "RaggedArray":
        lengths = np.fromiter(map(len, items), np.int64, len(items))
        offsets = np.concatenate(([0], np.cumsum(lengths)))
        return cls(offsets, np.fromiter(chain.from_iterable(items), dtype, int(offsets[-1])))

    @classmethod
    def concatenated(cls, first: Ragged, second: Ragged) -> "RaggedArray":
        offsets = np.concatenate((first.offsets, second.offsets[1:] + first.offsets[-1]))
        return cls(offsets, np.concatenate((first.data, second.data)))

    @classmethod
    def selected(cls, ragged: Ragged, indices: np.ndarray) -> "RaggedArray":
        data, lengths = ragged.take(indices)
        return cls(np.concatenate(([0], np.cumsum(lengths))), data)


def with_dropout(data: ParallelDataset, tokenizer: Tokenizer, threads: int) -> RaggedArray:
    """Return the sources of `data`, encoded with BPE-dropout."""
    content, offsets = data.source_text.data[:].tobytes(), data.source_text.offsets.tolist()
    texts = [content[begin:end].decode() for begin, end in pairwise(offsets)]
    encoded = tokenizer.encode_many(texts, threads, DROPOUT)
    return RaggedArray.of(encoded, data.source.data.dtype)


def joined(first: ParallelDataset, second: ParallelDataset, corpora: int) -> ParallelDataset:
    """Return the pairs of both datasets. The corpora of `second` get the numbers from `corpora` on."""
    return ParallelDataset(
        source=RaggedArray.concatenated(first.source, second.source),
        target=RaggedArray.concatenated(first.target, second.target),
        source_text=RaggedArray.concatenated(first.source_text, second.source_text),
        target_text=RaggedArray.concatenated(first.target_text, second.target_text),
        direction=np.concatenate((first.direction, second.direction)),
        corpus=np.concatenate((first.corpus, second.corpus + corpora)),
    )


def with_corpora(recipe: Recipe, first: float, second: float) -> Recipe:
    """Return `recipe` with each training corpus twice: with `first` times and with `second` times its weight."""
    train = tuple(
        corpus.model_copy(update={"weight": max(0.001, corpus.weight * factor), "variants": 0.0})
        for factor in (first, second)
        for corpus in recipe.data.train
    )
    return recipe.model_copy(update={"data": recipe.data.model_copy(update={"train": train})})


def distillation_order(recipe: Recipe, data: ParallelDataset) -> np.ndarray:
    """Return the rows of `data` in a random order in which pairs of corpora with large weights are earlier."""
    weights = np.array([corpus.weight for corpus in recipe.data.train])[data.corpus]
    keys = np.random.default_rng(recipe.seed).random(len(data)) ** (1 / weights)
    fits = np.maximum(data.source.lengths, data.target.lengths) < recipe.data.max_tokens - 8
    order = np.argsort(-keys)
    fitting: np.ndarray = order[fits[order]]
    return fitting


def save_translations(path: Path, results: Sequence[tuple[int, Sequence[int]]]) -> None:
    if results:
        targets = RaggedArray.of([tokens for _, tokens in results], np.int32)
        rows = np.array([row for row, _ in results], np.int64)
        save_arrays(path, {"rows": rows, "offsets": targets.offsets, "data": targets.data})


def student_data(
    recipe: Recipe, data: PreparedData, dropout: RaggedArray, folder: Path
) -> tuple[Recipe, PreparedData, int]:
    """Return recipe and data of the student: the pairs of the corpora, then those with the teacher's translations."""
    original = replace(data.train, source=dropout)
    parts = [load_arrays(path) for path in sorted((folder / "distilled").glob("*.safetensors"))]
    if not parts:
        return recipe, replace(data, train=original), 0
    rows = np.concatenate([np.asarray(part["rows"]) for part in parts])
    targets = RaggedArray(np.zeros(1, np.int64), np.empty(0, data.train.target.data.dtype))
    for part in parts:
        ids = np.asarray(part["data"]).astype(data.train.target.data.dtype)
        targets = RaggedArray.concatenated(targets, RaggedArray(np.asarray(part["offsets"]), ids))
    lengths, expected = targets.lengths, data.train.target.lengths[rows]
    good = np.flatnonzero((lengths > 0) & (lengths <= 2 * expected + 5) & (2 * lengths + 5 >= expected))
    rows, targets = rows[good], RaggedArray.selected(targets, good)
    translated = ParallelDataset(
        source=RaggedArray.selected(data.train.source, rows),
        target=targets,
        source_text=RaggedArray.selected(data.train.source_text, rows),
        target_text=RaggedArray.selected(data.train.target_text, rows),  # of the corpus
        direction=data.train.direction[rows],
        corpus=data.train.corpus[rows],
    )
    weights = np.array([corpus.weight for corpus in recipe.data.train])
    share = weights[translated.corpus].sum() / weights[data.train.corpus].sum()
    factor = min(2.0, DISTILLED / share)
    train = joined(original, translated, len(weights))
    return with_corpora(recipe, 1 - factor * share, factor), replace(data, train=train), len(rows)
