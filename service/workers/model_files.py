"""Model directories: a list of those in a folder, and the name and the version of a model."""

import hashlib
import json
import os
from contextlib import suppress
from pathlib import Path

from mt.errors import ModelError
from mt.tokenizer import TOKENIZER_FILES

MAX_NAME_LENGTH = 100
FILES = (
    *("config.json", "model.safetensors", "float.safetensors", *TOKENIZER_FILES),
    *("calibration.json", "confidence.json", "int8.json", "shortlist.safetensors"),
)


def model_version(model: Path) -> str:
    """Return a digest of the contents of all files on which translations depend."""
    digest = hashlib.sha256()
    for name in FILES:
        file_digest = ""
        with suppress(OSError):
            if (model / name).is_file():  # not a device, whose content may be endless
                with (model / name).open("rb") as file:
                    file_digest = hashlib.file_digest(file, "sha256").hexdigest()
        digest.update(f"{name} {file_digest}\n".encode())
    return digest.hexdigest()[:16]


def model_name(model: Path) -> str:
    """Return the `name` in config.json; without a valid name, the last part of the path that is not "model".

    The part "model" tells nothing: every training run writes its model to a directory of this name.
    """
    with suppress(OSError, ValueError, RecursionError):
        if (model / "config.json").is_file():  # not a device, whose content may be endless
            config = json.loads((model / "config.json").read_bytes())
            name = config.get("name") if isinstance(config, dict) else None
            if isinstance(name, str) and name.isprintable() and 0 < len(name) <= MAX_NAME_LENGTH:
                return name
    return next((part for part in reversed(model.absolute().parts) if part != "model"), model.name)


def find_models(folder: Path) -> tuple[Path, ...]:
    """Return the model directories in `folder`, sorted by name, or only `folder` if it is a model directory itself.

    Hidden directories are skipped, because they are incomplete models. Raises: ModelError if no model can be read.
    """
    if _is_model(folder):
        return (folder,)
    try:
        models = sorted(path for path in folder.iterdir() if not path.name.startswith(".") and _is_model(path))
    except OSError as error:
        raise ModelError(f"{folder}: {error.strerror}; accepted: a folder that holds model directories") from error
    if not models:
        raise ModelError(
            f"{folder} holds no model that user {os.getuid()} can read; accepted: a folder with model directories "
            "(config.json, model.safetensors, tokenizer.model), as `mt-service train` writes them"
        )
    return tuple(models)


def _is_model(path: Path) -> bool:
    return os.path.isfile(path / "config.json")  # Path.is_file would raise an error for an unreadable folder
