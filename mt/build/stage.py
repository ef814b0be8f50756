"""A stage of a build: one verb of `mt-service` with its inputs and its output."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from mt.errors import BuildError, problems

FORMAT = 1  # version of the stages' files, a part of every digest
DATA = "{data}/"  # prefix of a path in an argument; it stands for the folder of the corpora

TEXT = "text"  # name of the stage that cleans the text and trains the tokenizer
TEXT_FOLDER = "stages/text/text"  # output folder of the stage `text`

Kind = Literal["prepare", "train", "translate", "distil", "shrink", "choose", "shortlist", "evaluate"]
"""Verb of `mt-service` that a stage runs. `choose` runs no verb: the stage copies the best of several models."""


def folder_of(name: str) -> str:
    """Return the folder of the stage `name`, below the folder of the build."""
    return f"stages/{name}"


@dataclass(frozen=True)
class Candidate:
    """A model that a stage `choose` may copy, and the stages that scored it on the validation set."""

    model: str
    scores: tuple[str, ...] = ()


@dataclass(frozen=True)
class Gate:
    """Condition of a further round: the mean BLEU of the stages `after` is higher than that of the stages `before`."""

    before: tuple[str, ...]
    after: tuple[str, ...]


@dataclass(frozen=True)
class Workload:
    """Amount of work of a stage, for estimates of time.

    `updates` is the number of updates times the duration of an update relative to a teacher's. `texts` names the texts
    that are translated: "en-de" is the training text of this direction, "test" a test set, and any other name the path
    of a monolingual corpus.
    """

    updates: float = 0.0
    texts: tuple[str, ...] = ()


@dataclass(frozen=True)
class Stage:
    """A stage of a build. Paths are relative to the folder of the build, or begin with `{data}/`.

    `recipe` is written to `stage.toml` in the folder of the stage. `files` are corpora below the data root. `inputs`
    names stages that must run before; the stages in `gate` and `candidates` must also run before.
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
    workload: Workload = field(default_factory=Workload)
    gain: str = ""
    """Expected gain in quality or speed, with the experiment that measured it."""

    @property
    def folder(self) -> str:
        return folder_of(self.name)

    @property
    def sources(self) -> tuple[str, ...]:
        """Names of all stages that must run before this stage."""
        gate = (*self.gate.before, *self.gate.after) if self.gate else ()
        scores = (name for candidate in self.candidates for name in candidate.scores)
        return tuple(dict.fromkeys((*self.inputs, *gate, *scores)))


def stage_digests(stages: Sequence[Stage], root: Path) -> dict[str, str]:
    """Return a SHA-256 of each stage, over its arguments, recipe and files and the digests of earlier stages.

    The digests do not depend on the folder of the build and the data root, so that both may be moved. Raises:
    BuildError that lists all missing files.
    """
    files = {file for stage in stages for file in stage.files}
    missing = [str(root / file) for file in sorted(files) if not (root / file).is_file()]
    if missing:
        raise BuildError(problems("files of the recipe are missing; accepted: files below data.root", missing))
    contents = {file: _file_digest(root / file) for file in files}
    digests: dict[str, str] = {}
    for stage in stages:
        values = [
            FORMAT,
            stage.kind,
            stage.argv,
            stage.recipe,
            [(candidate.model, candidate.scores) for candidate in stage.candidates],
            [stage.gate.before, stage.gate.after] if stage.gate else None,
            {name: digests[name] for name in stage.sources},
            {file: contents[file] for file in stage.files},
        ]
        digests[stage.name] = hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()
    return digests


def _file_digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
