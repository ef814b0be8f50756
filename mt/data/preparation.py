"""Preparation of parallel text: read, normalise, clean, split off validation pairs, train the tokenizer, encode.

The result is a folder whose name ends with a digest of the recipe, the corpora and the tokenizer of a model that is
fine-tuned. If one of these changes, the data is prepared again.
"""

import hashlib
import json
import math
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from mt.config import Recipe
from mt.data.cleaning import Cleaner, is_header
from mt.data.corpus import SentencePair, read_parallel, read_tsv
from mt.data.dataset import Ragged, RaggedWriter
from mt.data.language_check import LanguageSample, check_languages
from mt.data.translation_memory import read_memory
from mt.data.validation_split import split_validation
from mt.data.variants import with_variants
from mt.data_config import CorpusConfig, memory_format
from mt.errors import DataError, problems
from mt.files import file_digest, lock, locked_folder
from mt.languages import Direction
from mt.text.normalise import normalise_training_text
from mt.tokenizer import Tokenizer, train_tokenizer
from mt.vocabulary import load_tokenizer

VERSION = 5  # version of the folder's format, a part of the fingerprint
LEAKED_SHARE = 0.05  # of the validation sources: if more are in the training text, a warning says so
CHUNK = 20_000  # number of pairs that are encoded together
DROPPED = "dropped.tsv"
DROPPED_COLUMNS = ("file", "line", "direction", "reason", "source", "target")

OnStageProgress = Callable[[str, int], None]


def read_corpus(corpus: CorpusConfig, root: Path, direction: Direction) -> Iterator[SentencePair]:
    """Yield the pairs of a corpus in `direction`. `root` is the folder to which the path of the corpus is relative.

    Nothing is yielded if the corpus is restricted to other directions, or if no column has one of the languages.
    Raises: DataError if a file cannot be used.
    """
    source, target = direction.source, direction.target
    if corpus.directions and direction not in corpus.directions:
        return
    if memory_format(corpus.path):
        yield from read_memory(root / corpus.path, source, target)
    elif not corpus.columns:
        yield from read_parallel(corpus.file(root, source), corpus.file(root, target))
    elif corpus.may_have(direction):
        yield from read_tsv(root / corpus.path, corpus.columns.index(source), corpus.columns.index(target))


def corpus_files(recipe: Recipe) -> list[Path]:
    """Return all files of the training, validation and monitored corpora.

    Raises: DataError that lists all missing files, including those of test sets.
    """

    def files_of(*parts: tuple[CorpusConfig, ...]) -> list[Path]:
        corpora = [corpus for part in parts for corpus in part]
        return sorted({corpus.file(recipe.data.root, tag) for corpus in corpora for tag in _languages(corpus, recipe)})

    files = files_of(recipe.data.train, recipe.data.valid, _monitored(recipe))
    missing = [str(file) for file in [*files, *files_of(recipe.data.test)] if not file.is_file()]
    if missing:
        raise DataError(
            problems("files of the recipe are missing", missing)
            + "\naccepted: files below data.root (or MT_DATA); `mt-service fetch` downloads the public corpora"
        )
    return files


def _languages(corpus: CorpusConfig, recipe: Recipe) -> set[str]:
    """Return the languages of a corpus: those of its directions or, if it has none, those of the recipe."""
    if corpus.directions:
        return {*corpus.directions.sources, *corpus.directions.targets}
    return set(recipe.data.languages)


def prepared_folder(recipe: Recipe, parent: Path) -> Path:
    """Return the path of the folder with the prepared data of a recipe, below `parent`. The folder need not exist.

    Raises: DataError if files are missing, TokenizerError if the tokenizer of the model to fine-tune cannot be loaded.
    """
    mixing = {part: {"__all__": {"weight"}} for part in ("train", "valid")}  # not prepared: weights apply to batches
    keys = {"root", "directions", "train", "valid", "split_validation"}
    data = recipe.data.model_dump_json(include=keys, exclude=mixing)
    tokenizer = recipe.tokenizer.model_dump_json()
    if recipe.tuning:
        monitored = recipe.tuning.model_dump_json(include={"monitor"})
        tokenizer = f"{load_tokenizer(recipe.tuning.model).digest} {monitored}"
    elif recipe.tokenizer.model:
        tokenizer = load_tokenizer(recipe.tokenizer.model).digest
    seed = f" {recipe.seed}" if recipe.data.split_validation else ""
    settings = f"{VERSION} {data} {recipe.cleaning.model_dump_json()} {tokenizer}{seed}"
    files = [f"{file.name} {file.stat().st_size} {file.stat().st_mtime_ns}" for file in corpus_files(recipe)]
    digest = hashlib.sha256("\n".join([settings, *files]).encode()).hexdigest()
    return parent / f"{recipe.run_name}-{digest[:12]}"


