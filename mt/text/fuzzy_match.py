"""Fuzzy matches of a translation memory: similarity of sentences, and repair of the translation of a similar sentence.

The similarity of two sentences is 1 - d / n, where d is the Levenshtein distance between their words, and n the number
of words of the longer sentence.
"""

import re
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cache

from mt.text.alignment import WIDE, Range, UnitLinks, find_words
from mt.text.word_tables import profile_name, read_tables

MAX_FUZZY_SCORE = 0.99  # score of a sentence that differs from its match only in white space

_WORD = re.compile(rf"[{WIDE}]|[^\W{WIDE}]+|[^\w\s]")
_LETTERS = re.compile(rf"[^\W_{WIDE}]{{2}}")
_GROWTH = 2  # maximum number of equal words next to a difference that are replaced together with it


@dataclass(frozen=True)
class MemoryMatch:
    """Entry of a translation memory with a source that is similar or equal to `sentence`. `score` is the similarity."""

    sentence: str
    source: str
    target: str
    score: float

    @property
    def exact(self) -> bool:
        return self.score == 1.0


def words(text: str) -> list[str]:
    """Return the words and punctuation marks of a text. A character of a script without spaces counts as a word."""
    return _WORD.findall(text)


def similarity(left: Sequence[Hashable], right: Sequence[Hashable]) -> float:
    """Return the similarity of two sequences of words, from 0 to 1."""
    longest = max(len(left), len(right))
    return 1 - distance(left, right) / longest if longest else 1.0


def distance(left: Sequence[Hashable], right: Sequence[Hashable]) -> int:
    """Return the Levenshtein distance of two sequences.

    Bit i of an integer stands for item i of `left`, so each item of `right` takes only a few operations on integers
    (Hyyrö 2003, "A Bit-Vector Algorithm for Computing Levenshtein and Damerau Edit Distances").
    """
    places: dict[Hashable, int] = {}
    for place, item in enumerate(left):
        places[item] = places.get(item, 0) | 1 << place
    every, last = (1 << len(left)) - 1, 1 << len(left) >> 1
    rises, falls, result = every, 0, len(left)  # differences between vertical neighbours in the table of distances
    for item in right:
        equal = places.get(item, 0)
        diagonal = (((equal & rises) + rises) ^ rises) | equal | falls
        right_rises, right_falls = falls | ~(diagonal | rises) & every, rises & diagonal
        result += bool(right_rises & last) - bool(right_falls & last) if last else 1
        right_rises, right_falls = (right_rises << 1 | 1) & every, right_falls << 1 & every
        rises, falls = right_falls | ~(diagonal | right_rises) & every, right_rises & diagonal
    return result


def adaptable(match: str, sentence: str, language: str) -> bool:
    """Return whether the translation of `match` may be adapted to a similar sentence of the same language.

    The two may differ only in content words and numbers that replace one another one by one. An inserted or removed or
    common word often decides on the form or the meaning of the other words, which a repair keeps.
    """
    pair = words(match), words(sentence)
    decisive = _decisive_words(profile_name(language))
    for kind, old, old_end, new, new_end in SequenceMatcher(None, *pair, autojunk=False).get_opcodes():
        if kind == "equal":
            continue
        differing = [*pair[0][old:old_end], *pair[1][new:new_end]]
        if old_end - old != new_end - new or any(
            not word.isalnum() or word.casefold() in decisive for word in differing
        ):
            return False
        numbers = [word.isdecimal() for word in differing]
        if numbers[: old_end - old] != numbers[old_end - old :]:
            return False
    return True


@cache
def _decisive_words(profile: str) -> frozenset[str]:
    tables = read_tables("language_profiles.toml")
    return frozenset(words(f"{tables['words'].get(profile, '')} {tables['decisive'].get(profile, '')}"))


def repair(match: UnitLinks, plain: UnitLinks) -> str | None:
    """Change the target of a match into a translation of the sentence. Return None if that is not possible.

    The translations of the words of the match's source that differ are replaced by the model's translations of those of
    the sentence (Ortega et al. 2016, "Fuzzy-match Repair Using Black-box Machine Translation Systems").

    `match` links the source and the target of the match, `plain` the sentence and the model's translation.
    """
    edits: list[tuple[Range, str]] = []
    for edit in _edits(match, plain):
        if edit is None:
            return None
        edits.append(edit)
    edits.sort()
    text, end = "", 0
    for (begin, stop), written in edits:
        if begin < end:
            return None
        before = text + match.target[end:begin]
        if _join(before, written) or _join(before + written, match.target[stop:]):
            return None  # the links cut a word in two, or replace a punctuation mark by a word
        text, end = before + written, stop
    return text + match.target[end:]


def _join(before: str, after: str) -> bool:
    """Return whether the last word of `before` and the first word of `after` would become one word."""
    return _LETTERS.fullmatch(before[-1:] + after[:1]) is not None


def _edits(match: UnitLinks, plain: UnitLinks) -> Iterator[tuple[Range, str] | None]:
    """Yield an edit for each difference between the two sources, or None for a difference without an edit.

    An edit is a pair: a range of the match's target, and the text that replaces it.
    """
    match_words, sentence_words = ([links.source[slice(*unit)] for unit in links.left] for links in (match, plain))
    blocks = SequenceMatcher(None, match_words, sentence_words, autojunk=False).get_opcodes()
    sizes = [end - begin if kind == "equal" else 0 for kind, begin, end, _, _ in blocks]
    for number, (kind, old, old_end, new, new_end) in enumerate(blocks):
        if kind == "equal":
            continue
        yield _copied(match, plain, (old, old_end), (new, new_end)) or next(
            (
                (place, plain.target[slice(*source)])
                for before, after in _growths(sum(sizes[max(0, number - 1) : number]), sum(sizes[number + 1 :][:1]))
                if (place := match.translation_of(old - before, old_end + after))
                and (source := plain.translation_of(new - before, new_end + after))
            ),
            None,
        )


def _growths(before: int, after: int) -> Iterator[Range]:
    """Yield pairs (b, a) for replacing a difference together with the b words before it and the a words after it.

    These words are equal in both sources; `before` and `after` are the largest possible b and a. The sums b + a ascend
    to at most _GROWTH. Of equal sums, the larger a comes first: a noun often follows the words that depend on it.
    """
    for total in range(_GROWTH + 1):
        for left in range(min(total, before) + 1):
            if total - left <= after:
                yield left, total - left


def _copied(match: UnitLinks, plain: UnitLinks, match_range: Range, sentence_range: Range) -> tuple[Range, str] | None:
    """Return the edit that replaces copied words, such as numbers and names, or None if the words are not copied.

    The match's words in `match_range` must occur exactly once in its source and its target, the sentence's words in
    `sentence_range` exactly once in the model's translation.
    """
    old, new = (
        links.source[links.left[begin][0] : links.left[end - 1][1]] if begin < end else ""
        for links, (begin, end) in ((match, match_range), (plain, sentence_range))
    )
    places = [find_words(old, match.source), find_words(old, match.target), find_words(new, plain.target)]
    return (places[1][0], new) if all(len(place) == 1 for place in places) else None
