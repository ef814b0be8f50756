"""Train encoder-decoder Transformers on parallel text and translate with them."""

from importlib import import_module
from typing import TYPE_CHECKING

from mt.engine.results import Failure, Translation

if TYPE_CHECKING:
    from mt.engine.translator import Translator

__all__ = ["Failure", "Translation", "Translator"]


def __getattr__(name: str) -> object:
    """`Translator`, when it is asked for: it brings torch, which takes a second, and not all in here needs it."""
    if name == "Translator":
        return import_module("mt.engine.translator").Translator
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
