"""Writing and reading of model directories.

A directory contains `config.json`, `model.safetensors`, `tokenizer.model` and `README.md`. These files are optional:
`calibration.json`, `confidence.json`, `source_bigrams.safetensors`, `shortlist.safetensors` and `phrases.tsv`; for an
imported model, also `int8.json`, `vocabulary.json` and `tokenizer.target.model`. If the weights in `model.safetensors`
are int8, `float.safetensors` may contain the float weights from which they were rounded.

A directory is written atomically: a reader never sees an incomplete one, even if the writer is killed. Loading runs no
code from the directory (weights are safetensors, metadata is JSON) and imports no torch; `LoadedModel.model` does.
"""

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from pydantic import TypeAdapter, ValidationError

from mt.arrays import FLOATS, Array, Arrays, check_arrays, load_arrays, map_arrays, write_arrays
from mt.description import (
    FORMAT_VERSION,
    INT8_VERSION,
    CalibrationLoss,
    CalibrationPair,
    Confidence,
    Description,
    Int8Check,
)
from mt.errors import ModelError, MTError, problems
from mt.files import atomic_file, atomic_folder, file_digest
from mt.kernels import quantization
from mt.kernels.shortlist import SHORTLIST_FILE, Shortlist, load_shortlist, save_shortlist
from mt.model.shapes import Shapes, transformer_shapes
from mt.section import Section
from mt.source_bigrams import BIGRAMS_FILE, SourceBigrams, load_source_bigrams, save_source_bigrams
from mt.text.phrases import PHRASES_FILE, Phrases, load_phrases
from mt.tokenizer import EOS, SOURCE_FILE, TOKENIZER_FILES, Tokenizer, read_file
from mt.vocabulary import load_tokenizer

if TYPE_CHECKING:
    from torch import Tensor

    from mt.model.transformer import Transformer

T = TypeVar("T")
TokenPair = tuple[tuple[int, ...], tuple[int, ...]]


WEIGHTS, FLOAT_WEIGHTS = "model.safetensors", "float.safetensors"
FILES = (
    *("config.json", WEIGHTS, FLOAT_WEIGHTS, *TOKENIZER_FILES),
    *("calibration.json", "confidence.json", "int8.json", SHORTLIST_FILE, BIGRAMS_FILE, PHRASES_FILE),
)
"""Files of a model directory that influence translations."""

CALIBRATION_PAIRS = 32  # number of pairs that training writes to calibration.json
CALIBRATION = TypeAdapter(tuple[CalibrationPair, ...])
CONFIDENCE = TypeAdapter(Confidence)
INT8_CHECK: TypeAdapter[CalibrationLoss | Int8Check] = TypeAdapter(CalibrationLoss | Int8Check)


@dataclass(frozen=True)
class LoadedModel:
    """A translation model that was loaded. `weights` are float arrays by name, or a torch module in evaluation mode."""

    weights: "Arrays | Transformer"
    tokenizer: Tokenizer
    description: Description
    device: str = "cpu"
    calibration: tuple[CalibrationPair, ...] = ()
    shortlist: Shortlist | None = None
    confidence: Confidence | None = None
    int8_check: CalibrationLoss | Int8Check | None = None
    bigrams: SourceBigrams | None = None
    phrases: Phrases | None = None

    @cached_property
    def model(self) -> "Transformer":
        """The model as a torch module in evaluation mode, on `device`."""
        if not isinstance(self.weights, Mapping):
            return self.weights
        description, loading = self.description, import_module("mt.model.loading")
        sizes = description.vocabulary_size, description.source_vocabulary_size
        module: Transformer = loading.load_transformer(self.weights, description.model, *sizes, self.device)
        return module

    def encode_pair(self, pair: CalibrationPair) -> TokenPair:
        """Return the ids of `pair.source` and `pair.target`, each with EOS and truncated to the maximum length."""
        tokenizer, limit, direction = self.tokenizer, self.description.model.max_length, pair.direction
        tag = tokenizer.source_prefix(direction.source, direction.target, self.description.directions)
        source = [*tag, *tokenizer.encode(pair.source.strip())]
        target = [*tokenizer.target_prefix(direction.target), *tokenizer.target.encode(pair.target.strip())]
        return (*source[: limit - 1], EOS), (*target[: limit - 1], EOS)

    def arrays(self) -> Arrays:
        """Return the weights as float arrays, by name."""
        return self.weights if isinstance(self.weights, Mapping) else to_arrays(self.weights.state_dict())


def to_arrays(weights: "Mapping[str, Tensor]") -> dict[str, Array]:
    """Convert tensors to float32 arrays with the same names."""
    return {name: tensor.detach().float().cpu().numpy() for name, tensor in weights.items()}


