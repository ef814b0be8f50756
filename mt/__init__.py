"""Train encoder-decoder Transformers on parallel text and translate with them.

>>> from mt import Translator
>>> translator = Translator.load("tests/frozen/model", device="cpu")
>>> translator.translate("My husband is very fast.").text
'Mein Mann ist sehr schnell.'
"""

from importlib import import_module
from typing import TYPE_CHECKING

from mt.pipeline.results import Failure, Translation

if TYPE_CHECKING:
    from mt.pipeline.translator import Translator

__all__ = ["Failure", "Translation", "Translator"]


def __getattr__(name: str) -> object:
    """Return `Translator`, imported when it is first used: its module also imports torch, which takes a second."""
    if name == "Translator":
        return import_module("mt.pipeline.translator").Translator
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
