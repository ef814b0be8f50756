"""Detection of the language of a text.

The detector combines py3langid 0.4 (naive Bayes over byte n-grams) with the common words, letters and scripts of each
language (language_profiles.toml). py3langid alone is unreliable for texts of one to three words, such as "the" or "OK".
"""

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from py3langid.langid import MODEL_FILE, RAW_FLOOR, LanguageIdentifier

from mt.languages import likely_script
from mt.text.alignment import ranges_between
from mt.text.normalise import normalise_text
from mt.text.protect import find_spans
from mt.text.word_tables import profile_name, read_tables

MOST_CHARACTERS = 4000  # only the first 4000 characters of a text are read
MOST_WORDS = 100  # only the first 100 words of a text are used

# Weights of the evidence, in nats. TEMPERATURE, KNOWN_WORD and RARE minimize the log-loss on 5,800 texts of 3, 10 and
# 30 words in en, de, fr, cs and zh, with 2, 5 and all languages to choose from; the minimum is broad. The other weights
# have little influence.
KNOWN_WORD = 1.5  # for a language, per common word: KNOWN_WORD * log(languages / languages that have the word)
STRANGE_LETTER = 3.0  # against a language, per letter that the language lacks
FIRST_SCRIPT = 2.0  # against a language, if the text has no letter of the usual script of the language
MOST_STRANGE = 4  # maximum number of letters that count against a language or variety
TEMPERATURE = 0.5  # evidence is divided by TEMPERATURE * sqrt(bytes), as the n-grams of a text are not independent
RARE = 2.0  # against a language that is not in _USUAL
NOT_REQUESTED = 4.0  # against a language that was not requested
VARIETY = 2.0  # for a variety, per character or word that only this variety has
# Minimum probability that a text is in a language that was not requested, for reporting that language: of any text,
# and of one with several words of which none is a common one of a requested language.
FOREIGN, FOREIGN_WORDS = 0.9, 0.6

_SCRIPTS = {"Cjk": "Han", "Ideographic": "Han", "Hiragana": "Kana", "Katakana": "Kana", "Katakana-Hiragana": "Kana"}
_ISO_SCRIPTS = {"Latn": "Latin", "Cyrl": "Cyrillic", "Arab": "Arabic"}
_LETTER = r"(?:[^\W\d_]|[\u0300-\u036f\u0900-\u0dff\u0e31-\u0e4e])"  # letters and combining marks
_WORD = re.compile(rf"{_LETTER}+(?:'{_LETTER}+)*")
_NAME = re.compile(r"(?<=\w )[^\W\d_](?<![a-z])[\w'’-]*[a-zà-ÿ][\w'’-]*")  # a word after a word; a name if capitalised
_ALIKE = ({"da", "nb", "nn"}, {"hr", "sr"}, {"id", "ms"})  # languages that short texts do not tell apart
_LABELS = {"nb": "no"}  # labels in py3langid's model that differ from the name of a profile
_USUAL = frozenset("""ar cs de en es fa fr hi id it ja ko nl pl pt ru sv tr uk vi zh""".split())


@dataclass(frozen=True)
class TextFeatures:
    """Features of a text for language detection. Addresses, numbers and placeholders are left out."""

    plain: str
    words: tuple[str, ...]  # in lower case
    scripts: Mapping[str, int]  # number of letters of each script
    letters: tuple[tuple[str, str, int], ...]  # (lower-case letter, script, count), without a-z and compatibility forms


