"""Train encoder-decoder Transformers on parallel text and translate with them."""

from mt.engine.translator import Translation, Translator

__all__ = ["Translation", "Translator"]
