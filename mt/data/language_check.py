"""Warnings about corpora whose text is in another language than the recipe states, for example in swapped columns."""

from collections.abc import Sequence
from functools import cache

from mt.languages import language_name, primary_language
from mt.text.language_detection import LanguageDetector

SAMPLE = 100  # maximum number of sentence pairs of a sample
LEAST_PAIRS = 10  # samples of fewer pairs are not checked
LEAST_CHARACTERS = 200  # texts of fewer characters are not checked
SURE = 0.9  # minimum probability of another language for a warning
COMMON = ("ar", "cs", "de", "en", "es", "fr", "hi", "it", "ja", "ko", "nl", "pl", "pt", "ru", "sv", "tr", "uk", "zh")


class LanguageSample:
    """Evenly spaced sample of a stream of pairs of unknown length. `add` must be called with each pair.

    `pairs` has all pairs of a short stream, and between SAMPLE / 2 and SAMPLE pairs of a long stream.
    """

    def __init__(self) -> None:
        self.pairs: list[tuple[str, str]] = []
        self._seen = 0
        self._stride = 1

    def add(self, source: str, target: str) -> None:
        if self._seen % self._stride == 0:
            self.pairs.append((source, target))
            if len(self.pairs) == SAMPLE:
                self.pairs = self.pairs[::2]
                self._stride *= 2
        self._seen += 1


def check_languages(
    name: str, columns: Sequence[str], pairs: Sequence[tuple[str, str]], languages: tuple[str, str]
) -> list[str]:
    """Return a warning for the sources and one for the targets, if they are almost surely in an unexpected language.

    `pairs` are a sample of the corpus `name`. `columns` are its languages if it is one file, otherwise (). `languages`
    are the expected languages of sources and targets. Only primary languages are compared: `zh` and `zh-Hant` are
    equal. Return [] for small samples.
    """
    if len(pairs) < LEAST_PAIRS:
        return []
    detector = _detector(languages)
    warnings = []
    for side, language in enumerate(languages):
        text = "\n".join(pair[side] for pair in pairs)
        if len(text) < LEAST_CHARACTERS:
            continue
        detected, probability = detector.detect(text)[0]
        if probability >= SURE and primary_language(detected) != primary_language(language):
            place = f"column {columns.index(language) + 1} of" if columns else "the file of"
            hint = "are the languages swapped?" if detected in languages else "is this the right file?"
            warnings.append(f"{name}: {place} {language!r} reads as {language_name(detected)} ({detected!r}); {hint}")
    return warnings


@cache  # because constructing a detector takes a second
def _detector(languages: tuple[str, ...]) -> LanguageDetector:
    return LanguageDetector((*languages, *(code for code in COMMON if code not in map(primary_language, languages))))
