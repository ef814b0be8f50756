"""What the README.md of an exported model says, whatever its format."""

import re
from pathlib import Path

from mt.checkpoint import Description


def exported_card(description: Description, tool: str, body: str, model: Path) -> str:
    """`body` shows how to use it with `tool`. The card of the directory `model` follows: data, scores and licence."""
    path = model / "README.md"
    card = re.sub("^#", "###", path.read_text(encoding="utf-8"), flags=re.MULTILINE) if path.is_file() else ""
    origin = f"\n## The card of the model\n\n{card}" if card else ""
    return f"""# {description.name} for {tool}

Translates {", ".join(description.directions)}. Made by `scripts/export.py` from a model of ours.

{body}{origin}"""


def targets(description: Description) -> list[str]:
    """The languages that it translates into."""
    return sorted({direction.split("-")[1] for direction in description.directions})