def prepare(
    recipe: Recipe, parent: Path, threads: int = 1, progress: OnStageProgress = lambda stage, pairs: None
) -> Path:
    """Prepare the data of a recipe, unless this was done before, and return the path of the folder below `parent`.

    The folder gets its final name only when all content is on the disk. `progress` is called with the name of a step
    and the number of pairs that this step has processed so far. Raises: DataError if a corpus cannot be used.
    """
    folder = prepared_folder(recipe, parent)
    if folder.is_dir():
        return folder
    parent.mkdir(parents=True, exist_ok=True)
    with lock(folder):
        if not folder.is_dir():  # another process may have written the folder while this one waited
            with locked_folder(folder) as temporary:
                _Preparation(recipe, temporary, threads, progress).run()
    return folder


def _monitored(recipe: Recipe) -> tuple[CorpusConfig, ...]:
    return recipe.tuning.monitor if recipe.tuning else ()


class _Preparation:
    """One call of `prepare`. The data is written to the empty folder `folder`."""

    def __init__(self, recipe: Recipe, folder: Path, threads: int, progress: OnStageProgress) -> None:
        self.recipe = recipe
        self.folder = folder
        self.threads = threads
        self.progress = progress
        self.dropped: dict[str, list[dict[str, Any]]] = {}  # counts of dropped pairs, by direction
        self.warnings: list[str] = []
        self.valid, self.leaked = set[str](), set[str]()  # validation sources, and those in the training text

    def run(self) -> None:
        recipe, folder = self.recipe, self.folder
        parts = {"valid": recipe.data.valid} if recipe.data.valid else {}
        parts |= {f"monitor-{number}": (corpus,) for number, corpus in enumerate(_monitored(recipe))}
        for part, corpora in parts.items():
            self._write_text(part, corpora)
        with (folder / DROPPED).open("w", encoding="utf-8", newline="\n") as file:
            file.write("\t".join(DROPPED_COLUMNS) + "\n")
            self._write_text("train", recipe.data.train, file)
        if len(self.leaked) > LEAKED_SHARE * len(self.valid):
            self.warnings.append(
                f"{len(self.leaked):,} of {len(self.valid):,} validation sources are in the training text, so that the "
                "validation scores are too high; remove them from it, or set data.split_validation and no data.valid"
            )
        if recipe.data.split_validation:
            untagged = [not corpus.source_tag for corpus in recipe.data.train]
            split_validation(folder / "train", folder / "valid", recipe.data.split_validation, recipe.seed, untagged)
        existing = recipe.tuning.model if recipe.tuning else recipe.tokenizer.model
        tokenizer = load_tokenizer(existing) if existing else self._train_tokenizer()
        for name, content in tokenizer.files.items():
            (folder / name).write_bytes(content)
        everything = list(dict.fromkeys(["train", "valid", *parts]))
        for part in everything:
            _write_ids(folder / part, tokenizer, self.threads, partial(self.progress, f"encode {part}"))
        meta = {
            "directions": [str(direction) for direction in recipe.data.directions],
            "vocabulary_size": len(tokenizer),
            "pairs": {part: len(np.load(folder / part / "direction.npy")) for part in everything},
            "monitor": [corpus.path for corpus in _monitored(recipe)],
            "digest": prepared_digest(folder),
            "dropped": self.dropped,
            "warnings": self.warnings,
        }
        (folder / "meta.json").write_text(json.dumps(meta, indent=2, ensure_ascii=False), encoding="utf-8")

    def _write_text(self, part: str, corpora: Sequence[CorpusConfig], dropped: TextIO | None = None) -> None:
        """Write the text of `corpora` in all directions to a new folder with the name `part`, such as "train".

        If `dropped` is given, the corpora are cleaned, and dropped pairs are written to this file. Raises: DataError if
        no pair is left, or if a direction of the training or validation set has none.
        """
        folder = self.folder / part
        folder.mkdir()
        writers = [RaggedWriter(folder / f"{side}_text", np.uint8) for side in ("source", "target")]
        directions, origins = array("H"), array("H")
        empty: list[str] = []  # directions without a pair
        for index, direction in enumerate(self.recipe.data.directions):
            before = len(directions)
            cleaner = Cleaner(self.recipe.cleaning, direction.languages) if dropped else None
            for number, corpus in enumerate(corpora):
                for pair in self._read(corpus, direction, cleaner, dropped):
                    for writer, text in zip(writers, (pair.source, pair.target), strict=True):
                        writer.append_text(text)
                    if dropped:
                        self.leaked |= self.valid & {pair.source, pair.target}
                    elif part == "valid":
                        self.valid.add(pair.source)
                    directions.append(index)
                    origins.append(number)
                    if len(directions) % CHUNK == 0:
                        self.progress(f"read {part}", len(directions))
            if len(directions) == before:
                empty.append(str(direction))
            if cleaner:
                self.dropped[str(direction)] = [asdict(row) for row in cleaner.report()]
        if empty and (part in ("train", "valid") or not directions):
            raise DataError(
                problems(
                    f"no {part} pairs are left for {', '.join(empty)}; accepted: at least one pair of each direction",
                    self.warnings,
                )
            )
        for writer in writers:
            writer.close()
        np.save(folder / "direction.npy", np.array(directions))
        np.save(folder / "corpus.npy", np.array(origins))

    def _read(
        self, corpus: CorpusConfig, direction: Direction, cleaner: Cleaner | None, dropped: TextIO | None
    ) -> Iterator[SentencePair]:
        """Yield the pairs of a corpus that `cleaner` keeps, or all pairs if it is None, and variants of these pairs.

        The text is normalised (mt.text.normalise). Dropped pairs are written to `dropped`. If the text is in an
        unexpected language, a warning is added to `self.warnings`. Raises: DataError if `cleaner` is None and the
        corpus has a header row.
        """
        sample = LanguageSample()
        for pair in map(_normalised, read_corpus(corpus, self.recipe.data.root, direction)):
            sample.add(pair.source, pair.target)
            if cleaner is None:
                if is_header(pair, direction.languages):
                    raise DataError(
                        f"{pair.file}:{pair.line}: this is a header row: {pair.source!r}, {pair.target!r}; accepted: "
                        "validation and monitored corpora without a header row"
                    )
            elif reason := cleaner.check(pair):
                assert dropped is not None
                texts = (" ".join(text.split()) for text in (pair.source, pair.target))
                row = (pair.file, str(pair.line), str(direction), reason, *texts)
                dropped.write("\t".join(row) + "\n")
                continue
            yield from with_variants(pair, corpus.variants)
        for warning in check_languages(corpus.path, corpus.columns, sample.pairs, direction.languages):
            if warning not in self.warnings:
                self.warnings.append(warning)

    def _train_tokenizer(self) -> Tokenizer:
        data, tokenizer = self.recipe.data, self.recipe.tokenizer
        return Tokenizer(
            train_tokenizer(
                _tokenizer_sentences(self.folder / "train", tokenizer.training_sentences),
                vocabulary_size=tokenizer.vocabulary_size,
                languages=data.languages if len(data.directions) > 1 else (),
                source_tags=sorted({*data.source_tags, *tokenizer.source_tags}),
                threads=self.threads,
            )
        )


