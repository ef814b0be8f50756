"""Negations, which small models lose or invert: `must not` became `muss nicht`, which denies a duty."""

import re
from functools import lru_cache

from mt.languages import primary_language
from mt.text import schedules
from mt.text.alignment import Range
from mt.text.word_tables import read_tables

_TABLES = read_tables("negation.toml")
_CLEAR, _POSSIBLE, _DUTIES, _NO_DUTIES, _NEVER_GUESSES = (
    {language: re.compile(pattern.strip(), re.IGNORECASE) for language, pattern in _TABLES[name].items()}
    for name in ("clear", "possible", "duties", "no_duties", "never_guesses")
)
_HINTS = {language: parts.split() for language, parts in _TABLES["hints"].items()}  # for fast tests
_DUTY_HINTS = {language: parts.split(";") for language, parts in _TABLES["duty_hints"].items()}
_PERMISSIONS = {"muss": "darf", "musst": "darfst", "müssen": "dürfen", "müsst": "dürft"}
_VERB, _CLAUSE, _NOT, _IN_BRACKETS, _WITHOUT = (re.compile(str(pattern)) for pattern in _TABLES["patterns"].values())


def is_lost(source: str, translation: str, languages: tuple[str, str]) -> bool:
    """Return whether a translation lacks the negation of its source, without which its meaning is the opposite."""
    language, target = map(primary_language, languages)
    if language not in _CLEAR or target not in _POSSIBLE:
        return False
    if not any(map(source.lower().__contains__, _HINTS[language])):
        return False
    needed = len(_WITHOUT.findall(source)) + (_CLEAR[language].search(source) is not None)
    return needed > 0 and len(_POSSIBLE[target].findall(translation)) < needed


def lost_remarks(source: str, translation: str, languages: tuple[str, str]) -> list[Range]:
    """Return the ranges of the words in brackets with a negation if a translation lacks one."""
    if "(" not in source or not is_lost(source, translation, languages):
        return []
    return [one.span(1) for one in _IN_BRACKETS.finditer(source) if is_lost(one[1], "", languages)]


@lru_cache(maxsize=4096)
def may_be_guess(word: str, language: str) -> bool:
    """Return whether a word of a translation may stand for a rare word: no negation, duty, direction, day or month."""
    pattern = _NEVER_GUESSES.get(primary_language(language))
    return not (pattern and pattern.fullmatch(word)) and not schedules.has_names(word, language)


def mend_prohibitions(source: str, translation: str, languages: tuple[str, str]) -> str:
    """Return a translation with `darf nicht` or `must not` for prohibitions, if it has a verb for each duty."""
    language, target = map(primary_language, languages)
    if language not in _DUTIES:
        return translation
    if not any(map(source.casefold().__contains__, _DUTY_HINTS[language])):
        return translation  # most sentences, after a faster test than that of a pattern
    duties = [duty["not"] is not None for duty in _DUTIES[language].finditer(source)]
    if not any(duties):
        return translation
    if target == "en" and all(duties) and len(duties) == len(_NO_DUTIES[target].findall(translation)):
        return _NO_DUTIES[target].sub("must not", translation)
    if target != "de" or len(duties) != len(_VERB.findall(translation)):
        return translation
    left = iter(duties)

    def permitted(clause: str) -> str:
        is_negated = _NOT.search(clause) is not None
        return _VERB.sub(lambda verb: _permission(verb[0]) if next(left) and is_negated else verb[0], clause)

    return "".join(map(permitted, _CLAUSE.split(translation)))


def _permission(duty: str) -> str:
    permission = _PERMISSIONS.get(duty.lower(), duty)
    return permission.capitalize() if duty[0].isupper() else permission
