"""The starter model of the package: English, German and French, see docs/starter.md."""

from pathlib import Path

STARTER_MODEL = Path(__file__).with_name("starter")
"""Model directory that the service serves if no other is configured."""
