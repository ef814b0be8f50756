"""Variants of training pairs: other letter case, and no final punctuation, as people often type.

A model that is trained on edited text only translates "hello" worse than "Hello.". OpusTrainer calls such changes
modifiers (Bogoychev et al. 2023, arXiv 2311.14838).
"""

import unicodedata
from collections.abc import Iterator
from dataclasses import replace
from zlib import crc32

from mt.data.corpus import SentencePair


def with_variants(pair: SentencePair, share: float) -> Iterator[SentencePair]:
    """Yield a pair and, for this share of all pairs, a variant. A hash of the texts selects pairs and variants.

    Half of the variants have the source in lower case and no final punctuation, a quarter only the latter, and a
    quarter both texts in capitals. The target of a source in lower case keeps its case. A variant that equals the pair
    is left out.
    """
    yield pair
    number = crc32(f"{pair.source}\t{pair.target}".encode())
    if number >= share * 2**32:
        return
    source, target = map(_without_final_punctuation, (pair.source, pair.target))
    match number % 4:
        case 0 | 1:
            source = source.lower()
        case 2:
            source, target = pair.source.upper(), pair.target.upper()
    if source and target and source != pair.source:
        yield replace(pair, source=source, target=target)


def _without_final_punctuation(text: str) -> str:
    """Return a text without the punctuation at its end, and the space before it."""
    while text and (text[-1].isspace() or unicodedata.category(text[-1]) == "Po"):
        text = text[:-1]
    return text
