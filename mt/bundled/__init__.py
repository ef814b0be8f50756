"""The starter model of the package: English, German and French, see docs/starter.md."""

from pathlib import Path

STARTER_MODEL = Path(__file__).with_name("starter")
"""Model directory that the service serves if no other is configured."""


def model_directory(text: str) -> Path:
    """Return the path `text`, or the starter model if `text` is "starter" and no such file exists."""
    path = Path(text)
    return STARTER_MODEL if text == STARTER_MODEL.name and not path.exists() else path
