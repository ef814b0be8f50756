"""Output folders of converters: the check before writing, and the README.md of an exported model."""

from pathlib import Path

from mt.checkpoint import card_section
from mt.description import Description
from mt.errors import ModelError

WEIGHTS = ("model.safetensors", "model.bin")  # files of our models and of exported models


def check_output(out: Path, source: Path) -> None:
    """Check that the folder `out` may be written.

    Raises:
        ModelError: `out` is the model `source` or contains it, or `out` is a non-empty folder that is not a model.
    """
    if out.resolve() in (source.resolve(), *source.resolve().parents):
        raise ModelError(f"{out} is or contains the model to convert, and would be replaced; accepted: another folder")
    if out.exists() and not _is_replaceable(out):
        raise ModelError(f"{out} exists and is not a model; accepted: a new or empty folder, or a model to replace")


def exported_card(description: Description, tool: str, body: str, model: Path) -> str:
    """Return the text of README.md of an exported model.

    It consists of `body`, an example for `tool`, and the README.md of the original model directory `model`.
    """
    return f"""# {description.name} for {tool}

Translates {description.directions}. Exported by `mt-service export`.

{body}
{card_section(model, "The card of the model")}"""


def _is_replaceable(out: Path) -> bool:
    """Return whether `out` is an empty folder, or a folder with a model and without subfolders."""
    if not out.is_dir():
        return False
    paths = list(out.iterdir())
    is_model = (out / "config.json").is_file() and any((out / name).is_file() for name in WEIGHTS)
    return not paths or (is_model and not any(path.is_dir() for path in paths))
