"""Filters that drop faulty training pairs, with counts of the dropped pairs by reason.

A filter keeps or drops a pair, and never changes it. With the default thresholds, the filters drop only a few of 10,000
pairs that people translated. A word is a sequence of characters without spaces, or a single Han or Kana character.
"""

import re
from collections import defaultdict
from dataclasses import dataclass
from hashlib import blake2b

from mt.data.corpus import SentencePair
from mt.data_config import CleaningConfig
from mt.languages import language_name, likely_script, three_letter_code

UNSPACED = "\u3041-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
"""Ranges of Kana and Han characters, for use between the brackets of a regular expression."""

WORD = re.compile(f"[{UNSPACED}]|[^\\s{UNSPACED}]+")
WIDE = re.compile(f"[{UNSPACED}\u3000-\u303f\uac00-\ud7af\uff01-\uff60]")

# Digits on both sides of a thousands separator (1,000 1.000 1'000 1 000) are one number. Digits on both sides of a
# decimal separator are two numbers.
NUMBER = re.compile("\\d+(?:[.,'\u2019 \u00a0\u2009\u202f]\\d{3}(?!\\d))*")

SCRIPTS = {
    "Latn": "A-Za-z\u00aa\u00ba\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f\u1e00-\u1eff",
    "Grek": "\u0370-\u03ff\u1f00-\u1fff",
    "Cyrl": "\u0400-\u052f",
    "Armn": "\u0530-\u058f",
    "Hebr": "\u0590-\u05ff",
    "Arab": "\u0600-\u06ff\u0750-\u077f\u08a0-\u08ff\ufb50-\ufdff\ufe70-\ufefc",
    "Deva": "\u0900-\u097f",
    "Beng": "\u0980-\u09ff",
    "Guru": "\u0a00-\u0a7f",
    "Gujr": "\u0a80-\u0aff",
    "Taml": "\u0b80-\u0bff",
    "Telu": "\u0c00-\u0c7f",
    "Knda": "\u0c80-\u0cff",
    "Mlym": "\u0d00-\u0d7f",
    "Thai": "\u0e00-\u0e7f",
    "Laoo": "\u0e80-\u0eff",
    "Mymr": "\u1000-\u109f",
    "Geor": "\u10a0-\u10ff\u1c90-\u1cbf",
    "Ethi": "\u1200-\u137f",
    "Khmr": "\u1780-\u17ff",
    "Hani": "\u3005\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff",
    "Kana": "\u3041-\u30ff\u31f0-\u31ff",
    "Hang": "\u1100-\u11ff\u3130-\u318f\uac00-\ud7af",
}
"""Ranges of the letters of each script (ISO 15924), for use between the brackets of a regular expression."""

MIXED_SCRIPTS = {
    "Hans": ("Hani",),
    "Hant": ("Hani",),
    "Jpan": ("Hani", "Kana"),
    "Kore": ("Hang", "Hani"),
    "az": ("Latn", "Cyrl", "Arab"),
    "bs": ("Latn", "Cyrl"),
    "ku": ("Latn", "Arab", "Cyrl"),
    "pa": ("Guru", "Arab"),
    "sd": ("Arab", "Deva"),
    "sr": ("Latn", "Cyrl"),
    "uz": ("Latn", "Cyrl"),
}
"""Keys of SCRIPTS for each code of ISO 15924 that combines scripts, and for each language with several scripts."""

HEADER_WORDS = (frozenset({"source", "src"}), frozenset({"target", "tgt", "trg"}))
OTHER_HEADER_WORDS = frozenset({"text", "sentence", "segment", "language", "lang", "translation"})

EXAMPLES = 3
FEW_WORDS = 3
"""Maximum number of words of a text that may be an untranslated name, such as "Azure Cosmos DB"."""


