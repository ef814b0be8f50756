"""Generation of inflected forms of words from the regular endings of each language, without a dictionary."""

import re
from collections.abc import Iterable, Iterator
from enum import Enum
from functools import cache
from typing import Any

from mt.languages import primary_language
from mt.text.word_tables import read_tables

LONGEST_INFLECTED = 60  # characters of a term; a longer one is a phrase and would have 300 forms
_SPACE = re.compile(r"\s+")


class NounNumber(Enum):
    """Forms of a term that a translation may have."""

    SINGULAR = "singular"
    PLURAL = "plural"  # those of the singular in languages without rules for nouns
    ANY = "any"


_ADJECTIVAL = {"de": ("e", "em", "en", "er", "es")}  # endings of adjectives, any of which one in a term may have
_ENDS_IN_VOWEL = {"cs", "it", "pl", "ru", "sk", "uk"}  # languages in which an ending may replace the last vowel
_VOWELS = frozenset("aeiouyáéíóúýěůąęаеёиоуыэюяіїє")
_PARTS = re.compile(r" (?:(?:à|aux?|da|de|des|di|do|du|en|para|por|pour|sur)\b|d['’]).*")
_WITHOUT_UMLAUT = str.maketrans("äöüÄÖÜ", "aouAOU")
_ROMANCE = frozenset({"es", "fr", "pt"})
_UMLAUTS = {"de": (("au", "äu"), ("a", "ä"), ("o", "ö"), ("u", "ü"))}
_NO_SECOND_E = frozenset({"da", "de", "nb", "nl", "no", "sv"})
_LEAST = {"en": 3, "cs": 3, "pl": 3, "ru": 3, "sk": 3, "uk": 3}
_LEAST_LETTERS = 4  # minimum number of letters of a stem, for languages that _LEAST does not contain
_NO_PLURALS = frozenset({"does", "goes", "news", "his", "this", "thus", "yes"})
_COMPOUNDING = frozenset({"da", "de", "fi", "nb", "nl", "no", "sv"})
_LEAST_COMPOUND = 5  # minimum number of letters of a word that forms compounds


@cache
def _rules(kind: str, language: str) -> Any:
    return read_tables("inflection.toml")[kind].get(language)


def has_endings(language: str) -> bool:
    """Return whether the regular endings of a language are known."""
    return _rules("endings", primary_language(language)) is not None


def possible_stems(word: str, language: str) -> Iterator[str]:
    """Yield the word, then each possible base form: the word with an ending removed or replaced."""
    yield word
    language = primary_language(language)
    if not has_endings(language) or word.lower() in _NO_PLURALS or word.endswith(("ss", "us")):
        return
    least = _LEAST.get(language, _LEAST_LETTERS)
    if language == "en" and word.endswith("ies") and len(word) > least + 1:
        yield f"{word[:-3]}y"
    for ending in _rules("endings", language).split():
        stem = word[: -len(ending)]
        if word.endswith(ending) and len(stem) >= least:
            if not (language == "en" and ending == "es" and not stem.endswith(("s", "x", "z", "ch", "sh", "o"))):
                yield stem
                if language == "de":  # of a plural such as Verträge
                    yield stem.translate(_WITHOUT_UMLAUT)
            if language in _ENDS_IN_VOWEL:
                yield from (stem + vowel for vowel in sorted(_VOWELS) if vowel != ending)


def inflected_forms(term: str, language: str, number: NounNumber = NounNumber.ANY) -> list[str]:
    """Return a term and its possible inflected forms; of the plural, only forms that differ, if there are any.

    A term of more than LONGEST_INFLECTED characters is not inflected.
    """
    language = primary_language(language) if len(term) <= LONGEST_INFLECTED else ""
    part = _PARTS.search(term) if language in _ROMANCE else None
    *before, last = _SPACE.split(term[: part.start() if part else None].strip())
    if language in _ROMANCE and (before or part):  # all words of the plural agree
        plural = " ".join(_word_forms(word, language, NounNumber.PLURAL)[0] for word in [*before, last])
        plural += part[0] if part else ""
        return [plural] if number is NounNumber.PLURAL else [term, plural][: 1 if number is NounNumber.SINGULAR else 2]
    heads = list(dict.fromkeys(" ".join([*words, ""]) for words in _agreeing(before, language)))
    return list(dict.fromkeys(head + form for head in heads for form in _word_forms(last, language, number)))


