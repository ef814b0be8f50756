"""The models of a folder, such as a volume that is mounted into a container."""

import os
from pathlib import Path

from mt.errors import ModelError


def find_models(folder: Path) -> tuple[Path, ...]:
    """The model directories in a folder, by name; or itself, if it is one. Hidden ones are being written.

    Raises ModelError where there is none.
    """
    if _is_model(folder):
        return (folder,)
    try:
        found = sorted(path for path in folder.iterdir() if not path.name.startswith(".") and _is_model(path))
    except OSError as error:
        raise ModelError(f"{folder}: {error.strerror}; accepted: a folder that holds model directories") from error
    if not found:
        raise ModelError(
            f"{folder} holds no model that user {os.getuid()} can read; accepted: a folder whose folders are models "
            "(config.json, model.safetensors, tokenizer.model), as scripts/train.py writes them"
        )
    return tuple(found)


def _is_model(path: Path) -> bool:
    return os.path.isfile(path / "config.json")  # and not Path.is_file, which raises where it may not look
