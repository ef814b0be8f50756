"""Where a converter may write."""

from pathlib import Path

from mt.errors import ModelError


def check_output(out: Path, source: Path) -> None:
    """Raises ModelError if writing the folder `out` would destroy the source, or something that is no model."""
    if out.resolve() == source.resolve():
        raise ModelError(f"{out}: would replace the model that is read; accepted: another folder")
    if out.exists() and not (out / "config.json").is_file() and (not out.is_dir() or any(out.iterdir())):
        raise ModelError(f"{out}: exists and is no model; accepted: a new folder, an empty one, or a model to replace")
