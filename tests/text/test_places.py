"""Names of cities and regions that translations lack, or copy."""

import pytest

from mt.text.places import lost_places, write_places


@pytest.mark.parametrize(
    ("direction", "source", "translation", "lost"),
    [
        ("de-en", "Unser Büro in Zürich ist zu.", "Our office is closed.", ["Zürich"]),
        ("de-en", "Unser Büro in Zürich ist zu.", "Our office in Zurich is closed.", []),
        ("de-en", "Unser Büro in Zürich ist zu.", "Our Zürich office is closed.", []),
        ("en-de", "Lower Saxony and Rome", "Römer und Saxonie", ["Lower Saxony", "Rome"]),
        ("en-fr", "Munich Airport and london", "L'aéroport", []),
        ("en-fr", "Lyon and Berlin-Mitte", "La ville", ["Lyon"]),
        ("fr-de", "De l'eau de Cologne de Cologne", "Wasser", ["Cologne"]),
        ("en-ja", "Munich", "ミュンヘン", []),
    ],
)
def test_lost_places(direction: str, source: str, translation: str, lost: list[str]) -> None:
    source_language, target_language = direction.split("-")
    ranges = lost_places(source, translation, (source_language, target_language))
    assert [source[begin:end] for begin, end in ranges] == lost


@pytest.mark.parametrize(
    ("direction", "source", "translation", "expected"),
    [
        ("en-de", "a train to Vienna", "ein Zug nach Vienna.", "ein Zug nach Wien."),
        ("de-fr", "in Genf und Graz", "à Genf et Graz", "à Genève et Graz"),
        ("en-de", "Rome", "Romes Rome", "Romes Rom"),
        ("en-de", "Vienna, see vienna.example and `Vienna`", "Wien, Vienna", None),
        ("en-de", "the Munich Airport", "der Munich Airport", None),
        ("en-de", "ACME Munich", "ACME Munich", None),
    ],
)
def test_copied_places_get_the_name_of_the_target(
    direction: str, source: str, translation: str, expected: str | None
) -> None:
    source_language, target_language = direction.split("-")
    fixed = [("ACME Munich", "ACME Munich")]
    found = write_places(source, translation, (source_language, target_language), fixed)
    assert found == (expected or translation)