def with_usual_cases(nouns: Iterable[str], text: str, language: str) -> str:
    """Return a text in a language without the genitives and datives of German nouns that no word before asks for."""
    before_genitive, before_dative = read_tables("inflection.toml")["other_cases"].values()
    for noun in filter(str.isalpha, nouns) if primary_language(language) == "de" else ():
        one, *others = inflected_forms(noun, "de", NounNumber.SINGULAR)
        many = inflected_forms(noun, "de", NounNumber.PLURAL)
        for form in [other for other in others if other.endswith("s") and other not in many]:
            text = re.sub(rf"({before_genitive}){form}(?!\w)", rf"\1{one}", text)
        if f"{many[0]}n" in many:
            text = re.sub(rf"({before_dative}){many[0]}n(?!\w)", rf"\1{many[0]}", text)
    return text


def number_of_form(form: str, language: str) -> NounNumber:
    """Return PLURAL for a form with the ending of a plural, ANY for one that may be a case, such as `Angebots`."""
    pattern = _rules("plural", primary_language(language))
    return NounNumber.PLURAL if pattern and re.search(f"(?:{pattern})$", form) else NounNumber.ANY


def forms_compounds(term: str, language: str) -> bool:
    """Return whether a longer word that begins with `term` may be a compound, as in German."""
    return primary_language(language) in _COMPOUNDING and len(term) >= _LEAST_COMPOUND


def add_umlaut(word: str, language: str) -> str:
    """Return a German word with its last stem vowel changed to an umlaut; return words of other languages unchanged."""
    for plain, umlaut in _UMLAUTS.get(primary_language(language), ()):
        vowel = re.compile(rf"{plain}(?=[^aeiouäöüy]*(?:e[lrn])?$)")
        if vowel.search(word):
            return vowel.sub(umlaut, word)
    return word


def _word_forms(word: str, language: str, number: NounNumber) -> list[str]:
    if len(word) < _LEAST.get(language, 3) or not word[-1].isalpha() or not has_endings(language):
        return [word]
    changed, rules = word, (_rules("nouns", language) or []) if language != "de" or word[0].isupper() else []
    endings: str = _rules("endings", language)
    if word[-1] == "e" and language in _NO_SECOND_E and not rules:
        endings = " ".join(ending for ending in endings.split() if not ending.startswith("e"))
    singular, plural = next((row[1:] for row in rules if re.search(f"(?i:{row[0]})$", word)), (endings, endings))
    for umlaut, ends in (_umlauts() if rules and language == "de" else {}).items():
        if ends.search(word.lower()):
            changed, plural = add_umlaut(word, language), umlaut
            break
    plurals = [changed[: len(changed) - end.count("<")] + end.strip("<-") for end in plural.split()]
    if number is NounNumber.PLURAL and rules:
        return plurals
    forms = [word, *(word + ending for ending in singular.split()), *(() if number is NounNumber.SINGULAR else plurals)]
    if language in _ENDS_IN_VOWEL and word[-1] in _VOWELS:
        forms += [word[:-1] + ending for ending in ["", *endings.split()]]
    return forms


@cache
def _umlauts() -> dict[str, re.Pattern[str]]:
    """Return, by the endings of the plural, the ends of German nouns whose plural has an umlaut."""
    tables = read_tables("inflection.toml")["umlauts"]
    return {endings: re.compile(f"(?:{'|'.join(ends.split())})$") for endings, ends in tables.items()}


def _agreeing(words: list[str], language: str) -> Iterator[list[str]]:
    """Yield `words`, then, for each adjectival ending of the language, `words` with this ending on each adjective."""
    endings = _ADJECTIVAL.get(language, ())
    stems = [_remove_ending(word, endings) if word.islower() else "" for word in words]
    yield words
    for ending in endings if any(stems) else ():
        yield [stem + ending if stem else word for stem, word in zip(stems, words, strict=True)]


def _remove_ending(word: str, endings: tuple[str, ...]) -> str:
    """Return `word` without the longest matching ending, or "" if no ending matches or the stem would be too short."""
    ending = max((ending for ending in endings if word.endswith(ending)), key=len, default="")
    return word[: -len(ending)] if ending and len(word) - len(ending) >= _LEAST_LETTERS - 1 else ""