class LanguageDetector:
    """A detector of the language of a text, among several requested languages and the other languages with a profile.

    A detector is immutable and can be shared by threads. Constructing one takes 1 to 2 seconds and 60 MB of memory.
    """

    def __init__(self, languages: Sequence[str]) -> None:
        """Create a detector for language tags. A language without a profile always gets the probability 0."""
        profiles = read_tables("language_profiles.toml")
        self.languages = tuple(dict.fromkeys(languages))
        # Letters by language and script. The first script of a language is its usual one.
        self._letters: dict[str, dict[str, frozenset[str]]] = {}
        for script, letters in profiles["letters"].items():
            for name, extra in letters.items():
                if name != "common":
                    known = frozenset(extra + letters.get("common", "")) if extra else frozenset()
                    self._letters.setdefault(name, {})[script] = known
        self._tags: dict[str, list[str]] = {}  # requested tags by name of the profile
        for tag in self.languages:
            name = profile_name(tag)
            if name in self._letters:
                self._tags.setdefault(name, []).append(tag)
        alike = [group for group in _ALIKE if not group.isdisjoint(self._tags)]
        self._foreign = frozenset(self._letters).difference(self._tags, *alike) if self._tags else frozenset()
        words = {name: frozenset(profiles["words"].get(name, "").split()) for name in self._letters}
        counts = Counter(word for known in words.values() for word in known)
        self._words = {
            name: {word: math.log(len(words) / counts[word]) for word in known} for name, known in words.items()
        }
        self._varieties = {
            name: [frozenset(units.split() if " " in units else units) for units in both]
            for name, both in profiles["varieties"].items()
        }
        self._identifier = _load_identifier({_LABELS.get(name, name) for name in self._letters})

    def detect(self, text: str) -> list[tuple[str, float]]:
        """Return (tag, probability that the text is in this language) for each requested tag, most probable first.

        If the text is surely in a language that was not requested, the likeliest of these languages comes first, with
        the sum of their probabilities. Otherwise, only the sum of all probabilities, which is less than 1, tells that
        the text may be in another language. All probabilities are equal if the text has no words.
        """
        features = _read(text)
        if not features.words:
            return [(tag, 1 / len(self.languages)) for tag in self.languages]
        of_name = self._probabilities(features)
        probabilities = dict.fromkeys(self.languages, 0.0)
        for name, tags in self._tags.items():
            for tag, share in self._shares(name, tags, features):
                probabilities[tag] = share * of_name[name]
        guesses = sorted(probabilities.items(), key=lambda item: -item[1])
        foreign = self._foreign_language(features, of_name)
        return [(foreign, self._foreign_probability(of_name)), *guesses] if foreign else guesses

    def _foreign_language(self, features: TextFeatures, probabilities: Mapping[str, float]) -> str | None:
        """Return the likeliest language that was not requested if a text is surely in such a language, else None.

        Foreign names and quotations do not make a text foreign: it must also be foreign without its capitalised words,
        and must not have more common words of a requested language than of the likeliest language.
        """
        foreign_probability = self._foreign_probability(probabilities)
        if foreign_probability < FOREIGN_WORDS:
            return None
        foreign = max(self._foreign, key=probabilities.__getitem__)
        counts = {name: sum(word in self._words[name] for word in features.words) for name in (foreign, *self._tags)}
        has_words = any(counts[name] for name in self._tags)
        least = FOREIGN if has_words or len(features.words) == 1 else FOREIGN_WORDS
        if foreign_probability < least or counts[foreign] < max(counts.values()):
            return None
        nameless = _read(_NAME.sub(lambda name: "" if name[0][0].isupper() else name[0], features.plain))
        if nameless.words and self._foreign_probability(self._probabilities(nameless)) < least:
            return None
        return foreign

    def _foreign_probability(self, probabilities: Mapping[str, float]) -> float:
        return math.fsum(probabilities[name] for name in self._foreign)

    def _probabilities(self, features: TextFeatures) -> dict[str, float]:
        """Return the probability of each language with a profile."""
        scores = self._scores(features)
        best = max(scores.values())
        weights = {name: math.exp(score - best) for name, score in scores.items()}
        total = sum(weights.values())
        return {name: weight / total for name, weight in weights.items()}

    def _scores(self, features: TextFeatures) -> dict[str, float]:
        statistics = dict(self._identifier.rank(f" {features.plain} "))
        if max(statistics.values()) <= RAW_FLOOR:  # no n-gram of the text is in py3langid's model
            statistics = dict.fromkeys(statistics, 0.0)
        temperature = max(1.0, TEMPERATURE * len(features.plain.encode("utf-8", "replace")) ** 0.5)
        scores = {}
        for name in self._letters:
            prior = (0.0 if name in self._tags else -NOT_REQUESTED) - (0.0 if name in _USUAL else RARE)
            evidence = statistics[_LABELS.get(name, name)] + self._evidence(name, features)
            scores[name] = evidence / temperature + prior
        return scores

    def _evidence(self, name: str, features: TextFeatures) -> float:
        """Return the evidence of words, letters and scripts for a language, in nats.

        A negative value is evidence against the language.
        """
        scripts = self._letters[name]
        known: frozenset[str] = frozenset().union(*scripts.values())
        strange = 0
        if known:
            strange = sum(n for letter, script, n in features.letters if letter not in known and script in scripts)
        return (
            KNOWN_WORD * sum(self._words[name].get(word, 0.0) for word in features.words)
            - STRANGE_LETTER * min(strange, MOST_STRANGE)
            - FIRST_SCRIPT * (next(iter(scripts)) not in features.scripts)
        )

    def _shares(self, name: str, tags: Sequence[str], features: TextFeatures) -> Iterator[tuple[str, float]]:
        """Divide the probability of a language among its `tags`. Yield (tag, share) for each tag.

        Tags of the same variety or script get equal shares.
        """
        groups: dict[object, list[str]] = {}
        for tag in tags:
            second = tag in ("pb", "pt-BR") or likely_script(tag) == "Hant"
            groups.setdefault(second if name in self._varieties else likely_script(tag), []).append(tag)
        evidence = {group: self._variety_evidence(name, group, features) for group in groups}
        highest = max(evidence.values())
        weights = {group: math.exp(VARIETY * max(value - highest, -MOST_STRANGE)) for group, value in evidence.items()}
        for group, members in groups.items():
            for tag in members:
                yield tag, weights[group] / sum(weights.values()) / len(members)

    def _variety_evidence(self, name: str, group: object, features: TextFeatures) -> int:
        """Return the number of characters and words of a text that support a variety or a script of a language.

        `group` is whether it is the second of two varieties, or the ISO 15924 code of a script, whose letters count.
        """
        if name not in self._varieties:
            return features.scripts.get(_ISO_SCRIPTS.get(str(group), ""), 0)
        return sum(unit in self._varieties[name][bool(group)] for unit in [*features.plain, *features.words])