@dataclass(frozen=True)
class DropCount:
    """Number of pairs that were dropped for one reason.

    `examples` has the first of these pairs, in the form "file:line: source ||| target".
    """

    reason: str
    count: int
    examples: tuple[str, ...]


def is_empty(source: str, target: str) -> bool:
    """Return whether the source or the target has neither letters nor digits."""
    return not (any(map(str.isalnum, source)) and any(map(str.isalnum, target)))


def has_more_words(source: str, target: str, limit: int) -> bool:
    return any(len(text) > limit and len(WORD.findall(text)) > limit for text in (source, target))


def has_more_characters(source: str, target: str, limit: int) -> bool:
    return max(len(source), len(target)) > limit


def is_lopsided(source: str, target: str, ratio: float) -> bool:
    """Return whether the longer text has more than ratio * (length of the shorter text) + 10 characters.

    The 10 characters allow for short pairs, such as "Thanks." and "Vielen herzlichen Dank!". A Han, Kana or Hangul
    character counts as three, because a Han character corresponds to about three Latin letters (3.2 in tatoeba en-zh,
    3.6 in docs en-zh).
    """
    shorter, longer = sorted(len(text) + 2 * len(WIDE.findall(text)) for text in (source, target))
    return longer > ratio * shorter + 10


def is_identical(source: str, target: str) -> bool:
    """Return whether source and target are equal, except for spaces and letter case, and longer than FEW_WORDS words.

    Untranslated training pairs teach a model to copy the source (Ott et al. 2018).
    """
    words = source.casefold().split()
    return words == target.casefold().split() and len(WORD.findall(source)) > FEW_WORDS


def differs_in_digits(source: str, target: str) -> bool:
    """Return whether both texts have a long number that the other text lacks.

    A long number has at least four digits. If only one text has a long number, the other text may spell it out.
    Translations often have other short numbers: 7:30 pm is 19.30 Uhr, the 1990s are the 90s, 10,000 is 1万.
    """
    if not re.search(r"\d{4}|\d\D\d{3}", source) or not re.search(r"\d{4}|\d\D\d{3}", target):
        return False
    return _has_unmatched_number(source, target) and _has_unmatched_number(target, source)


def _has_unmatched_number(text: str, other: str) -> bool:
    digits = _digits(other)
    numbers = (_digits(number) for number in NUMBER.findall(text))
    return any(len(number) >= 4 and number not in digits for number in numbers)


def _digits(text: str) -> str:
    """Return all digits of `text`, without other characters. Digits such as ٢ and ２ are converted to 0 to 9."""
    return "".join(str(int(digit)) for digit in re.findall(r"\d", text))


def is_repetitive(source: str, target: str, limit: int) -> bool:
    """Return whether source or target repeats a phrase of one to four words more than `limit` times in a row."""
    return any(_repetition(WORD.findall(text), limit) > limit for text in (source, target))


