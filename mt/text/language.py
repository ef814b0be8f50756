"""Which language a text is in: py3langid's statistics of letters, and, for short texts, words, letters and scripts.

py3langid 0.4 alone (naive Bayes over byte n-grams) says little of one to three words, and of "the" or "OK" nothing.
So the commonest words of each language, the letters that it does not have, and scripts count, too (languages.toml).
"""

import math
import re
import tomllib
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from py3langid.langid import MODEL_FILE, RAW_FLOOR, LanguageIdentifier
from pydantic import BaseModel, ConfigDict

from mt.text.protect import find

MOST_CHARACTERS = 4000  # of a text that are looked at
MOST_WORDS = 100

# In nats. TEMPERATURE, KNOWN_WORD and RARE lie in the broad valley of least log-loss on 5,800 texts of 3, 10 and 30
# words in en, de, fr, cs and zh, among 2, 5 and all languages, and suit greetings in others; the rest matters less.
KNOWN_WORD = 1.5  # x the information in it: a word that is a common one of few languages speaks for them
STRANGE_LETTER = 3.0  # a letter that it does not have speaks against it
FIRST_SCRIPT = 2.0  # so does it that none is of the script that it is mostly written in
MOST_STRANGE = 4  # letters that are counted, of a language or of a variety
TEMPERATURE = 0.5  # x the square root of the bytes, for the n-grams of a text say the same again and again
RARE = 2.0  # how much less a language is expected that few texts are in
NOT_ASKED = 4.0  # and one that is not among those asked for
VARIETY = 2.0  # a character or word that one of two varieties has speaks for it

_SCRIPTS = {
    "Latin": "A-Za-zªºÀ-ÖØ-öø-ɏḀ-ỿ",
    "Cyrillic": "Ѐ-ԯ",
    "Arabic": "ؠ-يٮ-ۓۺ-ۿݐ-ݿ",
    "Greek": "Ͱ-Ͽἀ-῿",
    "Hebrew": "א-ת",
    "Devanagari": "ऀ-ॣॱ-ॿ",
    "Bengali": "ঀ-৥",
    "Thai": "ก-๎",
    "Han": "々〇㐀-䶿一-鿿豈-﫿𠀀-𲎯",
    "Kana": "ぁ-ゟァ-ヺー-ヿㇰ-ㇿｦ-ﾟ",
    "Hangul": "ᄀ-ᇿㄱ-ㆎ가-힣",
}
_LETTERS = {script: re.compile(f"[{letters}]") for script, letters in _SCRIPTS.items()}
_LETTER = r"(?:[^\W\d_]|[\u0300-\u036f\u0900-\u0dff\u0e31-\u0e4e])"  # or a mark on one
_WORD = re.compile(rf"{_LETTER}+(?:'{_LETTER}+)*")
_ALIASES = {"no": "nb", "pb": "pt", "zt": "zh", "iw": "he", "fil": "tl"}
_USUAL = frozenset(
    [
        *("ar", "cs", "de", "en", "es", "fa", "fr", "hi", "id", "it", "ja"),
        *("ko", "nl", "pl", "pt", "ru", "sv", "tr", "uk", "vi", "zh"),
    ]
)
_SECOND_VARIETIES = frozenset({"zt", "zh-hant", "zh-tw", "zh-hk", "zh-mo", "pb", "pt-br"})


class Language(BaseModel):
    """How a language is written: see languages.toml."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    label: str
    scripts: tuple[str, ...]
    letters: str = ""
    words: str = ""


class Table(BaseModel):
    """languages.toml."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    common: Mapping[str, str]
    varieties: Mapping[str, tuple[str, str]]
    languages: Mapping[str, Language]


@dataclass(frozen=True)
class Text:
    """What is looked at: a text without addresses and the like, its words in small letters, and its letters."""

    plain: str
    words: tuple[str, ...]
    scripts: frozenset[str]
    letters: Mapping[str, int]  # each in small, but for a-z


