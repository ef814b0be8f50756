"""Search for glossary terms and untranslatable words in sentences, and for translated terms in translations."""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from heapq import merge
from itertools import accumulate

from mt.errors import RequestError, problems
from mt.languages import primary_language
from mt.text.alignment import WIDE, Range, is_wide
from mt.text.inflection import forms_compounds, has_endings, inflected_forms, possible_stems
from mt.text.normalise import normalise_text
from mt.text.term_index import (
    SEPARATOR,
    TOKEN,
    IndexedTerm,
    IndexEntry,
    IndexPreparation,
    LetterCase,
    TermIndex,
    case_variants,
    token_keys,
)

MOST_TERMS = 20_000
LONGEST_TERM = 500  # maximum number of characters of a term
_CACHED_TRANSLATIONS = 1024  # number of translations with cached patterns; a sentence can have as many terms
_MOST_PROBLEMS = 20  # maximum number of problems that an error lists

_POSSESSIVE = re.compile(r"s\b")
_SPACES = re.compile(r"\s{2,}|[^\S ]")  # white space other than a single space
_CHARACTER = re.compile(r"\s+|\S")
_WIDE = re.compile(rf"(?!\s)[{WIDE}]")
_PRIVATE = 0xF0000  # first code point of a private-use plane of Unicode
_QUIET = frozenset("\"'„“”«»‹›‘’([{¿¡-–—*_ ")
"""Characters that may precede the first word of a sentence."""

_JOINS = frozenset("-_@/'’‐‑")
"""Characters that join the words around them into one."""


@dataclass(frozen=True, slots=True)
class TermMatch:
    """A term at `sentence[begin:end]`. `translation` is None if the term must not be translated."""

    begin: int
    end: int
    translation: str | None
    inflected: bool = False  # whether the last word has another inflectional ending than in the glossary


@dataclass(frozen=True)
class Terms:
    """A glossary of (term, translation) pairs, and words that must not be translated.

    A term matches whole words or, in scripts without spaces, any characters. If several terms match, the longest is
    used. A term in lower case also matches with a capital at the beginning of a sentence. The last word of a glossary
    term may have an inflectional ending in the sentence.

    Raises: RequestError with a list of the invalid terms.
    """

    glossary: tuple[tuple[str, str], ...] = ()
    untranslated: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        wrong = list(self._problems())
        if len(wrong) > _MOST_PROBLEMS:
            wrong = [*wrong[:_MOST_PROBLEMS], f"and {len(wrong) - _MOST_PROBLEMS} more"]
        if wrong:
            raise RequestError(problems("the terms cannot be used", wrong))

    def __bool__(self) -> bool:
        return bool(self.glossary or self.untranslated)

    def __getstate__(self) -> dict[str, object]:
        return {"glossary": self.glossary, "untranslated": self.untranslated}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state)

    def find(
        self, sentence: str, language: str, taken: Sequence[Range] = (), any_case: bool = False
    ) -> tuple[TermMatch, ...]:
        """Return the disjoint matches in a normalised sentence, in order. No match overlaps a range of `taken`.

        If `any_case` is true, letter case is ignored, for a sentence in ALL CAPS or Title Case.
        """
        if not self:
            return ()
        return tuple(_Search(self, sentence, language, taken, any_case).matches())

    def prepare(self) -> Iterator[None]:
        """Return an iterator that builds the indexes for `find` in steps of bounded time.

        All calls return the same iterator. Several threads may use it.
        """
        return self._preparation

    def index(self, case: LetterCase) -> TermIndex:
        """Return the index of the terms for one way of comparing case. The first call completes `prepare`."""
        preparation = self._preparation
        for _ in preparation:
            pass
        return preparation.indexes[case]

    @cached_property
    def _preparation(self) -> "IndexPreparation":
        return IndexPreparation(tuple(self._entries()))

    def _entries(self) -> Iterator[tuple[str, str | None]]:
        yield from ((term.strip(), translation.strip()) for term, translation in self.glossary)
        yield from ((word.strip(), None) for word in self.untranslated)

    def _problems(self) -> Iterator[str]:
        total = len(self.glossary) + len(self.untranslated)
        if total > MOST_TERMS:
            yield f"the number of terms is {total:,}; accepted: at most {MOST_TERMS:,}"
            return
        known: dict[str, str | None] = {}
        for number, (text, translation) in enumerate(self._entries(), 1):
            where = (
                f"term {number}" if number <= len(self.glossary) else f"untranslated word {number - len(self.glossary)}"
            )
            if not TOKEN.search(normalise_text(text).text):
                yield f"{where} is {text!r}; accepted: text with a word"
            elif translation is not None and not translation.strip():
                yield f"{where}, {text[:40]!r}, has the translation {translation!r}; accepted: text"
            yield from (
                f"{where} has {len(side):,} characters; accepted: at most {LONGEST_TERM}"
                for side in (text, translation or "")
                if len(side) > LONGEST_TERM
            )
            if any(character in "\n\r\t\0\u2028\u2029\x0b\x0c\x85" for character in text + (translation or "")):
                yield f"{where}, {text[:40]!r}, contains a line break, a tab or NUL; accepted: one line"
            if text and known.setdefault(text, translation) != translation:
                both = (known[text], translation)
                listed = " and ".join("none" if one is None else repr(one[:40]) for one in both)
                yield f"{where}, {text[:40]!r}, has the translations {listed}; accepted: one of them"


