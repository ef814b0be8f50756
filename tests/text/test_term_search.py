"""The search for terms finds what a comparison of every term with every token finds."""

import re
from collections.abc import Iterator, Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from mt.text.alignment import Range, is_wide
from mt.text.inflection import NounNumber, number_of_form, possible_stems
from mt.text.normalise import normalise_text
from mt.text.term_index import EQUAL_MARKS, TOKEN, case_variants
from mt.text.terms import TermMatch, Terms

Match = re.Match[str]
WORDS = ["a", "A", "b", "car", "Car", "cars", "CAR", "boxes", "box", "žena", "ženy", "Auto", "Autos", "语", "术", "ツ"]
MARKS = [" ", " ", " ", "  ", "-", "'", "'s", ".", "_", "“", ",", "’s", "‑"]
TEXTS = st.lists(st.sampled_from(WORDS + MARKS), max_size=14).map("".join)
TERMS = TEXTS.map(str.strip).filter(lambda text: TOKEN.search(text) is not None)


@st.composite
def glossaries(draw: st.DrawFn) -> Terms:
    texts = draw(st.lists(TERMS, max_size=12, unique=True))
    kept = draw(st.integers(0, len(texts)))
    return Terms(tuple((text, "x") for text in texts[kept:]), tuple(texts[:kept]))


@settings(max_examples=400)
@given(
    glossaries(),
    TEXTS,
    st.sampled_from(["en", "de", "cs", "zh", "xx"]),
    st.lists(st.tuples(st.integers(0, 20), st.integers(1, 3)), max_size=2),
    st.booleans(),
)
def test_the_search_equals_the_comparison_of_all_terms(
    terms: Terms, sentence: str, language: str, places: list[tuple[int, int]], any_case: bool
) -> None:
    taken = [(begin, begin + length) for begin, length in places]
    expected = tuple(compare_all(terms, sentence, language, taken, any_case))
    assert terms.find(sentence, language, taken, any_case) == expected


QUIET = "\"'„“”«»‹›‘’([{¿¡-–—*_ "  # may precede the first word of a sentence


def joined(sentence: str, place: int, language: str = "") -> bool:
    """Return whether the character at `place` joins two words into one. The English possessive 's does not."""
    if place < 1 or not re.fullmatch(r"[^\W_][-_@/'’‐‑][^\W_]", sentence[place - 1 : place + 2]):
        return False
    return language != "en" or not re.match(r"['’]s(?!\w)", sentence[place:])


def compare_all(
    terms: Terms, sentence: str, language: str, taken: Sequence[Range], any_case: bool
) -> Iterator[TermMatch]:
    entries = []
    listed = [*terms.glossary, *((text, None) for text in terms.untranslated)]
    for place, (text, translation) in enumerate(listed):
        text = normalise_text(text).text
        tokens = list(TOKEN.finditer(text))
        entries.append((-len(tokens), -len(text), place, tokens, translation))
    tokens = list(TOKEN.finditer(sentence))
    begins = not sentence[: tokens[0].start()].strip() if tokens else False
    at = 0
    while at < len(tokens):
        token, after = tokens[at], at + 1
        first = begins or any_case
        order = sorted(
            entries,
            key=lambda entry: (
                *entry[:2],
                not fits(entry[3], entry[4], tokens[at : at + len(entry[3])], language, False, False),
                entry[2],
            ),
        )
        for _, _, _, term, translation in order if not joined(sentence, token.start() - 1) else ():
            covered = tokens[at : at + len(term)]
            if (
                fits(term, translation, covered, language, first, any_case)
                and not joined(sentence, covered[-1].end(), language)
                and not any(begin < other.end() and end > other.start() for other in covered for begin, end in taken)
            ):
                after = at + len(term)
                number = NounNumber.SINGULAR
                if term[-1][0].casefold() != covered[-1][0].casefold():
                    number = number_of_form(covered[-1][0].lower(), language)
                yield TermMatch(token.start(), covered[-1].end(), translation, number)
                break
        begins = begins and token[0] in QUIET
        at = after


def fits(
    term: Sequence[Match], translation: str | None, covered: Sequence[Match], language: str, first: bool, any_case: bool
) -> bool:
    if len(covered) < len(term):
        return False
    for number, (part, token) in enumerate(zip(term, covered, strict=True)):
        if number and not is_wide(token[0]):
            gaps = [side[number - 1].end() < side[number].start() for side in (term, covered)]
            if gaps[0] != gaps[1]:
                return False
        last = number + 1 == len(term) and translation is not None
        forms = possible_stems(token[0], language) if last else [token[0]]
        if not any(equal(part[0], form, first and number == 0, any_case) for form in forms):
            return False
    return True


def equal(word: str, other: str, first: bool, any_case: bool) -> bool:
    word, other = EQUAL_MARKS.get(word, word), EQUAL_MARKS.get(other, other)
    if any_case:
        return word.casefold() == other.casefold()
    return other in case_variants(word) if first else word == other
