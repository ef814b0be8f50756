"""Numerals in words, powers of a thousand, euros and limits that translations lose."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mt.text.normalise import NormalisedText
from mt.text.numbers import mend_numbers, unify_numbers
from mt.text.numerals import count_lost_values, find_numerals, simplify_values, write_values

LANGUAGES = ("de", "en", "fr")


@pytest.mark.parametrize(
    ("language", "text", "values"),
    [
        (
            "de",
            "fünfundzwanzig, achthundertfünfzig, neunzehnhundertachtzig, zweihunderttausend",
            [25, 850, 1980, 200_000],
        ),
        ("de", "einundzwanzigste, zweitausendvierundzwanzig, Dreissig, zwanzigjährig", [2024, 30]),
        ("en", "forty-five, one hundred and twenty, ten thousand, a twenty-five-year-old", [45, 120, 10_000, 25]),
        ("en", "twenty-fifth, nineteen hundred, sixty per hundred, two thousand three hundred six", [1900, 60, 2306]),
        ("fr", "soixante et onze, quatre-vingt-dix-neuf, cent vingt, soixante pour cent", [71, 99, 120, 60]),
        ("fr", "mille neuf cent soixante-douze, vingt-cinquième, sept heures trente, dix-sept", [1972, 7, 17]),
        ("fr", "quinze jours", [15]),
        ("en", "at five fifteen, in nineteen eighty-four, since twenty twenty-five, twenty twenty-five", [1984, 2025]),
    ],
)
def test_numerals_have_values(language: str, text: str, values: list[int]) -> None:
    assert [value for _, value in find_numerals(text, language)] == values


@pytest.mark.parametrize(
    ("languages", "source", "translation", "lost"),
    [
        ("de en", "Fünfundzwanzig Schüler", "Five students", 1),
        ("de en", "Fünfundzwanzig Schüler", "Twenty-five students", 0),
        ("en fr", "thirty (30) days", "30 jours", 1),
        ("en fr", "thirty (30) days", "trente (30) jours", 0),
        ("de en", "Tausend Dank", "Many thanks", 0),  # no other number is in its place
        ("de en", "hundert Dollar", "$10", 1),
        ("en de", "$1.5 trillion", "1,5 Dollar", 1),
        ("en de", "two trillion, a million", "2 Billionen, eine Million", 0),
        ("de en", "2,4 Millionen Euro", "2.4 million", 1),
        ("de en", "2,4 Millionen Euro", "€2.4 million", 0),
        ("de en", "2 Millionen EUR", "2 million USD", 1),
        ("de en", "um 2 Prozent auf 3 Euro", "got €2 percent to €3", 1),
        ("en ja", "forty-five", "4", 0),
        ("fr en", "Il y avait au plus 5 personnes.", "There were over 5 people.", 1),
        ("en de", "at most 5 people, at least 3", "nicht mehr als 5 Menschen, mindestens 3", 0),
        ("de en", "frühestens am 3. Mai, spätestens um 18 Uhr", "on May 3, late at 18:00", 2),
        ("de en", "Es kamen höchstens 20 Leute", "The maximum of 20 people came", 1),
        ("en de", "at least once, at most", "einmal", 0),
    ],
)
def test_lost_values_are_counted(languages: str, source: str, translation: str, lost: int) -> None:
    first, second = languages.split()
    assert count_lost_values(source, translation, (first, second)) == lost


@pytest.mark.parametrize(
    ("languages", "source", "simple", "translation", "written"),
    [
        ("en de", "forty-five people owe ten thousand", "45 people owe 10,000", "45 Leute", "45 Leute"),
        ("en de", "ten to fifteen, five to fifty", "10 to 15, 5 to 50", "10", "10"),
        ("en de", "twenty-five to nine, one to twenty", "25 to nine, one to 20", "10", "10"),
        ("de fr", "zehn bis fünfzehn", "10 bis 15", "10", "10"),
        ("en de", "A hundred and one, a thousand and two", "101, 1002", "101", "101"),
        ("en fr", "two trillion dollars", "2 million dollars", "2 millions de dollars", "2 billions de dollars"),
        ("de en", "2,4 Milliarden Euro", "2,4 Millionen Dollar", "$2.4 million", "€2.4 billion"),
        ("de fr", "2 Milliarden Euro", "2 Millionen Dollar", "2 millions de dollars", "2 milliards d'euros"),
        ("fr en", "1,5 billion d'euros", "1,5 million de dollars", "1.5 million dollars", "1.5 trillion euros"),
        ("de en", "3 Milliarden EUR", "3 Millionen EUR", "3 million USD", "3 billion EUR"),
        ("fr en", "5 milliards de dollars", "5 millions de dollars", "5 million dollars", "5 billion dollars"),
        # limits
        ("fr en", "Au plus 5 personnes", "5 personnes", "5 people", "At most 5 people"),
        (
            "en fr",
            "It takes at least $1,200.",
            "It takes $1,200.",
            "Il faut 1\u00a0200 $.",
            "Il faut au moins 1\u00a0200 $.",
        ),
        (
            "de en",
            "Zahlen Sie spätestens am 3. Mai.",
            "Zahlen Sie am 3. Mai.",
            "Pay on May 3.",
            "Pay no later than May 3.",
        ),
        ("de fr", "Es öffnet frühestens um 8 Uhr.", "Es öffnet um 8 Uhr.", "à 8 heures", "Au plus tôt à 8 heures"),
        ("en de", "It opens no earlier than 8:00.", "It opens at 8:00.", "um 8:00 Uhr", "Frühestens um 8:00 Uhr"),
        ("en de", "Pay no later than May 3.", "Pay on May 3.", "am 3. Mai", "Spätestens am 3. Mai"),
        ("de en", "spätestens in 3 Tagen", "in 3 Tagen", "in 3 days", "no later than in 3 days"),
    ],
)
def test_values_are_simplified_and_written(
    languages: str, source: str, simple: str, translation: str, written: str
) -> None:
    first, second = languages.split()
    assert simplify_values(NormalisedText(source), (first, second)).text == simple
    assert write_values(source, translation, (first, second)) == written
    assert simplify_values(NormalisedText(source), (first, second), [(0, len(source))]).text == source


def written(value: int, decimals: str, language: str, space: str) -> str:
    group, point = {"de": (".", ","), "en": (",", "."), "fr": (space, ",")}[language]
    return f"{value:,}".replace(",", group) + (point + decimals if decimals else "")


@given(
    value=st.integers(0, 10**9 - 1),
    decimals=st.text("0123456789", max_size=2),
    pair=st.permutations(LANGUAGES),
    context=st.sampled_from(["{} kg", "x: {}", "x {} x.", "({} kg)", "{}", "x {} et {}."]),
    space=st.sampled_from(" \u00a0\u202f"),
    damage=st.sampled_from(["", " ", ".", ","]),
)
def test_a_copied_number_keeps_its_value(
    value: int, decimals: str, pair: list[str], context: str, space: str, damage: str
) -> None:
    """A number with any marks between its groups gets those of the target language; one that may be a version stays."""
    source, target, _ = pair
    text = context.replace("{}", written(value, decimals, source, space))
    if (source == "en" and decimals and value < 1000) or (source != "fr" and space != " "):
        return
    unified = unify_numbers(NormalisedText(text), (source, target)).text
    copied = context.replace("{}", f"{value:,}".replace(",", damage or ",") + ("." + decimals if decimals else ""))
    mended = mend_numbers(unified, copied if damage != " " else unified, (source, target))
    assert mended == context.replace("{}", written(value, decimals, target, "\u00a0")) or (
        target == "fr"
        and mended.replace("\u202f", "\u00a0") == context.replace("{}", written(value, decimals, target, "\u00a0"))
    )