class _Search:
    """The search for terms in one sentence.

    At each token, the longest permitted match is chosen. Whether a match is permitted depends only on its first and
    last token.
    """

    def __init__(self, terms: Terms, sentence: str, language: str, taken: Sequence[Range], any_case: bool) -> None:
        self.sentence, self.language, self.any_case = sentence, language, any_case
        self.index = terms.index
        self.tokens = list(TOKEN.finditer(sentence))
        self.keys = {case: token_keys(self.tokens, case) for case in {LetterCase.EXACT, self._case(begins=False)}}
        self.keys[LetterCase.CAPITAL] = self.keys[LetterCase.EXACT]
        self.joined = {case: "".join(keys) for case, keys in self.keys.items()}
        # The offset of each key in `joined`.
        self.places = {case: [0, *accumulate(map(len, keys))] for case, keys in self.keys.items()}
        self.stems: dict[str, set[str]] = {}
        self.stop = self._free_ends(sorted(taken))

    def matches(self) -> Iterator[TermMatch]:
        begins = not self.sentence[: self.tokens[0].start()].strip() if self.tokens else False
        at = 0
        while at < len(self.tokens):
            token = self.tokens[at]
            end, term = at + 1, None
            if self.stop[at] > at and not _joined(self.sentence, token.start() - 1):
                end, term = self._longest(at, self.index(self._case(begins)))
            if term is not None:
                inflected = term.last.casefold() != self.tokens[end - 1][0].casefold()
                yield TermMatch(token.start(), self.tokens[end - 1].end(), term.translation, inflected)
            begins = begins and token[0] in _QUIET
            at = end

    def _case(self, begins: bool) -> LetterCase:
        return LetterCase.IGNORED if self.any_case else LetterCase.CAPITAL if begins else LetterCase.EXACT

    def _free_ends(self, taken: Sequence[Range]) -> list[int]:
        """Return, for each token, the index of the first token at or after it that overlaps a taken range.

        If there is no such token, the index is the number of tokens.
        """
        ends, number, last = [], 0, 0
        blocked = []
        for token in self.tokens:
            while number < len(taken) and taken[number][0] < token.end():
                last = max(last, taken[number][1])
                number += 1
            blocked.append(last > token.start())
        stop = len(self.tokens)
        for place in reversed(range(len(self.tokens))):
            stop = place if blocked[place] else stop
            ends.append(stop)
        return ends[::-1]

    def _longest(self, at: int, index: TermIndex) -> tuple[int, IndexedTerm | None]:
        """Return (index of the token after the match, term) of the longest term that begins at token `at`.

        If no term begins there, return (at + 1, None).
        """
        keys, places, joined = self.keys[index.case], self.places[index.case], self.joined[index.case]
        for length in index.lengths.get(SEPARATOR + keys[at][1:], ()):
            end = at + length
            if length > 1 and end <= self.stop[at]:
                head = SEPARATOR + joined[places[at] + 1 : places[end - 1]]
                entries = index.heads.get(head)
                if entries and (term := self._preferred_term(at, end, entries, keys[end - 1][0], index.case)):
                    return end, term
        if keys[at][1] not in index.initials:  # a stem of a word has the first character of the word
            return at + 1, None
        return at + 1, self._preferred_term(at, at + 1, index.heads.get("", {}), SEPARATOR, index.case)

    def _preferred_term(
        self, at: int, end: int, entries: dict[str, IndexEntry], separator: str, case: LetterCase
    ) -> IndexedTerm | None:
        """Return the preferred term whose last token matches token `end` - 1 of the sentence, or None.

        `entries` maps the key of a last token to the terms with this key. `separator` is the first character of the key
        of token `end` - 1. The match begins at token `at`.
        """
        word, last = self.tokens[at][0], self.tokens[end - 1][0]
        if not entries or _joined(self.sentence, self.tokens[end - 1].end(), self.language):
            return None
        folded = case is LetterCase.IGNORED
        exact = entries.get(separator + self.keys[case][end - 1][1:])
        terms = [] if exact is None else [exact.exact]
        if last not in self.stems:
            self.stems[last] = {stem.casefold() if folded else stem for stem in possible_stems(last, self.language)}
        terms += [entries[key].any_form for stem in self.stems[last] if (key := separator + stem) in entries]
        candidates = [term for group in terms for first in (word, None) if (term := group.get(first))]
        return min(candidates, key=lambda term: (-term.length, term.first != word, term.number), default=None)


