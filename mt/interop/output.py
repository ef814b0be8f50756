"""Where a converter may write."""

from pathlib import Path

from mt.errors import ModelError

WEIGHTS = ("model.safetensors", "model.bin", "encoder.onnx")  # of our own models, and of what exports leave


def check_output(out: Path, source: Path) -> None:
    """Raises ModelError if writing the folder `out` would destroy the source, or something that is no model."""
    if out.resolve() in (source.resolve(), *source.resolve().parents):
        raise ModelError(f"{out}: would replace the model that is read; accepted: another folder")
    if out.exists() and not _may_go(out):
        raise ModelError(f"{out}: exists and is no model; accepted: a new folder, an empty one, or a model to replace")


def _may_go(out: Path) -> bool:
    """Whether there is nothing but a model, if anything."""
    if not out.is_dir():
        return False
    inside = list(out.iterdir())
    a_model = (out / "config.json").is_file() and any((out / name).is_file() for name in WEIGHTS)
    return not inside or (a_model and not any(each.is_dir() for each in inside))