def _normalised(pair: SentencePair) -> SentencePair:
    source, target = map(normalise_training_text, (pair.source, pair.target))
    return pair if (source, target) == (pair.source, pair.target) else replace(pair, source=source, target=target)


def prepared_digest(folder: Path) -> str:
    """Return a digest of the names and contents of all files in `folder`.

    The list of dropped pairs is excluded, because it contains paths, which may differ between machines.
    """
    digest = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file() and path.name != DROPPED):
        digest.update(f"{path.relative_to(folder).as_posix()} {file_digest(path)}\n".encode())
    return digest.hexdigest()


def _tokenizer_sentences(folder: Path, limit: int) -> Iterator[str]:
    """Yield at most `limit` evenly spaced sentences: one half from the sources, one half from the targets."""
    for ragged in (Ragged(folder / "source_text"), Ragged(folder / "target_text")):
        stride = max(1, math.ceil(2 * len(ragged) / limit))
        for index in range(0, len(ragged), stride):
            yield ragged.text(index)


def _write_ids(folder: Path, tokenizer: Tokenizer, threads: int, progress: Callable[[int], None]) -> None:
    """Encode the sources and targets in `folder`, and write the token ids to the same folder.

    `progress` is called with the number of sources encoded so far, and then with the number of targets.
    """
    for side, side_tokenizer in (("source", tokenizer), ("target", tokenizer.target)):
        dtype = np.uint16 if len(side_tokenizer) <= 1 << 16 else np.int32
        texts = Ragged(folder / f"{side}_text")
        writer = RaggedWriter(folder / side, dtype)
        indices = iter(range(len(texts)))
        while chunk := list(islice(indices, CHUNK)):
            encoded = side_tokenizer.encode_many([texts.text(index) for index in chunk], threads)
            writer.append(np.array(ids, dtype) for ids in encoded)
            progress(chunk[-1] + 1)
        writer.close()
