"""Generation of inflected forms of words from the regular endings of each language, without a dictionary."""

import re
from collections.abc import Iterator

from mt.languages import primary_language

LONGEST_INFLECTED = 60
"""Maximum number of characters of a term that is inflected. A longer term is a phrase and would have 300 forms."""

_SPACE = re.compile(r"\s+")
_ENDINGS = {
    "cs": "a e i o u y á é í ě ů ou em ém ím ám ům ech ích ách ami emi ovi ové ého ému",
    "da": "e en et er ene erne n r s t",
    "de": "e em en er ern es n nen s sen ses",
    "en": "s es",
    "es": "s es",
    "fr": "s x e es",
    "it": "i e a o he hi",
    "nb": "e en et er ene n r s t",
    "nl": "s en n e",
    "no": "e en et er ene n r s t",
    "pl": "a e i o u y ę ą ie em om ów ach ami owi ego emu ej ym ych",
    "pt": "s es",
    "ru": "а я о е и ы у ю ой ей ом ем ам ям ах ях ами ями ов ев ого его ому ему ый ий ая яя ое ее ые ие",
    "sk": "a e i o u y á é í ou em ém ím ám om ov och ách ami mi ovi ovia ého ému",
    "sv": "a ar arna en er erna et n na or orna r s t",
    "uk": "а я о е и і у ю ою ею ом ем ам ям ах ях ами ями ів їв ого ому ий а ої",
}
_SINGULAR = {"de": "s es n en", "en": "", "es": "", "fr": "", "nl": "", "pt": ""}
_ADJECTIVAL = {"de": ("e", "em", "en", "er", "es")}
"""Endings of adjectives, by language. In a term such as "grüner Tee", the adjective may have any of them."""

_ENDS_IN_VOWEL = {"cs", "it", "pl", "ru", "sk", "uk"}
"""Languages in which an ending may replace the last vowel of a word."""

_VOWELS = frozenset("aeiouyáéíóúýěůąęаеёиоуыэюяіїє")
_UMLAUTS = {"de": (("au", "äu"), ("a", "ä"), ("o", "ö"), ("u", "ü"))}
_UMLAUT_ENDINGS = ("", "e", "en", "er", "ern", "n")
_NO_SECOND_E = frozenset({"da", "de", "nb", "nl", "no", "sv"})
_LEAST = {"en": 3, "cs": 3, "pl": 3, "ru": 3, "sk": 3, "uk": 3}
_LEAST_LETTERS = 4  # minimum number of letters of a stem, for languages that _LEAST does not contain
_NO_PLURALS = frozenset({"does", "goes", "news", "his", "this", "thus", "yes"})
_COMPOUNDING = frozenset({"da", "de", "fi", "nb", "nl", "no", "sv"})
_LEAST_COMPOUND = 5  # minimum number of letters of a word that forms compounds


def has_endings(language: str) -> bool:
    """Return whether the regular endings of a language are known."""
    return primary_language(language) in _ENDINGS


def possible_stems(word: str, language: str) -> Iterator[str]:
    """Yield the word, then each possible base form: the word with an ending removed or replaced."""
    yield word
    language = primary_language(language)
    if language not in _ENDINGS or word.lower() in _NO_PLURALS or word.endswith(("ss", "us")):
        return
    least = _LEAST.get(language, _LEAST_LETTERS)
    if language == "en" and word.endswith("ies") and len(word) > least + 1:
        yield f"{word[:-3]}y"
    for ending in _ENDINGS[language].split():
        stem = word[: -len(ending)]
        if word.endswith(ending) and len(stem) >= least:
            if not (language == "en" and ending == "es" and not stem.endswith(("s", "x", "z", "ch", "sh", "o"))):
                yield stem
            if language in _ENDS_IN_VOWEL:
                yield from (stem + vowel for vowel in sorted(_VOWELS) if vowel != ending)


def inflected_forms(term: str, language: str, singular: bool = False) -> list[str]:
    """Return a term and its possible inflected forms, without plural forms if `singular` is true.

    A term of more than LONGEST_INFLECTED characters is not inflected.
    """
    language = primary_language(language) if len(term) <= LONGEST_INFLECTED else ""
    *before, last = _SPACE.split(term.strip())
    heads = list(dict.fromkeys(" ".join([*words, ""]) for words in _agreeing(before, language)))
    return list(dict.fromkeys(head + form for head in heads for form in _word_forms(last, language, singular)))


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


def _word_forms(word: str, language: str, singular: bool) -> list[str]:
    if len(word) < _LEAST.get(language, 3) or not word[-1].isalpha() or language not in _ENDINGS:
        return [word]
    endings = (_SINGULAR.get(language, _ENDINGS[language]) if singular else _ENDINGS[language]).split()
    if word[-1] == "e" and language in _NO_SECOND_E:
        endings = [ending for ending in endings if not ending.startswith("e")]
    forms = [word, *(word + ending for ending in endings)]
    if language in _ENDS_IN_VOWEL and word[-1] in _VOWELS:
        forms += [word[:-1] + ending for ending in ["", *_ENDINGS[language].split()]]
    changed = add_umlaut(word, language)
    if changed != word and not singular:
        forms += [changed + ending for ending in _UMLAUT_ENDINGS if ending or word.endswith(("el", "en", "er"))]
    if language == "en" and word.endswith("y") and not singular:
        forms.append(f"{word[:-1]}ies")
    return forms


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
