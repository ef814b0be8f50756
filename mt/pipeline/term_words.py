"""Target words that stand for glossary terms: those that a model wrote in their place, and their replacement."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from mt.text.alignment import CLOSING, Range, UnitLinks, find_words
from mt.text.inflection import forms_compounds, inflected_forms
from mt.text.term_index import case_variants
from mt.text.terms import LEAST_NOUN, TermMatch, find_translation, missing_terms

MIN_WEIGHT = 0.1  # of attention from a target word to a term; words with less do not translate the term
SURE_WEIGHT = 0.7  # at which a word always translates a term, even if another word has a higher weight
MIN_SHARE = 0.2  # of attention from a compound to each source word that it translates; no other word has twice

_MIN_BANNED_LETTERS = 4  # shorter words are often function words, such as articles
CAPITALIZED_NOUNS = frozenset({"de", "lb"})


def displaced_words(matches: Iterable[TermMatch], links: UnitLinks, language: str) -> dict[str, list[str]]:
    """Return, for each required translation, the words that the model wrote in its place.

    Words that also translate something else are left out.
    """
    words = [links.target[begin:end] for begin, end in links.right]
    match_of = {unit: match for match in matches for unit in _units_of_term(match, links)}
    displaced: dict[str, list[str]] = {}
    for unit, match in match_of.items():
        only_terms = all(other in match_of for other, word in enumerate(words) if word == words[unit])
        if only_terms and can_ban(words[unit], match.translation or "", unit == 0, language):
            displaced.setdefault(match.translation or "", []).append(words[unit])
    return displaced


def is_translated_twice(matches: Sequence[TermMatch], links: UnitLinks, language: str) -> bool:
    """Return whether another target word than the required translation translates a term, too."""
    terms = {(match.translation or "", match.compound) for match in matches}
    places = [place for term, joined in terms for place in find_translation(term, links.target, language, joined)]
    return any(
        not any(begin < place[1] and end > place[0] for place in places)
        and can_ban(links.target[begin:end], match.translation or "", begin == 0, language)
        for match in matches
        for begin, end in (links.right[unit] for unit in _units_of_term(match, links))
    )


def substitute_terms(matches: Sequence[TermMatch], text: str, links: UnitLinks, language: str) -> str:
    """Replace target words by the missing terms. Return the new text.

    Each missing term replaces the target word with the most attention on the term. If no target word translates the
    term, the term is inserted before the final punctuation mark. `text` is `links.target` with its protected spans.
    """
    translations = dict.fromkeys(match.translation or "" for match in matches)
    taken = [span for translation in translations for span in find_translation(translation, text, language)]
    for match in missing_terms(matches, text, language):
        translation = match.translation or ""
        weights = links.weights_from((match.begin, match.end))
        units = _units_of_term(match, links)
        units.sort(key=lambda unit: (links.right[unit][1] - links.right[unit][0] < _MIN_BANNED_LETTERS, -weights[unit]))
        place = next((place for unit in units for place in _find_unit(text, links, unit, taken)), None)
        if place is not None:
            begin, end = place
            form = inflected_forms(translation, language, match.number)[0]
            written = case_variants(form)[-1 if begin == 0 else 0]
            text = text[:begin] + written + text[end:]
            moved = len(written) - (end - begin)
            taken = [(low + moved, high + moved) if low >= end else (low, high) for low, high in taken]
            taken.append((begin, begin + len(written)))
        else:
            end = len(text.rstrip("".join(CLOSING)))
            text = f"{text[:end]} {translation}{text[end:]}".strip()
    for match in missing_terms(matches, text, language):  # a substituted term is not found if letters adjoin it
        text = f"{text} {match.translation}".strip()
    return text


def _units_of_term(term: TermMatch, links: UnitLinks) -> list[int]:
    """Return the indices in `links.right` of the target words that translate a term."""
    weights = links.weights_from((term.begin, term.end))
    threshold = min(SURE_WEIGHT, max(MIN_WEIGHT, max(weights, default=0.0)))
    return [
        unit
        for unit, weight in enumerate(weights)
        if weight >= threshold and links.target[links.right[unit][0]].isalpha()
    ]


def mark_compounds(matches: Iterable[TermMatch], links: UnitLinks, language: str) -> list[TermMatch]:
    """Return the matches, with `compound` where one target word translates the term and a noun beside it."""
    long = [unit for unit, (begin, end) in enumerate(links.right) if end - begin >= LEAST_NOUN]

    def words(source: Range) -> set[int]:
        weights = links.weights_from(source)
        least = max(MIN_SHARE, max((weights[unit] for unit in long), default=0) / 2)
        return {unit for unit in long if weights[unit] >= least}

    marked = []
    for match in matches:
        nouns = [unit for unit in links.left if unit[0] >= match.end][:1]
        nouns += [unit for unit in links.left if unit[1] <= match.begin][-3:]
        joined = [words(noun) & words((match.begin, match.end)) for noun in nouns if noun[1] - noun[0] >= LEAST_NOUN]
        marked.append(replace(match, compound=any(joined) and forms_compounds(match.translation or "", language)))
    return marked


def can_ban(word: str, translation: str, first: bool, language: str) -> bool:
    """Return whether a search may ban a target word so that it writes `translation` in its place.

    The word must have at least _MIN_BANNED_LETTERS letters and not be in the translation. In languages with capitalized
    nouns, word and translation must agree in capitalization, unless the word is the `first` word of the sentence.
    """
    if len(word) < _MIN_BANNED_LETTERS or word.casefold() in translation.casefold().split():
        return False
    return first or language not in CAPITALIZED_NOUNS or word[0].isupper() == translation[0].isupper()


def _find_unit(text: str, links: UnitLinks, unit: int, taken: Sequence[Range]) -> Iterator[Range]:
    """Yield the range of target unit `unit` in `text`. Yield nothing if it is absent or overlaps a range in `taken`."""
    word = links.target[slice(*links.right[unit])]
    before, places = len(find_words(word, links.target[: links.right[unit][0]])), find_words(word, text)
    for place in [*places[before:], *places[:before][::-1]][:1]:
        if not any(place[0] < end and place[1] > begin for begin, end in taken):
            yield place