class Detector:
    """Tells languages apart. `languages` are codes as LibreTranslate has them, or with a region, as `pt-BR`.

    It never changes, so any number of threads may share one. To make one takes a second or two, and 60 MB.
    """

    def __init__(self, languages: Sequence[str]) -> None:
        """Of a language that is not known, no text will be found to be."""
        table = Table.model_validate(tomllib.loads(Path(__file__).with_name("languages.toml").read_text("utf-8")))
        self._known = table.languages
        self._codes: dict[str, list[str]] = {}  # those asked for, by the language that they are of
        self.languages = tuple(dict.fromkeys(languages))
        for code in self.languages:
            if known := _known(code, table.languages):
                self._codes.setdefault(known, []).append(code)
        self._varieties = {
            name: [frozenset(variety.split() if " " in variety else variety) for variety in both]
            for name, both in table.varieties.items()
        }
        words = {name: frozenset(each.words.split()) for name, each in table.languages.items()}
        having = Counter(word for each in words.values() for word in each)
        self._words = {
            name: {word: math.log(len(words) / having[word]) for word in each} for name, each in words.items()
        }
        self._letters = {
            name: frozenset("".join([each.letters, *(table.common.get(script, "") for script in each.scripts)]))
            for name, each in table.languages.items()
            if each.letters
        }
        self._identifier = _identifier({each.label for each in table.languages.values()})

    def detect(self, text: str) -> list[tuple[str, float]]:
        """Each code with the probability that the text is in it, the best first, equal ones in the order given.

        The probabilities add up to less than one where the text may well be in none of these languages. Where there is
        nothing to tell by, as in a number, all are equal.
        """
        read = _read(text)
        if not read.words:
            return [(code, 1 / len(self.languages)) for code in self.languages]
        scores = self._scores(read)
        best = max(scores.values())
        weights = {name: math.exp(score - best) for name, score in scores.items()}
        total = sum(weights.values())
        found = dict.fromkeys(self.languages, 0.0)
        for name, codes in self._codes.items():
            for code, share in self._shares(name, codes, read):
                found[code] = share * weights[name] / total
        return sorted(found.items(), key=lambda each: -each[1])

    def _scores(self, read: Text) -> dict[str, float]:
        """Logarithms of probabilities, but for a constant."""
        statistics = dict(self._identifier.rank(f" {read.plain} "))
        if max(statistics.values()) <= RAW_FLOOR:  # no n-gram of the text is known
            statistics = dict.fromkeys(statistics, 0.0)
        heat = max(1.0, TEMPERATURE * len(read.plain.encode("utf-8", "replace")) ** 0.5)
        scores = {}
        for name, language in self._known.items():
            expected = (0.0 if name in self._codes else -NOT_ASKED) - (0.0 if name in _USUAL else RARE)
            scores[name] = (statistics[language.label] + self._evidence(name, language, read)) / heat + expected
        return scores

    def _evidence(self, name: str, language: Language, read: Text) -> float:
        """What words, letters and scripts say for a language, or, below 0, against it."""
        common = sum(self._words[name].get(word, 0.0) for word in read.words)
        strange = 0
        if own := self._letters.get(name):
            written = [_LETTERS[script] for script in language.scripts]
            strange = sum(
                count
                for letter, count in read.letters.items()
                if letter not in own and any(script.match(letter) for script in written)
            )
        return (
            KNOWN_WORD * common
            - STRANGE_LETTER * min(strange, MOST_STRANGE)
            - FIRST_SCRIPT * (language.scripts[0] not in read.scripts)
        )

    def _shares(self, name: str, codes: Sequence[str], read: Text) -> Iterator[tuple[str, float]]:
        """How likely each of several codes of one language is: equally, but for two varieties of it."""
        second = [code.lower() in _SECOND_VARIETIES for code in codes]
        likely = 0.5
        if name in self._varieties and len(set(second)) == 2:
            units = [*read.plain, *read.words]
            speaks = [sum(unit in variety for unit in units) for variety in self._varieties[name]]
            likely = 1 / (1 + math.exp(VARIETY * max(-MOST_STRANGE, min(speaks[0] - speaks[1], MOST_STRANGE))))
        for code, is_second in zip(codes, second, strict=True):
            share = (likely if is_second else 1 - likely) if len(set(second)) == 2 else 1.0
            yield code, share / second.count(is_second)


def _known(code: str, languages: Mapping[str, Language]) -> str | None:
    """What the table calls the language of a code such as `de`, `de-AT`, `pb`."""
    primary = code.lower().replace("_", "-").split("-")[0]
    name = _ALIASES.get(primary, primary)
    return name if name in languages else None


def _identifier(labels: set[str]) -> LanguageIdentifier:
    """py3langid's model for these labels alone: less than half of its memory."""
    whole = LanguageIdentifier.from_model_file(MODEL_FILE)
    chosen = [number for number, label in enumerate(whole.nb_classes) if label in labels]
    classes = [whole.nb_classes[number] for number in chosen]
    tables = (whole.nb_ptc[:, chosen], whole.nb_pc[chosen], classes, whole.tk_nextmove, whole.tk_output)
    return LanguageIdentifier(*tables, tk_row=whole.tk_row)


def _read(text: str) -> Text:
    text = text[:MOST_CHARACTERS]
    parts, end = [], 0
    for span in find(text):
        parts.append(text[end : span.begin])
        end = span.end
    plain = unicodedata.normalize("NFC", " ".join(" ".join([*parts, text[end:]]).split()))
    words = tuple(_WORD.findall(plain.lower().replace("’", "'")))[:MOST_WORDS]
    letters = Counter(character for word in words for character in word)
    scripts = frozenset(name for name, pattern in _LETTERS.items() if any(map(pattern.match, letters)))
    return Text(plain, words, scripts, {letter: n for letter, n in letters.items() if not letter.isascii()})