def _repetition(words: list[str], limit: int) -> int:
    """Return how often in a row the most repeated phrase of one to four words occurs.

    Return 1 without a search if fewer than `limit` words are repetitions of earlier words.
    """
    if len(words) - len(set(words)) < limit:
        return 1
    longest = 0
    for size in range(1, 5):
        run = 0
        for word, before in zip(words[size:], words, strict=False):
            run = run + 1 if word == before else 0
            longest = max(longest, run // size)
    return 1 + longest


def script_letters(language: str) -> re.Pattern[str] | None:
    """Return a pattern for one letter of the scripts in which `language` is written, or None if they are unknown."""
    script = likely_script(language)
    names = MIXED_SCRIPTS.get(language) or MIXED_SCRIPTS.get(script) or (script,)
    blocks = "".join(SCRIPTS.get(name, "") for name in names)
    return re.compile(f"[{blocks}]") if blocks else None


def is_in_another_script(text: str, letters: re.Pattern[str], least: float) -> bool:
    """Return whether less than a fraction `least` of the words has a letter that `letters` matches.

    Words without any letter are ignored. Return False for texts of up to FEW_WORDS words. Words are counted instead of
    letters because Chinese documentation has many long Latin product names.
    """
    words = WORD.findall(text)
    hits = sum(1 for word in words if letters.search(word))
    if hits >= least * len(words):  # the answer is known before words without letters are excluded
        return False
    with_letters = sum(1 for word in words if any(map(str.isalpha, word)))
    return with_letters > FEW_WORDS and hits < least * with_letters


def is_header(pair: SentencePair, languages: tuple[str, str]) -> bool:
    """Return whether a pair is the first line of its file and consists of column names, such as `en` and `de`.

    `languages` are the source and the target language.
    """
    if pair.line != 1:
        return False
    for text, language, names in zip((pair.source, pair.target), languages, HEADER_WORDS, strict=True):
        of_language = f"{language} {three_letter_code(language)} {language_name(language)}".casefold()
        names = names.union(re.findall(r"[^\W\d_]+", of_language))
        words = set(re.findall(r"[^\W\d_]+", text.casefold()))
        if not words & names or not words <= names | OTHER_HEADER_WORDS:
            return False
    return True


class Cleaner:
    """The filters for one direction, with counts and examples of all pairs that they have dropped so far."""

    def __init__(self, options: CleaningConfig, languages: tuple[str, str]) -> None:
        """Create filters for `languages`: the source and the target language."""
        self.options = options
        self.languages = languages
        self.counts: dict[str, int] = defaultdict(int)
        self._letters = tuple(map(script_letters, languages))
        self._examples: dict[str, list[str]] = defaultdict(list)
        self._seen: set[bytes] = set()

    def check(self, pair: SentencePair) -> str | None:
        """Return the reason to drop `pair`, or None if it is to be kept. Dropped pairs are counted by reason.

        A pair is dropped as a duplicate if an equal pair was kept before.
        """
        reason = "header row" if is_header(pair, self.languages) else self.reason(pair.source, pair.target)
        if reason is not None:
            self.counts[reason] += 1
            if len(self._examples[reason]) < EXAMPLES:
                self._examples[reason].append(f"{pair.file}:{pair.line}: {pair.source} ||| {pair.target}")
        return reason

    def reason(self, source: str, target: str) -> str | None:
        """Return the reason of the first filter that drops the pair, or None if no filter does."""
        options = self.options
        if is_empty(source, target):
            return "empty"
        if options.max_characters and has_more_characters(source, target, options.max_characters):
            return "too long"
        if options.max_words and has_more_words(source, target, options.max_words):
            return "too long"
        if options.max_length_ratio and is_lopsided(source, target, options.max_length_ratio):
            return "length ratio"
        if options.drop_identical and is_identical(source, target):
            return "identical"
        if options.match_digits and differs_in_digits(source, target):
            return "digits differ"
        if options.max_repetition and is_repetitive(source, target, options.max_repetition):
            return "repetition"
        if any(
            letters and is_in_another_script(text, letters, options.min_script_share)
            for text, letters in zip((source, target), self._letters, strict=True)
        ):
            return "wrong script"
        if options.deduplicate and self._seen_before(source, target):
            return "duplicate"
        return None

    def report(self) -> list[DropCount]:
        """Return the counts and examples of all pairs dropped so far, by reason, the most frequent reason first."""
        reasons = sorted(self.counts, key=lambda reason: -self.counts[reason])
        return [DropCount(reason, self.counts[reason], tuple(self._examples[reason])) for reason in reasons]

    def _seen_before(self, source: str, target: str) -> bool:
        """Return whether an earlier pair had the same 64-bit hash. Also record the hash.

        With ten million pairs, the probability that any two different pairs have the same hash is 1 / 370,000.
        """
        key = blake2b(f"{source.strip()}\n{target.strip()}".encode(), digest_size=8).digest()
        if key in self._seen:
            return True
        self._seen.add(key)
        return False
