"""The version of a model directory: what its files hold."""

import hashlib
from pathlib import Path

FILES = (
    *("config.json", "model.safetensors", "tokenizer.model"),
    *("calibration.json", "confidence.json", "shortlist.safetensors"),
)


def version_of(model: Path) -> str:
    """Changes with any file that a translation depends on, and if one appears or goes."""
    digest = hashlib.sha256()
    for name in FILES:
        try:
            with (model / name).open("rb") as file:
                found = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError:
            found = ""
        digest.update(f"{name} {found}\n".encode())
    return digest.hexdigest()[:16]
