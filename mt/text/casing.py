"""ALL CAPS and Title Case: read as a sentence is written, for models have seen little else.

On Multi30k (300 captions, the model of 3+3 layers, BLEU without case): as written 40.8; in Title Case 6.6, and put back
into sentence case 40.9; in capitals 0.0.
"""

import re
from collections.abc import Sequence
from itertools import chain, pairwise

from mt.text.linking import Range
from mt.text.protect import Span, find, within

_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
_VOWELS = frozenset("AEIOUYÀÁÂÃÄÅÆÈÉÊËÌÍÎÏÒÓÔÕÖØÙÚÛÜÝŒĄĘĚĒĪŌŪŮŐŰŸİ")
_LATIN = re.compile(r"[A-ZÀ-ÖØ-Þ]+")
_ENGLISH_I = re.compile(r"\bi\b(?=['’]|\W|$)")
_DOTTED = frozenset({"az", "tr"})  # languages in which I and i are two letters
_ACRONYMS = frozenset(
    [
        *("AI", "API", "ASAP", "ATM", "BIOS", "CEO", "CIA", "CPU", "DIY", "DNA", "EU", "FAQ", "FIFA", "GPU", "HIV"),
        *("IBM", "ID", "IEEE", "IP", "ISO", "IQ", "NASA", "NATO", "OPEC", "PIN", "RAM", "ROM", "SIM", "SUV", "UEFA"),
        *("UFO", "UK", "UN", "UNESCO", "UNICEF", "UNO", "URL", "USA", "USB", "UV", "VIP", "WI", "FI", "GPS", "EKG"),
    ]
)
_NO_ACRONYMS = frozenset({"MR", "MRS", "DR", "ST", "VS", "TH", "PST", "SHH", "HMM"})
_LEAST_WORDS = 2  # of at least two letters; a single word is shouted if it is long
_LONG_WORD = 6
_LEAST_LONG = 3  # letters of words that may be small in a headline, and of codes
_LEAST_TITLE = 4  # words


def lowered(sentence: str, language: str, kept: Sequence[Range] = ()) -> str | None:
    """A sentence that is in capitals as it would be written otherwise; None if it is not in capitals.

    Acronyms, short words without a vowel, words of mixed case as `kWh`, what mt.text.protect finds, and ranges that are
    to be kept, keep their case.
    One or two short words may be codes: they are taken for what they are.
    """
    if _plainly_small(sentence):
        return None
    words = _free_words(sentence, kept)
    long = [word[0] for word in words if len(word[0]) > 1]
    plain = [word for word in long if not _is_code(word)]
    shouted = [word for word in plain if _in_capitals(word)]
    if not shouted or len(shouted) < len([word for word in plain if not _mixed(word)]):
        return None
    enough = len(plain) >= _LEAST_WORDS and max(map(len, plain)) > _LEAST_LONG
    if not enough and max(map(len, plain)) < _LONG_WORD:
        return None
    return _rewritten(sentence, words, language, {word for word in long if _is_code(word) or _mixed(word)})


def raised(translation: str, source: str, language: str, kept: Sequence[Range] = ()) -> str:
    """The translation of a sentence that was in capitals, in capitals; but for what had another case in the source."""
    spans = find(source, kept)
    mixed = {word for word in _WORD.findall(source) if _mixed(word)}
    parts: list[str] = []
    end = 0
    for begin, stop in _kept_ranges(translation, spans, mixed):
        parts += [_upper(translation[end:begin], language), translation[begin:stop]]
        end = stop
    return "".join([*parts, _upper(translation[end:], language)])


def untitled(sentence: str, language: str, kept: Sequence[Range] = ()) -> str | None:
    """A headline In Title Case as a sentence would be written; None if it is none, or its words are not all so."""
    if _plainly_small(sentence):
        return None
    words = _free_words(sentence, kept)
    long = [word[0] for word in words if len(word[0]) > _LEAST_LONG]
    if len(words) < _LEAST_TITLE or not long or any(not _in_title(word) and not _is_code(word) for word in long):
        return None
    found = _rewritten(sentence, words, language, {word for word in long if _is_code(word)})
    return found if found != sentence else None


def _plainly_small(sentence: str) -> bool:
    """Whether a word in small letters settles the question at once."""
    return any(len(word) > _LEAST_LONG and word.isalpha() and word.islower() for word in sentence.split())


def _free_words(sentence: str, kept: Sequence[Range]) -> list[re.Match[str]]:
    """The words outside the spans that are protected."""
    spans = find(sentence, kept)
    return [word for word in _WORD.finditer(sentence) if not _within(word.start(), spans)]


def _within(place: int, spans: Sequence[Span]) -> bool:
    return any(span.begin <= place < span.end for span in spans)


def _is_code(word: str) -> bool:
    """An acronym that is known, or Latin capitals that cannot be spoken."""
    spoken = word in _NO_ACRONYMS or not _LATIN.fullmatch(word) or not _VOWELS.isdisjoint(word)
    return word in _ACRONYMS or not spoken


def _in_capitals(word: str) -> bool:
    return word.replace("ß", "").isupper()


def _mixed(word: str) -> bool:
    """As in kWh, iPhone, PhD: a capital after a small letter."""
    return any(a.islower() and b.isupper() for a, b in pairwise(word)) and not _in_capitals(word)


def _in_title(word: str) -> bool:
    return word[0].isupper() and word[1:] == word[1:].lower() and not word.isupper()


def _rewritten(sentence: str, words: Sequence[re.Match[str]], language: str, kept: set[str]) -> str:
    """Small letters but for the words that are kept and the first letter of all."""
    parts: list[str] = []
    end = 0
    for number, word in enumerate(words):
        text = word[0]
        if text not in kept:
            text = _lower(text, language)
            text = _upper(text[:1], language) + text[1:] if number == 0 else text
        parts += [sentence[end : word.start()], text]
        end = word.end()
    whole = "".join([*parts, sentence[end:]])
    return _ENGLISH_I.sub("I", whole) if language == "en" else whole


def _kept_ranges(translation: str, protected: Sequence[Span], mixed: set[str]) -> list[Range]:
    """The ranges of what keeps its case, in order and apart."""
    spans, kept = within(translation, protected), {span.text for span in protected} | mixed
    ranges = chain(
        ((span.begin, span.end) for span in spans if span.text in kept),
        (word.span() for word in _WORD.finditer(translation) if word[0] in kept and not _within(word.start(), spans)),
    )
    return sorted(ranges)


def _lower(text: str, language: str) -> str:
    if language in _DOTTED:
        text = text.replace("I", "ı").replace("İ", "i")
    return text.lower()


def _upper(text: str, language: str) -> str:
    return (text.replace("i", "İ") if language in _DOTTED else text).upper()