def save_model(folder: Path, model: LoadedModel, card: str, keep_float: bool = False) -> None:
    """Write a model directory. `card` is the text of its README.md. An existing directory is replaced.

    If `model.description.weights` is int8, the float weights are rounded to int8; with `keep_float`, they are written
    too. Each weight is read, converted and written before the next one, so `model.weights` may be a mapping that
    computes a weight when it is read. `int8.json` is not written; see `save_int8_check`.
    """
    int8 = model.description.weights == "int8"
    arrays, shapes = model.arrays(), _shapes(model.description)
    with atomic_folder(folder) as temporary:
        if int8:
            rounded = quantization.quantize_weights(_in_float32(arrays, shapes))
            write_arrays(temporary / WEIGHTS, quantization.int8_layout(shapes), rounded)
        if keep_float or not int8:
            path = temporary / (FLOAT_WEIGHTS if int8 else WEIGHTS)
            write_arrays(path, quantization.float_layout(shapes), _in_float32(arrays, shapes))
        (temporary / "config.json").write_text(_json(model.description), encoding="utf-8")
        for name, content in model.tokenizer.files.items():
            (temporary / name).write_bytes(content)
        (temporary / "README.md").write_text(card, encoding="utf-8")
        if model.calibration:
            (temporary / "calibration.json").write_bytes(CALIBRATION.dump_json(model.calibration, indent=1))
        if model.confidence:
            save_confidence(temporary, model.confidence)
        if model.bigrams:
            save_source_bigrams(temporary, model.bigrams, model.tokenizer)
        if model.shortlist:
            save_shortlist(temporary, model.shortlist, model.tokenizer.digest)


def card_section(folder: Path, heading: str) -> str:
    """Return a section `heading` with the text of a model's card, or "" if the model directory `folder` has no card."""
    path = folder / "README.md"
    if not path.is_file():
        return ""
    return f"## {heading}\n\n{re.sub('^#', '###', path.read_text(encoding='utf-8'), flags=re.MULTILINE)}"


def without_section(card: str, heading: str) -> str:
    """Return the text of a model card without the section `heading`, such as "## Scores"."""
    return re.sub(rf"(?ms)^{re.escape(heading)}\n.*?(?=^## |\Z)", "", card)


def _in_float32(arrays: Arrays, names: Iterable[str]) -> Iterator[tuple[str, Array]]:
    return ((name, arrays[name].astype(np.float32, copy=False)) for name in names)


def _shapes(description: Description) -> Shapes:
    """Return the shape of each weight of a model by the name of the weight."""
    return transformer_shapes(description.model, description.vocabulary_size, description.source_vocabulary_size)


def load_model(folder: Path, device: str = "cpu") -> LoadedModel:
    """Load a translation model from its directory. `device` is the device of `LoadedModel.model`.

    Raises:
        ModelError: A file of the model is missing or wrong. The message names the file.
        TokenizerError: The tokenizer is missing or wrong. The message names the file.
    """
    return _load_consistently(folder, lambda: _load_model(folder, device))


def check_files(folder: Path) -> None:
    """Check in milliseconds what a model needs: its configuration, its tokenizer and the header of its weights.

    Raises: ModelError or TokenizerError, as `load_model` does.
    """
    read_description(folder)
    read_file(folder / SOURCE_FILE)
    map_arrays(folder / WEIGHTS)


def _load_model(folder: Path, device: str) -> LoadedModel:
    description = read_description(folder)
    tokenizer = load_tokenizer(folder)
    sizes = {
        "vocabulary_size": (len(tokenizer.target), description.vocabulary_size),
        "source_vocabulary_size": (len(tokenizer), description.source_vocabulary_size or description.vocabulary_size),
    }
    _check_sizes(folder, sizes)
    int8, path = description.weights == "int8", folder / FLOAT_WEIGHTS
    return LoadedModel(
        _load_weights(path if int8 and path.exists() else folder / WEIGHTS, _shapes(description), int8),
        tokenizer,
        description,
        device,
        _read_calibration(folder),
        load_shortlist(folder, tokenizer.digest, len(tokenizer)),
        _read_optional(folder / "confidence.json", CONFIDENCE, "a file that `mt-service calibrate` wrote"),
        _read_optional(folder / "int8.json", INT8_CHECK, "a file that mt-service wrote"),
        load_source_bigrams(folder, tokenizer),
        load_phrases(folder),
    )


def _read_calibration(folder: Path) -> tuple[CalibrationPair, ...]:
    expected = "a list of objects with direction, source and target"
    return _read_optional(folder / "calibration.json", CALIBRATION, expected) or ()


def model_digest(folder: Path) -> str:
    """Return a digest of all files of a model directory that influence translations."""
    digest = sha256()
    for path in (folder / name for name in FILES):
        content = ""
        with suppress(OSError):
            if path.is_file():  # a device file could have endless content
                content = file_digest(path)
        digest.update(f"{path.name} {content}\n".encode())
    return digest.hexdigest()[:16]


