"""What is dropped from a training corpus, and why: small pure filters, and a count for each reason.

A filter looks at one pair and rewrites nothing. The defaults are gentle: on human-translated corpora they drop a
few pairs in ten thousand. A word, here, is a run of characters between spaces, or one character of a script that is
written without them (Han, Kana), so that Chinese needs no special case.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import blake2b

from mt.config import CleaningConfig
from mt.data.corpus import Pair

UNSPACED = "\u3041-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
"""Kana and Han, as the inside of a character class."""

WORD = re.compile(f"[{UNSPACED}]|[^\\s{UNSPACED}]+")
WIDE = re.compile(f"[{UNSPACED}\u3000-\u303f\uac00-\ud7af\uff01-\uff60]")

# A thousands separator (each in use somewhere: 1,000 1.000 1'000 1 000) joins a number; a decimal one parts it.
NUMBER = re.compile("\\d+(?:[.,'\u2019 \u00a0\u2009\u202f]\\d{3}(?!\\d))*")

SCRIPTS = {
    "Latin": "A-Za-z\u00aa\u00ba\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f\u1e00-\u1eff",
    "Greek": "\u0370-\u03ff\u1f00-\u1fff",
    "Cyrillic": "\u0400-\u052f",
    "Armenian": "\u0530-\u058f",
    "Hebrew": "\u0590-\u05ff",
    "Arabic": "\u0600-\u06ff\u0750-\u077f\u08a0-\u08ff\ufb50-\ufdff\ufe70-\ufefc",
    "Devanagari": "\u0900-\u097f",
    "Bengali": "\u0980-\u09ff",
    "Gurmukhi": "\u0a00-\u0a7f",
    "Gujarati": "\u0a80-\u0aff",
    "Tamil": "\u0b80-\u0bff",
    "Telugu": "\u0c00-\u0c7f",
    "Kannada": "\u0c80-\u0cff",
    "Malayalam": "\u0d00-\u0d7f",
    "Thai": "\u0e00-\u0e7f",
    "Lao": "\u0e80-\u0eff",
    "Myanmar": "\u1000-\u109f",
    "Georgian": "\u10a0-\u10ff\u1c90-\u1cbf",
    "Ethiopic": "\u1200-\u137f",
    "Khmer": "\u1780-\u17ff",
    "Han": "\u3005\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff",
    "Kana": "\u3041-\u30ff\u31f0-\u31ff",
    "Hangul": "\u1100-\u11ff\u3130-\u318f\uac00-\ud7af",
}
"""Blocks of the Unicode standard that hold a script's letters, as the inside of a character class."""

LANGUAGES_OF_SCRIPTS = {
    ("Latin",): (
        "af ca cs cy da de en es et eu fi fo fr ga gd gl hr ht hu id is it la lb lt lv mg ms mt nb nl nn no pl pt ro "
        "sk sl so sq sv sw tl tr vi xh yo zu"
    ),
    ("Greek",): "el",
    ("Cyrillic",): "be bg kk ky mk mn ru tg uk",
    ("Latin", "Cyrillic"): "bs sr uz",
    ("Armenian",): "hy",
    ("Hebrew",): "he yi",
    ("Arabic",): "ar fa ps sd ug ur",
    ("Devanagari",): "hi mr ne sa",
    ("Bengali",): "as bn",
    ("Gurmukhi", "Arabic"): "pa",
    ("Gujarati",): "gu",
    ("Tamil",): "ta",
    ("Telugu",): "te",
    ("Kannada",): "kn",
    ("Malayalam",): "ml",
    ("Thai",): "th",
    ("Lao",): "lo",
    ("Myanmar",): "my",
    ("Georgian",): "ka",
    ("Ethiopic",): "am ti",
    ("Khmer",): "km",
    ("Han",): "zh yue",
    ("Han", "Kana"): "ja",
    ("Hangul", "Han"): "ko",
}

EXAMPLES = 3
FEW_WORDS = 3
"""Up to so many words may well be a name, `Azure Cosmos DB`, which looks the same in any language."""


@dataclass(frozen=True)
class Dropped:
    """How many pairs one reason took, and the first few: `file:line: source ||| target`."""

    reason: str
    count: int
    examples: tuple[str, ...]


def is_empty(source: str, target: str) -> bool:
    """Has a side neither letter nor digit?"""
    return not (any(map(str.isalnum, source)) and any(map(str.isalnum, target)))


def has_fewer_words(source: str, target: str, least: int) -> bool:
    return min(len(WORD.findall(source)), len(WORD.findall(target))) < least


def has_more_words(source: str, target: str, most: int) -> bool:
    return any(len(text) > most and len(WORD.findall(text)) > most for text in (source, target))


def has_more_characters(source: str, target: str, most: int) -> bool:
    return max(len(source), len(target)) > most


def is_lopsided(source: str, target: str, ratio: float) -> bool:
    """Is one side longer than `ratio` times the other and ten characters?

    The ten characters let short pairs differ freely: "Thanks." is "Vielen herzlichen Dank!". A Han character
    counts as three: one says about as much as three Latin letters (tatoeba en-zh 3.2, docs en-zh 3.6).
    """
    shorter, longer = sorted(len(text) + 2 * len(WIDE.findall(text)) for text in (source, target))
    return longer > ratio * shorter + 10


def is_identical(source: str, target: str) -> bool:
    """Are the sides equal, spaces and case aside, and more than a name or a number?

    Copies in the training data teach a model to copy where it should translate (Ott et al. 2018).
    """
    words = source.casefold().split()
    return words == target.casefold().split() and len(WORD.findall(source)) > FEW_WORDS


