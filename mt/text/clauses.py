"""Clauses of a sentence: the places at which a long sentence may be divided, and the words that begin a clause."""

import re
from functools import cache
from itertools import pairwise

from mt.languages import primary_language
from mt.text.alignment import Range
from mt.text.word_tables import read_tables

AFTER_CLAUSE, _MARK, SENTENCE_END, _OPEN_LINE, _BEFORE_NOUN, _ITEM = (
    re.compile(pattern) for pattern in read_tables("patterns.toml")["clauses"].values()
)
LIST_SIGN = r"(?:[-–—*•·‣▪◦●■□✓✔➢+]|\d{1,3}[.)]|[A-Za-z]\))[ \t]"
_FIRST_WORD = re.compile(r"\s*([^\W\d_]+)")
BULLET = re.compile(rf"\s*{LIST_SIGN}")
_LONGEST_ITEM, _LONGEST_GREETING = 50, 3  # characters of a line of a list, and words of `Dear Ms Smith,`


@cache
def _words(language: str) -> list[str]:
    """Return the words of a language that begin a clause: conjunctions, words that have other uses, and others."""
    return [table.get(primary_language(language), "") for table in read_tables("clauses.toml").values()]


def clause_ranges(sentence: str, language: str) -> list[Range]:
    """Return the ranges of the clauses of a sentence; there is at least one.

    A clause ends at punctuation, or begins with a conjunction.
    """
    places = {match.end() for match in AFTER_CLAUSE.finditer(sentence)} if _MARK.search(sentence) else set[int]()
    for pattern in conjunctions(language)[:1]:
        places |= {match.end() for match in pattern.finditer(sentence)}
    return [(begin, end) for begin, end in pairwise(sorted({0, *places, len(sentence)}))] or [(0, 0)]


@cache
def conjunctions(language: str) -> tuple[re.Pattern[str], ...]:
    """Return the patterns of the white space before a word that may begin a clause, the better places first."""
    return tuple(re.compile(rf"\s+(?=(?:{one.replace(' ', '|')})\s)") for one in _words(language)[:2] if one)


def may_lower(word: str, language: str) -> bool:
    """Return whether the first word of a translation is capitalised only because it begins a sentence.

    Other words than these may be names. In a language without a table, every word keeps its capital.
    """
    return word.lower() in " ".join(_words(language)[:3]).split()


def begins_clause(text: str, language: str) -> bool:
    """Return whether a text begins with a conjunction, as in `if you come`."""
    word = _FIRST_WORD.match(text)
    return word is not None and word[1].lower() in " ".join(_words(language)[:2]).split()


def goes_on(line: str, language: str) -> bool:
    """Return whether a line may go on with the sentence before it: after a conjunction, a preposition or a verb."""
    word = _FIRST_WORD.match(line)
    return begins_clause(line, language) or (word is not None and word[1] in _words(language)[3].split())


def divides_lines(before: str, after: str, language: str) -> bool:
    """Return whether a text ends at a line break: behind a sentence or nothing, or before a bullet or a capital.

    So does a short one in lower case, or a name, before one in lower case without a word such as "with", and a greeting
    with a comma before a capital. Before others, the last word is capitalised or, in German, stands not before a noun,
    unless in en and fr; or the next one is no noun. `before` is the whole text.
    """
    words, first, name = before.split(), re.match(r"\s*(?!I\b)([^\W\d_]+)", after), primary_language(language)
    if not words or SENTENCE_END.search(before) or BULLET.match(after):
        return True
    is_capital = first is not None and first[1][0].isupper()
    is_greeting = words[-1][-1] == "," and len(words) <= _LONGEST_GREETING
    if _OPEN_LINE.search(before) and not (is_capital and is_greeting):
        return False
    is_name = len(words) > 1 and name != "de" and all(word[0].isupper() for word in words)
    if (_ITEM.match(before) or is_name) and _ITEM.match(after):
        is_whole = bool(_words(language)[3]) and not (goes_on(words[-1], language) or goes_on(after, language))
        return is_whole and not begins_clause(before, language) and len(before) <= _LONGEST_ITEM
    if first is None or not is_capital:
        return False
    is_free = name in ("en", "fr") or not words[-1][0].islower() or (name == "de" and not _BEFORE_NOUN.match(words[-1]))
    return is_free or may_lower(first[1], language)