def _load_consistently(folder: Path, load: Callable[[], T]) -> T:
    """Call `load` and return its result. If `folder` was replaced meanwhile, repeat the call.

    All files that `load` reads are therefore of one model.
    """
    while True:
        before = _identity(folder)
        try:
            loaded = load()
        except MTError:
            if _identity(folder) == before:
                raise
        else:
            if _identity(folder) == before:
                return loaded


def _identity(folder: Path) -> tuple[int, int, int] | None:
    """Return device, inode and modification time of a folder, or None. They change if the folder is replaced."""
    try:
        status = folder.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_mtime_ns  # the time is necessary because systems reuse inode numbers


def save_calibration(folder: Path, pairs: Sequence[CalibrationPair]) -> None:
    """Write pairs to `calibration.json` of a model directory. They replace existing pairs of the same directions.

    `int8.json` is removed, because int8 was compared with float32 on other text. Raises: ModelError if the existing
    `calibration.json` cannot be read.
    """
    replaced = {pair.direction for pair in pairs}
    others = [pair for pair in _read_calibration(folder) if pair.direction not in replaced]
    with atomic_file(folder / "calibration.json") as file:
        file.write_bytes(CALIBRATION.dump_json((*others, *pairs), indent=1))
    (folder / "int8.json").unlink(missing_ok=True)


def save_int8_check(folder: Path, check: CalibrationLoss | Int8Check) -> None:
    """Write `int8.json` into a model directory."""
    with atomic_file(folder / "int8.json") as file:
        file.write_text(_json(check), encoding="utf-8")


def save_confidence(folder: Path, confidence: Confidence) -> None:
    """Write `confidence.json` into a model directory."""
    with atomic_file(folder / "confidence.json") as file:
        file.write_text(_json(confidence), encoding="utf-8")


def read_description(folder: Path) -> Description:
    """Return the content of `config.json`.

    Raises: ModelError if the file is not valid, or a file of the model is a device or a pipe, whose content could be
        endless.
    """
    path = folder / "config.json"
    special = [name for name in FILES if os.path.exists(folder / name) and not os.path.isfile(folder / name)]
    if special:
        raise ModelError(f"{folder}: a device, pipe or folder in place of {', '.join(special)}; accepted: files")
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError) as error:
        inner = folder / "model"
        suggestion = f"; did you mean {inner}?" if (inner / "config.json").is_file() else ""
        reason = "the folder has no config.json" if folder.is_dir() else "there is no such folder"
        raise ModelError(f"{folder}: no model here: {reason}; accepted: a model directory{suggestion}") from error
    except (OSError, ValueError, RecursionError) as error:
        raise ModelError(f"{path}: not a JSON file ({error})") from error
    version = values.get("format_version") if isinstance(values, dict) else None
    if version not in (FORMAT_VERSION, INT8_VERSION):
        raise ModelError(f"{path}: format_version is {version!r}; accepted: {FORMAT_VERSION} or {INT8_VERSION}")
    try:
        return Description.model_validate(values)
    except ValidationError as error:
        listed = (f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}" for problem in error.errors())
        raise ModelError(problems(str(path), listed)) from error


def _load_weights(path: Path, shapes: Shapes, int8: bool = False) -> Arrays:
    """Return the weights in a file. Raises: ModelError if the file is not valid.

    If `int8` is true, the returned mapping converts an int8 weight to floats each time the weight is accessed.
    """
    stored = load_arrays(path)
    if not int8:
        check_arrays(stored, shapes, path)
        return stored
    if wrong := list(quantization.flaws(stored)):
        raise ModelError(problems(f"{path} has damaged int8 weights", wrong))
    weights = quantization.Int8Weights(stored)
    check_arrays({name: stored[name] for name in weights}, shapes, path, (*FLOATS, "int8"))
    return weights


def _check_sizes(folder: Path, sizes: Mapping[str, tuple[int, int]]) -> None:
    """Check that each vocabulary size in config.json equals the number of pieces of the tokenizer.

    `sizes` maps the key of each size in config.json to (number of pieces, size). Raises: ModelError if the two differ.
    """
    for name, (pieces, size) in sizes.items():
        if pieces != size:
            raise ModelError(
                f"{folder}: tokenizer.model has {pieces} pieces, but {name} in config.json is {size}; accepted: the "
                "two files of one model"
            )


def _read_optional(path: Path, kind: TypeAdapter[T], expected: str) -> T | None:
    """Return the content of an optional JSON file, or None if it does not exist.

    Raises: ModelError if the content is not valid. The message says that it is not what is `expected`.
    """
    try:
        return kind.validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValidationError) as error:
        raise ModelError(f"{path}: not {expected} ({error}); correct or remove this file, which is optional") from error


def _json(section: Section) -> str:
    return section.model_dump_json(indent=2) + "\n"
