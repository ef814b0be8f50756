"""Terms that a user decides on: how a word is to be translated, and what is not to be translated at all."""

import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from mt.errors import RequestError, problems
from mt.text.inflection import compounds, forms, has_endings, stems
from mt.text.linking import WIDE, Range, is_wide

MOST_TERMS = 20_000
LONGEST_TERM = 500  # characters
_MOST_NAMED = 20  # problems

_TOKEN = re.compile(rf"[{WIDE}]|[^\W_{WIDE}]+|[^\w\s]|_")
_QUIET = frozenset("\"'„“”«»‹›‘’([{¿¡-–—*_ ")
"""What may stand before the first word of a sentence."""

_JOINS = frozenset("-_@/'’‐‑")
"""What makes one word of the two that it stands between."""


@dataclass(frozen=True, slots=True)
class Found:
    """A term in a sentence, in characters. `translation` is None if the term is not to be translated."""

    begin: int
    end: int
    translation: str | None
    inflected: bool = False  # whether it has an ending that the glossary's term has not


@dataclass(frozen=True, slots=True)
class _Token:
    begin: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class _Term:
    text: str
    tokens: tuple[str, ...]
    apart: tuple[bool, ...]  # whether there is white space before each token
    translation: str | None


@dataclass(frozen=True)
class Terms:
    """A glossary of (term, translation), and words that stay as they are.

    A term is found where its words stand: the longest first, and no part of a word. One in small letters is also found
    with a capital at the beginning of a sentence; its last word may have an ending that its language has for plurals
    and cases. Scripts without spaces are compared by characters.

    Raises RequestError, which lists every term that cannot be used.
    """

    glossary: tuple[tuple[str, str], ...] = ()
    untranslated: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        found = list(self._problems())
        if len(found) > _MOST_NAMED:
            found = [*found[:_MOST_NAMED], f"and {len(found) - _MOST_NAMED} more"]
        if found:
            raise RequestError(problems("the terms cannot be used", found))

    def __bool__(self) -> bool:
        return bool(self.glossary or self.untranslated)

    def __getstate__(self) -> dict[str, object]:
        return {"glossary": self.glossary, "untranslated": self.untranslated}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state)

    def find(
        self, sentence: str, language: str, taken: Sequence[Range] = (), any_case: bool = False
    ) -> tuple[Found, ...]:
        """Where the terms are in a sentence of a language, outside the ranges that are taken; in order, and apart.

        `any_case` is for a sentence whose own capitals tell nothing.
        """
        if not self:
            return ()
        tokens = [_Token(*token.span(), token[0]) for token in _TOKEN.finditer(sentence)]
        return tuple(self._find(sentence, tokens, language, sorted(taken), any_case))

    def _find(
        self, sentence: str, tokens: list[_Token], language: str, taken: list[Range], any_case: bool
    ) -> Iterator[Found]:
        begins = not sentence[: tokens[0].begin].strip() if tokens else False
        at = 0
        while at < len(tokens):
            token = tokens[at]
            end = 0
            if not _joined(sentence, token.begin - 1) and not _within(token, taken):
                first = begins or any_case
                for term in self._candidates(token.text, language, first):
                    end = _match(term, sentence, tokens, at, language, first, any_case)
                    if end and not any(_within(each, taken) for each in tokens[at:end]):
                        inflected = term.tokens[-1].casefold() != tokens[end - 1].text.casefold()
                        yield Found(token.begin, tokens[end - 1].end, term.translation, inflected)
                        break
                    end = 0
            begins = begins and token.text in _QUIET
            at = end or at + 1

    def _candidates(self, word: str, language: str, first: bool) -> list[_Term]:
        """The terms that may begin with this word, longest first; of equals, one that has just this form."""
        found: dict[int, _Term] = {}
        for variant in {stem.casefold() if first else stem for stem in stems(word, language)} | {word}:
            found.update((id(term), term) for term in self._index.get(variant.casefold(), ()))
        return sorted(found.values(), key=lambda term: (-len(term.tokens), -len(term.text), term.tokens[0] != word))

    @cached_property
    def _index(self) -> dict[str, list[_Term]]:
        """Terms by the first token, without case."""
        index: dict[str, list[_Term]] = defaultdict(list)
        for text, translation in self._entries():
            found = list(_TOKEN.finditer(text))
            apart = [number > 0 and found[number - 1].end() < token.start() for number, token in enumerate(found)]
            term = _Term(text, tuple(token[0] for token in found), tuple(apart), translation)
            index[term.tokens[0].casefold()].append(term)
        return index

    def _entries(self) -> Iterator[tuple[str, str | None]]:
        yield from ((term.strip(), translation.strip()) for term, translation in self.glossary)
        yield from ((word.strip(), None) for word in self.untranslated)

    def _problems(self) -> Iterator[str]:
        total = len(self.glossary) + len(self.untranslated)
        if total > MOST_TERMS:
            yield f"there are {total:,}; accepted: at most {MOST_TERMS:,}"
            return
        known: dict[str, str | None] = {}
        for number, (text, translation) in enumerate(self._entries(), 1):
            where = f"term {number}" if number <= len(self.glossary) else f"untranslated {number - len(self.glossary)}"
            if not text or not _TOKEN.search(text):
                yield f"{where} is {text!r}: a word"
            elif translation is not None and not any(map(str.isalnum, translation)):
                yield f"{where}, {text[:40]!r}, has the translation {translation!r}: a word"
            yield from (
                f"{where} has {len(each):,} characters; accepted: at most {LONGEST_TERM}"
                for each in (text, translation or "")
                if len(each) > LONGEST_TERM
            )
            if any(character in "\n\r\t\0\u2028\u2029\x0b\x0c\x85" for character in text + (translation or "")):
                yield f"{where}, {text[:40]!r}, holds a line break, a tab or NUL: one line"
            if text and known.setdefault(text, translation) != translation:
                others = [known[text], translation]
                said = " and ".join("left as it is" if other is None else repr(other[:40]) for other in others)
                yield f"{where}, {text[:40]!r}, is to be {said}: one of the two"


