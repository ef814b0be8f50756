"""Train encoder-decoder Transformers on parallel text and translate with them."""

from mt.engine.plan import Failure, Translation
from mt.engine.translator import Translator

__all__ = ["Failure", "Translation", "Translator"]
