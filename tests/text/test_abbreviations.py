"""Abbreviations in the sentence that a model reads, and at the ends of sentences."""

import pytest

from mt.text.abbreviations import ends_with_abbreviation, expand_abbreviations
from mt.text.normalise import NormalisedText
from mt.text.segment import split_text


@pytest.mark.parametrize(
    ("language", "text", "expected"),
    [
        ("en", "Approx. 5 km, approx.5 km, Approx.", "Approximately 5 km, approximately 5 km, Approx."),
        ("en", "w/o milk, w/milk, new/old", "without milk, with milk, new/old"),
        ("en-GB", "No. 5 is free; Room No. 7, no. 8 and no. 9.", "No. 5 is free; Room #7, no. 8 and number 9."),
        ("en", "I said no. The fig. is ripe. See fig. 3", "I said no. The fig. is ripe. See figure 3"),
        ("en", "Mar. 3, 5 Dec. and Mar. too", "March 3, 5 December and Mar. too"),
        ("de", "zzgl. MwSt. Wir, inkl. MwSt. und", "plus Mehrwertsteuer. Wir, einschließlich Mehrwertsteuer und"),
        ("de", "ca.\u00a03 Mio. im 19. Jh.", "etwa\u00a03 Millionen im 19. Jahrhundert."),
        ("de", "i.d.R. und i. d. R., vgl. S. 12, S. Meier", "in der Regel und in der Regel, siehe Seite 12, S. Meier"),
        ("fr", "RDV le 5 janv. 2024, c.-à-d. demain", "rendez-vous le 5 janvier 2024, c'est-à-dire demain"),
        ("cs", "ca. 5", "ca. 5"),
    ],
)  # fmt: skip
def test_abbreviations_become_words(language: str, text: str, expected: str) -> None:
    assert expand_abbreviations(NormalisedText(text), language).text == expected


def test_terms_stay_and_ranges_refer_to_the_original() -> None:
    expanded = expand_abbreviations(NormalisedText("ca. 5 € MwSt. ca. 6"), "de", [(8, 13)])
    assert expanded.text == "etwa 5 € MwSt. etwa 6"
    assert expanded.original_range(15, 19) == (14, 17)


@pytest.mark.parametrize(
    ("language", "text", "sentences"),
    [
        ("en", "It is approx. 5 km. Go by bus incl. lunch.", ["It is approx. 5 km.", "Go by bus incl. lunch."]),
        ("en", "I ate a fig. The cat slept.", ["I ate a fig.", "The cat slept."]),
        ("de", "inkl. Versand", ["inkl. Versand"]),
        ("fr", "c.-à-d. demain", ["c.-à-d. demain"]),
    ],
)
def test_no_sentence_ends_at_an_abbreviation(language: str, text: str, sentences: list[str]) -> None:
    assert [part.text for part in split_text(text, language) if not part.kept] == sentences


def test_what_follows_decides() -> None:
    found = [ends_with_abbreviation("5 Mio. ", follows, "de") for follows in "3eE"]
    assert found == [True, True, False]
