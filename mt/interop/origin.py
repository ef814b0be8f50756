"""Where a model comes from: its folder, its name, its licence and the checksums of what was read."""

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from mt.errors import ModelError, problems

AS_MARIAN: Mapping[str, Any] = {"positions": "tensor2tensor", "norm_epsilon": 1e-6}
"""How Marian itself computes (sinusoidalPositionEmbeddings in its src/graph/node_initializers.cpp, layerNorm in
src/models/transformer.h). transformers and CTranslate2 convert its models with frequencies that are a little higher."""

ALLOWED_PICKLE = "--allow-pickle, which reads no more than plain values from it"
UNSTATED = "not stated there; ask its authors before passing it on"


@dataclass(frozen=True)
class Wishes:
    """How to read: whether pickles may be, and whether a model of Marian's is to compute exactly as it does there."""

    allow_pickle: bool = False
    as_marian: bool = False


@dataclass(frozen=True)
class Origin:
    """A folder with a model. `revision` is set for one that was fetched from the hub."""

    folder: Path
    name: str
    revision: str = ""

    def licence(self) -> str:
        """What the front matter of README.md, else the first line of LICENSE, says."""
        for name, pattern in (("README.md", r"^license:\s*(\S+)"), ("LICENSE", r"^\s*(\S.*)$")):
            path = self.folder / name
            text = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
            if stated := re.search(pattern, text, re.MULTILINE):
                return stated[1]
        return UNSTATED

    def provenance(self, files: Iterable[str]) -> list[str]:
        """Lines for the card."""
        lines = [f"Revision: {self.revision} on the Hugging Face hub."] if self.revision else []
        lines.append(f"Licence: {self.licence()}.")
        for name in files:
            with (self.folder / name).open("rb") as file:
                lines.append(f"SHA-256 of `{name}`: {hashlib.file_digest(file, 'sha256').hexdigest()}")
        return lines


def need_pickles(path: Path, wishes: Wishes) -> None:
    """Raises ModelError unless pickles may be read."""
    if not wishes.allow_pickle:
        raise ModelError(f"{path}: is a pickle; accepted: {ALLOWED_PICKLE}")


def load_pickle(path: Path, records: Sequence[type] = ()) -> dict[str, Any]:
    """What torch.save wrote: tensors, numbers, strings and their containers, besides instances of `records`.

    Nothing else in a pickle is executed: torch's own reader refuses it (`weights_only`). Raises ModelError.
    """
    try:
        with torch.serialization.safe_globals(list(records)):
            found = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # IndexError, struct.error ...: torch's reader trips over damage in many ways
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise ModelError(f"{path}: cannot be read without running code in it, or is damaged ({reason})") from error
    if not isinstance(found, dict):
        raise ModelError(f"{path}: holds {type(found).__name__}; accepted: a dictionary")
    return found


def named_tensors(found: Mapping[Any, Any], path: Path) -> dict[str, Tensor]:
    """The weights that a pickle, `path`, holds. Raises ModelError that lists what else is among them."""
    wrong = [
        f"{name!r} is of the type {type(value).__name__}" if isinstance(name, str) else f"{name!r} is no name"
        for name, value in found.items()
        if not (isinstance(name, str) and isinstance(value, Tensor))
    ]
    if wrong:
        raise ModelError(problems(f"{path} holds more than weights; accepted: tensors, each under its name", wrong))
    return dict(found)