def missing_terms(matches: Iterable[TermMatch], text: str, language: str) -> list[TermMatch]:
    """Return the matches whose translations do not occur in `text`.

    Inflected and capitalized forms of a translation count as occurrences. Occurrences that overlap count once. If a
    translation is required n times and occurs m < n times, the last n - m of its matches are returned.
    """
    wanted = [match for match in matches if match.translation is not None]
    if not wanted:
        return []
    left: Counter[str] = Counter()
    taken: list[Range] = []
    for translation in sorted({match.translation or "" for match in wanted}, key=len, reverse=True):
        for begin, end in find_translation(translation, text, language):
            place = bisect_left(taken, (begin, end))
            before, after = taken[place - 1 : place], taken[place : place + 1]
            if not (before and before[0][1] > begin) and not (after and after[0][0] < end):
                taken.insert(place, (begin, end))
                left[translation] += 1
    missing = []
    for match in wanted:
        left[match.translation or ""] -= 1
        if left[match.translation or ""] < 0:
            missing.append(match)
    return missing


def find_translation(translation: str, text: str, language: str) -> list[Range]:
    """Return the ranges of `text` that contain a form of `translation`, or a compound that begins with a form."""
    places: list[Range] = []
    text, offsets = _searchable(text)
    for begin in merge(*(_occurrences(start, text) for start in _starts(translation, language))):
        if not places or begin >= places[-1][1]:
            match = _pattern(translation, language).match(text, begin)
            places += [match.span()] if match else []
    return [(offsets[begin], offsets[end - 1] + 1) for begin, end in places]


def _occurrences(part: str, text: str) -> Iterator[int]:
    place = text.find(part)
    while place >= 0:
        yield place
        place = text.find(part, place + 1)


@lru_cache(maxsize=4)
def _searchable(text: str) -> tuple[str, Sequence[int]]:
    """Return the form of a text that is searched, and the offset in `text` of each character of this form.

    A single space replaces each run of white space, and `_without_wide` is applied to the text.
    """
    if _SPACES.search(text) is None:
        return _without_wide(text), range(len(text))
    offsets = [match.start() for match in _CHARACTER.finditer(text)]
    return _without_wide(_SPACES.sub(" ", text)), offsets


def _without_wide(text: str) -> str:
    """Replace each character of a script without spaces by a private-use character, which is not a letter.

    The patterns of terms thus need no character class of these scripts, which would take milliseconds to compile.
    """
    return text if text.isascii() else _WIDE.sub(lambda match: chr(_PRIVATE + ord(match[0])), text)


def _forms_by_letter(translation: str, language: str) -> dict[str, list[str]]:
    """Return the inflected forms of a translation, grouped by first letter and without this letter."""
    forms: dict[str, list[str]] = {}
    for form in map(_without_wide, inflected_forms(translation, language)):
        forms.setdefault(form[0], []).append(form[1:])
    return forms


@lru_cache(maxsize=_CACHED_TRANSLATIONS)
def _starts(translation: str, language: str) -> tuple[str, ...]:
    """Return prefixes such that each inflected form of a translation begins with one of them.

    Searching for the prefixes is much faster than compiling a pattern.
    """
    forms = _forms_by_letter(translation, language).items()
    return tuple({way + _shared_beginning(rests) for first, rests in forms for way in case_variants(first)})


@lru_cache(maxsize=_CACHED_TRANSLATIONS)
def _pattern(translation: str, language: str) -> re.Pattern[str]:
    before = "" if is_wide(translation[0]) or not translation[0].isalnum() else r"(?<![^\W_])"
    after = "" if is_wide(translation[-1]) or not translation[-1].isalnum() else r"(?![^\W\d_])"
    if after and forms_compounds(translation, language):
        after = ""
    elif after and not has_endings(language):
        after = rf"[^\W\d_]{{0,4}}{after}"
    alternatives = "|".join(
        rf"(?:{'|'.join(map(re.escape, case_variants(first)))}){_any_of(rests)}"
        for first, rests in _forms_by_letter(translation, language).items()
    )
    return re.compile(rf"{before}(?:{alternatives}){after}")


def _shared_beginning(texts: Sequence[str]) -> str:
    first, last = min(texts), max(texts)  # in alphabetical order: their common prefix is that of all texts
    return first[: next((n for n, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))]


def _any_of(texts: Sequence[str]) -> str:
    """Return a short regular expression that matches each of `texts` and prefers the longest."""
    shared = _shared_beginning(texts)
    by_letter: dict[str, list[str]] = {}
    for text in texts:
        by_letter.setdefault(text[len(shared) : len(shared) + 1], []).append(text[len(shared) :])
    rests = "|".join(_any_of(group) for letter, group in by_letter.items() if letter)
    optional = "?" if "" in by_letter else ""
    return re.escape(shared) + (f"(?:{rests}){optional}" if rests else "")


def _joined(sentence: str, place: int, language: str = "") -> bool:
    """Return whether the character at offset `place` joins two words into one. The English possessive 's does not."""
    if not (0 <= place < len(sentence)) or sentence[place] not in _JOINS:
        return False
    around = sentence[place - 1 : place] + sentence[place + 1 : place + 2]
    if len(around) < 2 or not around.isalnum():
        return False
    possessive = sentence[place] in "'’" and _POSSESSIVE.match(sentence, place + 1) is not None
    return not (possessive and primary_language(language) == "en")
