"""What a translation that lacks the terms of its user must hold and must not hold, and the last resort."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from mt.engine.spelling import Manner, Needed
from mt.text.inflection import compounds
from mt.text.linking import CLOSING, Links, Range
from mt.text.terms import Found, cased, held, lacking

LEAST_WEIGHT = 0.1
"""Of what a word of the translation looks at: below it, the word does not stand for a term."""

SURE_WEIGHT = 0.7
"""A word that looks at a term so much stands for it even if another looks more; an article looks at its noun, too."""

_LEAST_LETTERS = 4  # of a word that can be forbidden: shorter ones are articles and the like
_MOST = 12  # translations that a search is asked for; the others are put in afterwards
_NOUNS_IN_CAPITALS = frozenset({"de", "lb"})


def needs(found: Sequence[Found], displaced: Mapping[str, Sequence[str]], links: Links, language: str) -> list[Needed]:
    """What a translation must hold. What the draft has no use for at all must not come more often."""
    times = Counter(each.translation or "" for each in found)
    return [
        Needed(
            translation,
            sum(times[other] for other in times if translation == other or _contains(other, translation)),
            bool(held(translation, links.target, language)),
            tuple(displaced.get(translation, ())),
            Manner(
                compounds(translation, language)
                and any(_part_of_word(each, links) for each in found if each.translation == translation),
                any(each.inflected for each in found if each.translation == translation),
            ),
        )
        for translation in list(times)[:_MOST]
    ]


def displaced(found: Iterable[Found], links: Links, language: str) -> dict[str, list[str]]:
    """The words that a draft has for terms, and for nothing else, by the translations that are to stand there."""
    words = [links.target[begin:end] for begin, end in links.right]
    terms = {unit: each for each in found for unit in _standing(each, links)}
    by: dict[str, list[str]] = {}
    for unit, each in terms.items():
        alone = all(other in terms for other, word in enumerate(words) if word == words[unit])
        if alone and _forbids(words[unit], each.translation or "", unit == 0, language):
            by.setdefault(each.translation or "", []).append(words[unit])
    return by


def doubled(found: Iterable[Found], links: Links, language: str) -> dict[str, list[str]]:
    """Words that stand for a term beside the translation that it was to have."""
    by: dict[str, list[str]] = {}
    there = [span for each in found for span in held(each.translation or "", links.target, language)]
    for each in found:
        for begin, end in (links.right[unit] for unit in _standing(each, links)):
            apart = not any(begin < span[1] and end > span[0] for span in there)
            if apart and _forbids(links.target[begin:end], each.translation or "", begin == 0, language):
                by.setdefault(each.translation or "", []).append(links.target[begin:end])
    return by


def substituted(found: Sequence[Found], text: str, links: Links, language: str) -> str:
    """A translation with terms put where those words stand that look at them most; else before its last mark.

    `text` is what became of `links.target` when what was left out of it was put back.
    """
    for each in lacking(found, text, language):
        translation = each.translation or ""
        taken = [span for other in found for span in held(other.translation or "", text, language)]
        units = sorted(_standing(each, links), key=lambda unit: -links.weights_from((each.begin, each.end))[unit])
        places = [place for unit in units for place in _places(text, links, unit, taken)]
        if places:
            begin, end = places[0]
            text = text[:begin] + cased(translation)[-1 if begin == 0 else 0] + text[end:]
        else:
            end = len(text.rstrip("".join(CLOSING)))
            text = f"{text[:end]} {translation}{text[end:]}".strip()
    for each in lacking(found, text, language):  # whatever stands around it, it is to be there
        text = f"{text} {each.translation}".strip()
    return text


def _standing(term: Found, links: Links) -> list[int]:
    """The units of a translation that stand for a term, words only."""
    weights = links.weights_from((term.begin, term.end))
    most = max(weights, default=0.0)
    return [
        unit
        for unit, weight in enumerate(weights)
        if weight >= min(SURE_WEIGHT, max(LEAST_WEIGHT, most)) and links.target[links.right[unit][0]].isalpha()
    ]


def _part_of_word(term: Found, links: Links) -> bool:
    """Whether the word that stands for a term stands for one beside it, too, as a compound does."""
    sides = [side for side in links.left if side[1] <= term.begin][-1:] + [
        side for side in links.left if side[0] >= term.end
    ][:1]
    weights = [links.weights_from(side) for side in sides]
    return any(line[unit] >= LEAST_WEIGHT for unit in _standing(term, links) for line in weights)


def _forbids(word: str, translation: str, first: bool, language: str) -> bool:
    """Whether a word can be forbidden for the sake of a translation: one of its kind, as far as that can be seen."""
    if len(word) < _LEAST_LETTERS or word.casefold() in translation.casefold().split():
        return False
    return first or language not in _NOUNS_IN_CAPITALS or word[0].isupper() == translation[0].isupper()


def _contains(longer: str, shorter: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(shorter)}(?!\w)", longer) is not None


def _places(text: str, links: Links, unit: int, taken: Sequence[Range]) -> Iterator[Range]:
    """Where a unit's word stands in a text, if it stands there as often as in the translation."""
    word = links.target[slice(*links.right[unit])]
    pattern = re.compile(rf"(?<!\w){re.escape(word)}(?!\w)")
    before, there = pattern.findall(links.target[: links.right[unit][0]]), list(pattern.finditer(text))
    for found in [*there[len(before) :], *there[: len(before)][::-1]][:1]:
        if not any(found.start() < end and found.end() > begin for begin, end in taken):
            yield found.span()
