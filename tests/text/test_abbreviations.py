"""Abbreviations in the sentence that a model reads, and at the ends of sentences."""

import pytest

from mt.text.abbreviations import ends_with_abbreviation, expand_abbreviations
from mt.text.normalise import NormalisedText
from mt.text.segment import split_text


@pytest.mark.parametrize(
    ("language", "text", "expected"),
    [
        ("en", "Approx. 5 km, but Approx. is none", "Approximately 5 km, but Approx. is none"),
        ("en", "w/o milk, w/ milk, w/c, new/old W/m²", "without milk, with milk, w/c, new/old W/m²"),
        ("en-GB", "No. 5 is free; Room No. 7, no. 8 and no. 9.", "No. 5 is free; Room #7, no. 8 and number 9."),
        ("en", "I said no. No. 2,000 people, No. 12 Germans.", "I said no. No. 2,000 people, No. 12 Germans."),
        ("en", "The fig. is ripe. See fig. 3, fig.3", "The fig. is ripe. See figure 3, fig.3"),
        ("en", "Mar. 3, 5 Dec. He, (3 Nov.) and Mar. too", "March 3, 5 December. He, (3 November) and Mar. too"),
        ("en", "dept.name, https://a.org/w/b?no.5 a@dept. org {dept.}",
         "dept.name, https://a.org/w/b?no.5 a@dept. org {dept.}"),
        ("de", "MwSt. Wir, inkl. MwSt. und ca. 5", "Mehrwertsteuer. Wir, einschließlich Mehrwertsteuer und etwa 5"),
        ("de", "ca.\u00a03 Mio. €. Im 19. Jh., evtl.?", "etwa\u00a03 Millionen €. Im 19. Jahrhundert, vielleicht?"),
        ("de", "i.d.R. und i. d. R. heißt er Jan. 2019", "in der Regel und in der Regel heißt er Jan. 2019"),
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
        ("en", "Lunch is incl. Drinks are extra.", ["Lunch is incl.", "Drinks are extra."]),
        ("en", "He is in the sales dept. She is his boss.", ["He is in the sales dept.", "She is his boss."]),
        ("en", "So.-No.", ["So.", "-No."]),
        ("de", "inkl. Versand", ["inkl. Versand"]),
        ("fr", "c.-à-d. demain", ["c.-à-d. demain"]),
    ],
)
def test_no_sentence_ends_at_an_abbreviation(language: str, text: str, sentences: list[str]) -> None:
    assert [part.text for part in split_text(text, language) if not part.kept] == sentences


def test_what_follows_decides() -> None:
    ends = [ends_with_abbreviation("5 Mio. ", follows, "de") for follows in ("3 ", "extra", "Euro")]
    assert ends == [True, True, False]
