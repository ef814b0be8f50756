"""Endings of words, as far as they can be told without a dictionary: which words are forms of one that is given."""

import re
from collections.abc import Iterator

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
"""What the words before the last one of a term may end in, one for another."""

_ENDS_IN_VOWEL = {"cs", "it", "pl", "ru", "sk", "uk"}
"""Where endings take the place of the vowel that a word ends in."""

_VOWELS = frozenset("aeiouyáéíóúýěůąęаеёиоуыэюяіїє")
_UMLAUTS = {"de": (("au", "äu"), ("a", "ä"), ("o", "ö"), ("u", "ü"))}
_UMLAUT_ENDINGS = ("", "e", "en", "er", "ern", "n")
_NO_SECOND_E = frozenset({"da", "de", "nb", "nl", "no", "sv"})
_LEAST = {"en": 3, "cs": 3, "pl": 3, "ru": 3, "sk": 3, "uk": 3}
_LEAST_LETTERS = 4  # of a word that is taken to have forms
_NO_PLURALS = frozenset({"does", "goes", "news", "his", "this", "thus", "yes"})
_COMPOUNDING = frozenset({"da", "de", "fi", "nb", "nl", "no", "sv"})
_LEAST_COMPOUND = 5  # letters


def has_endings(language: str) -> bool:
    return language in _ENDINGS


def stems(word: str, language: str) -> Iterator[str]:
    """The word, and what it may be a form of: only what an ending was added to or, where that is usual, changed in."""
    yield word
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


def forms(term: str, language: str, singular: bool = False) -> list[str]:
    """A term in the forms that a translation may have it in, itself first; or in those that are no plural."""
    *before, last = _SPACE.split(term.strip())
    heads = list(dict.fromkeys(" ".join([*words, ""]) for words in _agreeing(before, language)))
    return list(dict.fromkeys(head + form for head in heads for form in _word_forms(last, language, singular)))


def compounds(term: str, language: str) -> bool:
    """Whether a longer word that begins with this one holds it."""
    return language in _COMPOUNDING and len(term) >= _LEAST_COMPOUND


def umlauted(word: str, language: str) -> str:
    """The word with its last vowel changed as a plural may change it, or as it is."""
    for plain, changed in _UMLAUTS.get(language, ()):
        if re.search(rf"{plain}(?=[^aeiouäöüy]*(?:e[lrn])?$)", word):
            return re.sub(rf"{plain}(?=[^aeiouäöüy]*(?:e[lrn])?$)", changed, word)
    return word


def _word_forms(word: str, language: str, singular: bool) -> list[str]:
    if len(word) < _LEAST.get(language, 3) or not word[-1].isalpha() or language not in _ENDINGS:
        return [word]
    endings = (_SINGULAR.get(language, _ENDINGS[language]) if singular else _ENDINGS[language]).split()
    if word[-1] == "e" and language in _NO_SECOND_E:
        endings = [ending for ending in endings if not ending.startswith("e")]
    found = [word, *(word + ending for ending in endings)]
    if language in _ENDS_IN_VOWEL and word[-1] in _VOWELS:
        found += [word[:-1] + ending for ending in ["", *_ENDINGS[language].split()]]
    changed = umlauted(word, language)
    if changed != word and not singular:
        found += [changed + ending for ending in _UMLAUT_ENDINGS if ending or word.endswith(("el", "en", "er"))]
    if language == "en" and word.endswith("y") and not singular:
        found.append(f"{word[:-1]}ies")
    return found


def _agreeing(words: list[str], language: str) -> Iterator[list[str]]:
    """The words before the last, those of them that have endings of an adjective with another, all with the same."""
    endings = _ADJECTIVAL.get(language, ())
    bare = [_without(word, endings) if word.islower() else "" for word in words]
    yield words
    for ending in endings if any(bare) else ():
        yield [stem + ending if stem else word for stem, word in zip(bare, words, strict=True)]


def _without(word: str, endings: tuple[str, ...]) -> str:
    """The word without one of these endings; nothing if it has none, or too little is left."""
    ending = max((ending for ending in endings if word.endswith(ending)), key=len, default="")
    return word[: -len(ending)] if ending and len(word) - len(ending) >= _LEAST_LETTERS - 1 else ""