def _load_identifier(labels: set[str]) -> LanguageIdentifier:
    """Return py3langid's model for the languages `labels` only. The complete model needs more than twice the memory."""
    model = LanguageIdentifier.from_model_file(MODEL_FILE)
    chosen = [number for number, label in enumerate(model.nb_classes) if label in labels]
    classes = [model.nb_classes[number] for number in chosen]
    tables = (model.nb_ptc[:, chosen], model.nb_pc[chosen], classes, model.tk_nextmove, model.tk_output)
    return LanguageIdentifier(*tables, tk_row=model.tk_row)


def _script_of(letter: str) -> str:
    """Return the script of a letter, such as `Latin`, `Han` or `Kana`, derived from the letter's Unicode name."""
    word = unicodedata.name(letter, "").partition(" ")[0].title()
    return _SCRIPTS.get(word, word)


def _read(text: str) -> TextFeatures:
    text = normalise_text(text[:MOST_CHARACTERS]).text
    outside = ranges_between([(span.begin, span.end) for span in find_spans(text)], len(text))
    plain = " ".join(" ".join(text[begin:end] for begin, end in outside).split())
    words = tuple(_WORD.findall(plain.lower().replace("’", "'")))[:MOST_WORDS]
    counts = Counter(letter for word in words for letter in word)
    scripts = Counter[str]()
    letters = []
    for letter, count in counts.items():
        scripts[script := _script_of(letter)] += count
        if not letter.isascii() and unicodedata.is_normalized("NFKC", letter):
            letters.append((letter, script, count))
    return TextFeatures(plain, words, scripts, tuple(letters))