def differs_in_digits(source: str, target: str) -> bool:
    """Has each side a number of four digits or more that does not occur in the digits of the other?

    One side alone may have it: the other writes it in words. Shorter numbers may differ: 7:30 pm is 19.30 Uhr, 90
    miles are 140 kilometres, the 1990s are the 90s, 10,000 is 1万.
    """
    if not re.search(r"\d{4}|\d\D\d{3}", source) or not re.search(r"\d{4}|\d\D\d{3}", target):
        return False
    return _has_number_of_its_own(source, target) and _has_number_of_its_own(target, source)


def _has_number_of_its_own(text: str, other: str) -> bool:
    digits = _digits(other)
    numbers = (_digits(number) for number in NUMBER.findall(text))
    return any(len(number) >= 4 and number not in digits for number in numbers)


def _digits(text: str) -> str:
    """The digits alone, and those of other scripts (٢, ２) as 0 to 9."""
    return "".join(str(int(digit)) for digit in re.findall(r"\d", text))


def is_repetitive(source: str, target: str, most: int) -> bool:
    """Does a phrase of one to four words follow upon itself more than `most` times on a side?"""
    return any(_repetition(WORD.findall(text), most) > most for text in (source, target))


def _repetition(words: list[str], enough: int) -> int:
    """How many times in a row the most repeated phrase stands; 1 if there are too few equal words for `enough`."""
    if len(words) - len(set(words)) < enough:
        return 1
    longest = 0
    for size in range(1, 5):
        run = 0
        for word, before in zip(words[size:], words, strict=False):
            run = run + 1 if word == before else 0
            longest = max(longest, run // size)
    return 1 + longest


def letters_of(language: str) -> re.Pattern[str] | None:
    """A letter of the scripts in which a language is written (`zh-CN` as `zh`), or None if we do not know them."""
    code = re.split("[-_]", language.lower())[0]
    for scripts, languages in LANGUAGES_OF_SCRIPTS.items():
        if code in languages.split():
            return re.compile("[" + "".join(SCRIPTS[script] for script in scripts) + "]")
    return None


def is_in_another_script(text: str, letters: re.Pattern[str], least: float) -> bool:
    """Does less than the share `least` of the words that have letters have one of `letters`?

    Words rather than letters, since documentation in Chinese is full of long Latin product names.
    """
    words = WORD.findall(text)
    hits = sum(1 for word in words if letters.search(word))
    if hits >= least * len(words):  # enough of all words is enough of those with letters, and quickly seen
        return False
    with_letters = sum(1 for word in words if any(map(str.isalpha, word)))
    return with_letters > FEW_WORDS and hits < least * with_letters


class Cleaner:
    """Applies the filters to the pairs of one direction, in one or in several corpora, and keeps count."""

    def __init__(self, options: CleaningConfig, *languages: str) -> None:
        """Of source and target; or one language alone, of pairs whose sources are empty."""
        self.options = options
        self.paired = len(languages) == 2
        self.kept = 0
        self.counts: dict[str, int] = defaultdict(int)
        self._letters = tuple(map(letters_of, languages))
        self._examples: dict[str, list[str]] = defaultdict(list)
        self._seen: set[bytes] = set()

    def reason(self, source: str, target: str) -> str | None:
        """Why the pair is to be dropped, or None. Remembers a pair that stays, to know it if it comes again."""
        options = self.options
        if not self.paired:
            source = target  # with itself, a text is no odd pair
        if is_empty(source, target):
            return "empty"
        if has_fewer_words(source, target, options.min_words):
            return "too short"
        if options.max_characters and has_more_characters(source, target, options.max_characters):
            return "too long"
        if options.max_words and has_more_words(source, target, options.max_words):
            return "too long"
        if options.max_ratio and is_lopsided(source, target, options.max_ratio):
            return "length ratio"
        if options.drop_identical and self.paired and is_identical(source, target):
            return "identical"
        if options.match_digits and differs_in_digits(source, target):
            return "digits differ"
        if options.max_repetition and is_repetitive(source, target, options.max_repetition):
            return "repetition"
        if any(
            letters and is_in_another_script(text, letters, options.min_script)
            for text, letters in zip((source, target), self._letters, strict=self.paired)
        ):
            return "wrong script"
        if options.deduplicate and self._seen_before(source, target):
            return "duplicate"
        return None

    def clean(self, pairs: Iterable[Pair]) -> Iterator[Pair]:
        """The pairs that stay, as they are."""
        for pair in pairs:
            reason = self.reason(pair.source, pair.target)
            if reason is None:
                self.kept += 1
                yield pair
                continue
            self.counts[reason] += 1
            if len(self._examples[reason]) < EXAMPLES:
                shown = f"{pair.source} ||| {pair.target}" if self.paired else pair.target
                self._examples[reason].append(f"{pair.file}:{pair.line}: {shown}")

    def report(self) -> list[Dropped]:
        """What was dropped so far, the most frequent reason first."""
        reasons = sorted(self.counts, key=lambda reason: -self.counts[reason])
        return [Dropped(reason, self.counts[reason], tuple(self._examples[reason])) for reason in reasons]

    def _seen_before(self, source: str, target: str) -> bool:
        """By 64 bits of hash: of ten million pairs, one is mistaken for another in one corpus out of 370,000."""
        key = blake2b(f"{source.strip()}\n{target.strip()}".encode(), digest_size=8).digest()
        if key in self._seen:
            return True
        self._seen.add(key)
        return False
