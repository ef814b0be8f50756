"""Variants of training pairs, with other letter case or without final punctuation, as people often type.

A model that was trained only on edited text translates "hello" worse than "Hello.". OpusTrainer calls such changes
modifiers (Bogoychev et al. 2023, arXiv 2311.14838).
"""

import unicodedata
from collections.abc import Iterator
from dataclasses import replace
from zlib import crc32

from mt.data.corpus import SentencePair


def with_variants(pair: SentencePair, share: float) -> Iterator[SentencePair]:
    """Yield `pair` and, for a fraction `share` of all pairs, a variant of it. A hash of the texts selects the variant.

    Half of the variants have a source in lower case, and neither source nor target has final punctuation. A quarter
    only lacks the final punctuation. In a quarter, source and target are in capitals. A variant with an unchanged
    source, or with an empty text, is left out.
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
    """Return `text` without the punctuation and white space at its end."""
    while text and (text[-1].isspace() or unicodedata.category(text[-1]) == "Po"):
        text = text[:-1]
    return text
