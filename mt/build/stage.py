"""A stage of a build: one command of `mt-service` with its inputs and its output."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from mt.errors import BuildError, problems
from mt.files import file_digest

FORMAT = 2  # version of the stages' files, a part of every digest
DATA = "{data}/"  # prefix of a path in an argument; it stands for the folder of the corpora
ORIGINAL_FOLDER = "{original}"  # in an argument or file; it stands for the directory of the model to tune

TEXT = "text"  # name of the stage that cleans the text and trains the tokenizer
TEXT_FOLDER = "stages/text/text"  # output folder of the stage `text`
ORIGINAL = "original"  # name of the stage that copies the model to tune
ORIGINAL_MODEL = "stages/original/model"

Kind = Literal["prepare", "train", "translate", "distil", "shrink", "choose", "evaluate"]
"""Subcommand of `mt-service` that a stage runs; or `choose`, with which the stage copies the best of several models."""


def folder_of(name: str) -> str:
    """Return the folder of the stage `name`, relative to the folder of the build."""
    return f"stages/{name}"


@dataclass(frozen=True)
class Candidate:
    """A model that a stage `choose` may copy.

    `model` is the path of the model. `scores` are the names of the stages that evaluate it on the validation set.
    """

    model: str
    scores: tuple[str, ...] = ()


@dataclass(frozen=True)
class Gate:
    """Condition for running a stage: the mean BLEU of the stages `after` is higher than that of the stages `before`."""

    before: tuple[str, ...]
    after: tuple[str, ...]


@dataclass(frozen=True)
class Stage:
    """A stage of a build. Paths are relative to the folder of the build, or begin with `{data}/`.

    `kind` and `argv` are the subcommand of `mt-service` and its arguments. `recipe` is written to `stage.toml` in the
    folder of the stage. `files` are corpora, relative to the data root, or files of the model to tune, which begin with
    `{original}/`. The stages `inputs`, and those that `gate` and `candidates` name, must run before this stage. A stage
    `choose` copies the best of `candidates`, or with `rank` 2 the second best.
    """

    name: str
    kind: Kind
    argv: tuple[str, ...]
    output: str
    inputs: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    recipe: Mapping[str, Any] | None = None
    gate: Gate | None = None
    candidates: tuple[Candidate, ...] = ()
    rank: int = 1

    @property
    def folder(self) -> str:
        return folder_of(self.name)

    @property
    def sources(self) -> tuple[str, ...]:
        """Names of all stages that must run before this stage."""
        gate = (*self.gate.before, *self.gate.after) if self.gate else ()
        scores = (name for candidate in self.candidates for name in candidate.scores)
        return tuple(dict.fromkeys((*self.inputs, *gate, *scores)))


def stage_digests(stages: Sequence[Stage], root: Path, original: Path | None = None) -> dict[str, str]:
    """Return a SHA-256 digest of each stage, by the name of the stage.

    The digest is computed from the arguments, the recipe and the files of the stage, and from the digests of the
    stages that must run before it. It does not depend on the folder of the build, the data root `root` or the directory
    `original` of the model to tune, so that all of them may be moved. Raises: BuildError that lists all missing files.
    """
    files = {file: root / file.replace(ORIGINAL_FOLDER, str(original)) for stage in stages for file in stage.files}
    missing = sorted(str(path) for path in files.values() if not path.is_file())
    if missing:
        raise BuildError(problems("files of the recipe are missing; accepted: files below data.root", missing))
    contents = {file: file_digest(path) for file, path in files.items()}
    digests: dict[str, str] = {}
    for stage in stages:
        values = [
            FORMAT,
            stage.kind,
            stage.argv,
            stage.recipe,
            [(candidate.model, candidate.scores) for candidate in stage.candidates],
            stage.rank,
            [stage.gate.before, stage.gate.after] if stage.gate else None,
            {name: digests[name] for name in stage.sources},
            {file: contents[file] for file in stage.files},
        ]
        digests[stage.name] = hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()
    return digests
