"""Files of models: the model directories in a folder, and the name, size and card of a model."""

import json
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import structlog

from mt.bundled import STARTER_MODEL
from mt.errors import ModelError
from service.settings import Settings

MAX_NAME_LENGTH = 100
MAX_CARD_LENGTH = 100_000


def weights_size(model: Path) -> int:
    """Return the size of the weights in bytes; 0 if they cannot be read."""
    with suppress(OSError):
        return (model / "model.safetensors").stat().st_size
    return 0


@dataclass(frozen=True)
class CardFacts:
    """Facts from the model card, README.md. A fact that the card does not state is ""."""

    licence: str = ""
    scores: str = ""


def read_card(model: Path) -> CardFacts:
    """Return the licence, from a line such as `Licence: cc-by-4.0.`, and the first paragraph below "## Scores"."""
    with suppress(OSError):
        if (model / "README.md").is_file():
            with (model / "README.md").open(encoding="utf-8", errors="replace") as file:
                text = file.read(MAX_CARD_LENGTH)
            licence = re.search(r"^Licence: (.{1,100}?)\.?$", text, re.MULTILINE)
            scores = re.search(r"^## Scores\n+(.{1,1000}?)(?=\n\n|\Z)", text, re.MULTILINE | re.DOTALL)
            return CardFacts(licence[1] if licence else "", scores[1].replace("\n", " ") if scores else "")
    return CardFacts()


def model_name(model: Path) -> str:
    """Return the `name` in config.json, or `folder_name(model)` if config.json has no valid name."""
    with suppress(OSError, ValueError, RecursionError):
        if (model / "config.json").is_file():  # a device file could have endless content
            config = json.loads((model / "config.json").read_bytes())
            name = config.get("name") if isinstance(config, dict) else None
            if isinstance(name, str) and name.isprintable() and 0 < len(name) <= MAX_NAME_LENGTH:
                return name
    return folder_name(model)


def folder_name(model: Path) -> str:
    """Return the name of the directory, or of its closest parent with another name if the directory is named "model".

    The name "model" says nothing, because every training run writes its model to a directory with this name.
    """
    return next((part for part in reversed(model.absolute().parts) if part != "model"), model.name)


def find_models(settings: Settings) -> tuple[Path, ...]:
    """Return the directories of the models that the settings name. Raises: the ModelError of `models_in`."""
    if settings.model or settings.models is None:
        return settings.model or (STARTER_MODEL,)
    return models_in(settings.models)


def find_models_at_start(settings: Settings) -> tuple[Path, ...]:
    """Return the same when the service starts: if the folder is empty, such as a new volume, the starter model."""
    if not settings.model and settings.models is None:
        structlog.get_logger().warning("no model is named: the starter model is served")
    if settings.model or settings.models is None or not _is_empty(settings.models):
        return find_models(settings)
    structlog.get_logger().warning(
        "the folder of models is empty: the starter model is served; put models there, then reload",
        folder=str(settings.models),
    )
    return (STARTER_MODEL,)


def models_in(folder: Path) -> tuple[Path, ...]:
    """Return the model directories in `folder`, sorted by name, or only `folder` if it is a model directory itself.

    Hidden directories are skipped, because they are incomplete models. Raises: ModelError if no model is readable.
    """
    if _is_model(folder):
        return (folder,)
    try:
        models = sorted(path for path in _visible(folder) if _is_model(path))
    except OSError as error:
        raise ModelError(f"{folder}: {error.strerror}; accepted: a folder that holds model directories") from error
    if not models:
        raise ModelError(
            f"{folder} holds no model that user {os.getuid()} can read; accepted: a folder with model directories "
            "(config.json, model.safetensors, tokenizer.model), as `mt-service train` writes them"
        )
    return tuple(models)


def _is_empty(folder: Path) -> bool:
    """Return whether a folder holds nothing, as a new volume, in which some file systems create `lost+found`."""
    try:
        return all(path.name == "lost+found" for path in _visible(folder))
    except OSError:
        return False


def _visible(folder: Path) -> Iterator[Path]:
    return (path for path in folder.iterdir() if not path.name.startswith("."))


def _is_model(path: Path) -> bool:
    return os.path.isfile(path / "config.json")  # Path.is_file would raise an error for an unreadable folder
