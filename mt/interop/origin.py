"""Origin of an imported model (folder, name, licence and checksums), and safe reading of pickles and YAML."""

import re
import reprlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import yaml
from torch import Tensor

from mt.errors import ModelError, problems
from mt.files import file_digest

AS_MARIAN: Mapping[str, Any] = {"positions": "tensor2tensor", "norm_epsilon": 1e-6}
"""Values of our ModelConfig for a model that computes exactly as Marian does.

See sinusoidalPositionEmbeddings in src/graph/node_initializers.cpp and layerNorm in src/models/transformer.h. In models
that transformers or CTranslate2 converted from Marian, the frequencies of the positions are slightly higher.
"""

ALLOWED_PICKLE = "--allow-pickle, which reads tensors and plain values only"
UNSTATED = "not stated with the model; ask its authors before you redistribute it"


@dataclass(frozen=True)
class ImportOptions:
    """Options of an import.

    With `allow_pickle`, weights may be read from a pickle. With `as_marian`, a Marian model computes positions and
    LayerNorm exactly as in Marian.
    """

    allow_pickle: bool = False
    as_marian: bool = False


@dataclass(frozen=True)
class Origin:
    """Folder of the model to import, and what is known about its source.

    `revision` is the commit on the hub, empty for a local folder. If the weights are the hub's conversion to
    safetensors, `conversion` is the branch and the commit of the conversion.
    """

    folder: Path
    name: str
    revision: str = ""
    conversion: str = ""

    def licence(self) -> str:
        """Return the licence in the metadata of README.md, or else the first line of LICENSE, or else UNSTATED."""
        for name, pattern in (("README.md", r"^license:\s*(\S+)"), ("LICENSE", r"^\s*(\S.*)$")):
            path = self.folder / name
            text = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
            if stated := re.search(pattern, text, re.MULTILINE):
                return stated[1]
        return UNSTATED

    def provenance(self, files: Iterable[str]) -> list[str]:
        """Return lines for README.md: the revision, the licence and the checksums of `files`."""
        lines = [f"Revision: {self.revision} on the Hugging Face hub."] if self.revision else []
        lines += [f"Weights: the hub's conversion to safetensors, {self.conversion}."] if self.conversion else []
        lines.append(f"Licence: {self.licence()}.")
        for name in files:
            lines.append(f"SHA-256 of `{name}`: {file_digest(self.folder / name)}")
        return lines


def load_pickle(path: Path) -> dict[str, Any]:
    """Return the dictionary in a file that torch.save wrote.

    The dictionary may contain tensors, numbers, strings and containers.

    Raises:
        ModelError: The file is damaged or contains anything else, which torch's `weights_only` reader refuses.
    """
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # IndexError, struct.error ...: damaged files raise errors of many types
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise ModelError(f"{path}: is damaged, or a pickle that runs code when it is read ({reason})") from error
    if not isinstance(content, dict):
        raise ModelError(f"{path}: holds an object of type {type(content).__name__}; accepted: a dictionary")
    return content


class _YamlLoader(yaml.SafeLoader):  # type: ignore[misc] # PyYAML has no types
    """PyYAML's safe loader, but without aliases. With aliases, a file of a few lines can describe gigabytes."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            line = self.peek_event().start_mark.line + 1
            raise yaml.YAMLError(f"an alias in line {line}; accepted: YAML without aliases")
        return super().compose_node(parent, index)


def parse_yaml(content: str) -> Any:
    """Return the value of a YAML text.

    Raises:
        yaml.YAMLError: The text is damaged, nested too deeply or has aliases.
    """
    try:
        return yaml.load(content, Loader=_YamlLoader)
    except RecursionError as error:
        raise yaml.YAMLError("values are nested too deeply") from error


class _Repr(reprlib.Repr):
    """Short representations of values from a file.

    For an object that is no number, string or container, show its type.
    """

    def __init__(self) -> None:
        super().__init__()
        self.maxlevel, self.maxstring = 1, 60

    def repr_instance(self, x: Any, level: int) -> str:
        return repr(x) if x is None or isinstance(x, bool | float) else f"of type {type(x).__name__}"


def shown(value: Any) -> str:
    """Return a short text of at most a few hundred characters that shows `value`, for an error message."""
    return _Repr().repr(value)


def named_tensors(content: Mapping[Any, Any], path: Path) -> dict[str, Tensor]:
    """Return `content`, the weights in the pickle `path`, as a dictionary after a check of all names and values.

    Raises:
        ModelError: A name is not a string or a value is not a tensor. The message lists all of them.
    """
    wrong = [
        f"{name!r} is of type {type(value).__name__}" if isinstance(name, str) else f"{name!r} is not a string"
        for name, value in content.items()
        if not (isinstance(name, str) and isinstance(value, Tensor))
    ]
    if wrong:
        raise ModelError(problems(f"{path} holds values that are not weights; accepted: named tensors only", wrong))
    return dict(content)
