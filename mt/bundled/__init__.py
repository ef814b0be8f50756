"""The starter model of the package: English, German and French, trained by scripts/recipes/starter.toml."""

from pathlib import Path

STARTER_MODEL = Path(__file__).with_name("starter")
"""Model directory that the service serves if no other is configured."""
