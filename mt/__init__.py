"""Train encoder-decoder Transformers on parallel text and translate with them.

>>> from mt import Translator
>>> translator = Translator.load("tests/frozen/model", device="cpu")
>>> translator.translate("My husband is very fast.").text
'Mein Mann ist sehr schnell.'
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING

from mt.decoding.options import SearchOptions
from mt.errors import MTError
from mt.pipeline.results import Alternative, Failure, SentenceTranslation, Translation

if _TYPE_CHECKING:
    from mt.pipeline.translator import Translator

__all__ = ["Alternative", "Failure", "MTError", "SearchOptions", "SentenceTranslation", "Translation", "Translator"]


def __getattr__(name: str) -> object:
    """Return `Translator`, imported when it is first used: its module takes longer to import than the others."""
    if name == "Translator":
        return _import_module("mt.pipeline.translator").Translator
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__all__", "__doc__", "__file__", "__name__", "__path__"]