def lacking(found: Iterable[Found], text: str, language: str) -> list[Found]:
    """Which of these terms' translations a text does not hold as often as they were found.

    A translation counts in any form that its language may give it, and with a capital; no part of a word counts for
    two. The last of several equal ones are those that lack.
    """
    wanted = [each for each in found if each.translation is not None]
    if not wanted:
        return []
    left: Counter[str] = Counter()
    taken: list[Range] = []
    for translation in sorted({each.translation or "" for each in wanted}, key=len, reverse=True):
        for begin, end in held(translation, text, language):
            place = bisect_left(taken, (begin, end))
            before, after = taken[place - 1 : place], taken[place : place + 1]
            if not (before and before[0][1] > begin) and not (after and after[0][0] < end):
                taken.insert(place, (begin, end))
                left[translation] += 1
    missing = []
    for each in wanted:
        left[each.translation or ""] -= 1
        if left[each.translation or ""] < 0:
            missing.append(each)
    return missing


def held(translation: str, text: str, language: str) -> list[Range]:
    """Where a text holds a translation in one of its forms: at the beginning of a word, compounds of it included."""
    return [found.span() for found in _pattern(translation, language).finditer(text)]


@lru_cache(maxsize=512)
def _pattern(translation: str, language: str) -> re.Pattern[str]:
    ways = sorted({way for form in forms(translation, language) for way in cased(form)}, key=len, reverse=True)
    before = "" if is_wide(translation[0]) or not translation[0].isalnum() else rf"(?<![^\W_{WIDE}])"
    after = "" if is_wide(translation[-1]) or not translation[-1].isalnum() else rf"(?![^\W\d_{WIDE}])"
    if after and compounds(translation, language):
        after = ""
    elif after and not has_endings(language):
        after = rf"[^\W\d_{WIDE}]{{0,4}}{after}"
    alternatives = "|".join(re.escape(way).replace(r"\ ", r"\s+") for way in ways)
    return re.compile(rf"{before}(?:{alternatives}){after}")


def cased(form: str) -> tuple[str, ...]:
    """A form, and the same with a capital, as it is written where a sentence begins."""
    capital = form[:1].upper() + form[1:]
    return (form,) if capital == form else (form, capital)


def _match(
    term: _Term, sentence: str, tokens: list[_Token], at: int, language: str, first: bool, any_case: bool
) -> int:
    """The token at which a term ends that begins at this one; 0 if it is not there."""
    end = at + len(term.tokens)
    if end > len(tokens) or not _apart_alike(term, tokens[at:end]):
        return 0
    for number, (own, token) in enumerate(zip(term.tokens, tokens[at:end], strict=True)):
        inflected = number + 1 == len(term.tokens) and term.translation is not None
        there = stems(token.text, language) if inflected else iter([token.text])
        if not any(_same(own, each, first and number == 0, any_case) for each in there):
            return 0
    return 0 if _joined(sentence, tokens[end - 1].end, language) else end


def _apart_alike(term: _Term, tokens: Sequence[_Token]) -> bool:
    return all(
        apart == (before.end < token.begin) or is_wide(token.text)
        for apart, before, token in zip(term.apart[1:], tokens, tokens[1:], strict=False)
    )


def _same(own: str, there: str, first: bool, any_case: bool) -> bool:
    """Equal; with a capital where one is asked of any word; in any case where case tells nothing."""
    if any_case:
        return own.casefold() == there.casefold()
    return there in cased(own) if first else own == there


def _joined(sentence: str, place: int, language: str = "") -> bool:
    """Whether a mark at this place makes the words around it one. In English an apostrophe may be a possessive."""
    if not (0 <= place < len(sentence)) or sentence[place] not in _JOINS:
        return False
    around = sentence[place - 1 : place] + sentence[place + 1 : place + 2]
    if len(around) < 2 or not around.isalnum():
        return False
    possessive = sentence[place] in "'’" and re.match(r"s\b", sentence[place + 1 :]) is not None
    return not (possessive and language == "en")


def _within(token: _Token, taken: Sequence[Range]) -> bool:
    return any(begin < token.end and end > token.begin for begin, end in taken)
