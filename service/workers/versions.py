"""The version of a model directory: what its files hold."""

import hashlib
from contextlib import suppress
from pathlib import Path

from mt.tokenizer import TOKENIZER_FILES

FILES = (
    *("config.json", "model.safetensors", *TOKENIZER_FILES),
    *("calibration.json", "confidence.json", "shortlist.safetensors"),
)


def version_of(model: Path) -> str:
    """Changes with any file that a translation depends on, and if one appears or goes."""
    digest = hashlib.sha256()
    for name in FILES:
        found = ""
        with suppress(OSError):
            if (model / name).is_file():  # a device may have no end
                with (model / name).open("rb") as file:
                    found = hashlib.file_digest(file, "sha256").hexdigest()
        digest.update(f"{name} {found}\n".encode())
    return digest.hexdigest()[:16]
