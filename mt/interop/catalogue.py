"""Catalogue of models on the Hugging Face hub that can be imported, and the folder of installed models.

The entries are in catalogue.toml in this package. They were taken from the public cards of the models.
"""

import os
import re
import tomllib
from functools import cache
from pathlib import Path
from typing import Literal

from pydantic import model_validator

from mt.bundled import model_directory
from mt.errors import ModelError, did_you_mean
from mt.interop.language_codes import LANGUAGE_TOKENS
from mt.languages import DirectionSet
from mt.section import Section

HUB = "hub:"
"""Prefix that marks the name of a model on the hub. It is needed where a path is accepted too."""

NAME = re.compile(r"(?P<name>\w[\w.-]*/\w[\w.-]*)(@(?P<revision>\w[\w.-]*(/\w[\w.-]*)*))?")
NON_COMMERCIAL = re.compile(r"(^|-)(nc|non-?commercial)(-|$)", re.IGNORECASE)


class Entry(Section):
    """Model of the catalogue. The values are taken from the card of `repository`."""

    repository: str
    """Repository on the hub, owner/model."""
    family: Literal["OPUS-MT", "M2M-100", "NLLB-200", "mBART-50"]
    direction: str = ""
    """Direction of a model of OPUS-MT, such as en-de; empty for a multilingual model."""
    source: str = ""
    """Source language of a multilingual model that has only one; otherwise empty."""
    target: str = ""
    """Target language of a multilingual model that has only one; otherwise empty."""
    parameters: int
    """Number of parameters in millions, rounded."""
    licence: str = ""
    """Licence that the card states in its metadata; empty if it states none."""
    strengths: str
    """Purpose of the model, in a few words."""

    @model_validator(mode="after")
    def _languages_are_stated(self) -> "Entry":
        if bool(self.direction) != (self.family == "OPUS-MT"):
            raise ValueError(f"{self.repository}: a model of OPUS-MT must have a direction, and other models none")
        return self

    @property
    def name(self) -> str:
        """Name of the model for users: the name of the repository without the owner."""
        return self.repository.partition("/")[2]

    @property
    def directions(self) -> DirectionSet:
        if self.direction:
            return DirectionSet.parse([self.direction])
        languages = LANGUAGE_TOKENS[self.family]
        sides = {"source": [self.source] if self.source else [*languages]}
        return DirectionSet.parse(sides | {"target": [self.target] if self.target else [*languages]})

    @property
    def languages(self) -> str:
        """Short text about the languages: `en-de`, `100 languages` or `en to 52 languages`."""
        if self.direction:
            return self.direction
        count = len(LANGUAGE_TOKENS[self.family])
        if self.source or self.target:
            others = f"{count - 1} languages"
            return f"{self.source or others} to {self.target or others}"
        return f"{count} languages"

    def memory(self, bytes_per_parameter: int) -> str:
        """Return the size of the weights as a text, for example `1.9 GB`."""
        size = self.parameters * bytes_per_parameter
        return f"{size / 1000:.1f} GB" if size >= 1000 else f"{size} MB"


@cache
def catalogue() -> tuple[Entry, ...]:
    with Path(__file__).with_name("catalogue.toml").open("rb") as file:
        return tuple(Entry.model_validate(entry) for entry in tomllib.load(file)["model"])


def find_entry(name: str) -> Entry | None:
    """Return the entry for its name or repository, with or without @REVISION; None if there is no such entry."""
    repository = name.partition("@")[0]
    return next((entry for entry in catalogue() if repository in (entry.name, entry.repository)), None)


def hub_name(name: str) -> str:
    """Convert `name`, as a user writes it, to the name on the hub: owner/model or owner/model@REVISION.

    `name` is such a name or a name of the catalogue. It may begin with `hub:`.

    Raises:
        ModelError: `name` is neither a name of the catalogue nor a possible name on the hub.
    """
    asked = name.removeprefix(HUB)
    if entry := find_entry(asked):
        asked = "".join((entry.repository, *asked.partition("@")[1:]))
    if NAME.fullmatch(asked) is None:
        near = did_you_mean(asked, [entry.name for entry in catalogue()])
        accepted = "a name that `mt-service models` lists, or owner/model or owner/model@REVISION of the hub"
        raise ModelError(f"{name}: no such folder or model{near}; accepted: {accepted}")
    return asked


def model_path(text: str) -> Path:
    """Return the directory of the model that a user names: a path, `starter`, or `hub:NAME` of an installed model.

    Raises: ModelError if a model of the hub is not installed, or a name of the catalogue stands where a path should.
    """
    path = model_directory(text)
    if path.exists() or not (text.startswith(HUB) or find_entry(text)):
        return path
    if not text.startswith(HUB):
        raise ModelError(f"there is no folder {text}; did you mean {HUB}{text}?")
    folder = installed_folder(hub_name(text), models_folder())
    if not is_installed(folder):
        raise ModelError(f"{text} is not installed; run `mt-service import {text.removeprefix(HUB)}` first")
    return folder


def is_non_commercial(licence: str) -> bool:
    """Return whether a licence forbids commercial use, judged by its identifier, such as cc-by-nc-4.0."""
    return NON_COMMERCIAL.search(licence) is not None


def models_folder() -> Path:
    """Return the folder of installed models: MT_MODELS, or else mt-service/models in the user's data folder (XDG)."""
    if stated := os.environ.get("MT_MODELS"):
        return Path(stated)
    data = Path(os.environ.get("XDG_DATA_HOME", ""))
    return (data if data.is_absolute() else Path.home() / ".local" / "share") / "mt-service" / "models"


def installed_folder(name: str, models: Path) -> Path:
    """Return the folder in `models` for the model owner/model or owner/model@REVISION of the hub."""
    return models / name.replace("/", "--")


def is_installed(folder: Path) -> bool:
    """Return whether `folder` is a model directory. A model directory is written whole or not at all."""
    return (folder / "config.json").is_file() and (folder / "model.safetensors").is_file()
