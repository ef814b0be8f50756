"""Names of people: whole lines, and names that a translation lacks."""

import pytest

from mt.text.names import is_name, lost_names


@pytest.mark.parametrize(
    "name",
    [
        *("Hans Müller", "Pierre Lefèvre", "Jean-Luc Picard", "Dr. Anna Klein", "Prof. Dr. Hans Peter Meier"),
        *("John F. Smith", "Ludwig van Beethoven", "Simon de la Tour", "Sean O'Neill", "Anna Müller-Lang"),
    ],
)
def test_names(name: str) -> None:
    assert is_name(name)


@pytest.mark.parametrize(
    "text",
    [
        *(
            "Hans",
            "Red Car",
            "Max Speed",
            "Mark Complete",
            "Rose Garden",
            "Claire fontaine",
            "Grace Period",
            "Will Power",
        ),
        *(
            "Anna sleeps",
            "Anna Müller schläft",
            "Tom Sleeps Here",
            "Peter & Paul",
            "Christian Church",
            "Pierre tombale",
        ),
    ],
)
def test_other_texts(text: str) -> None:
    assert not is_name(text)


@pytest.mark.parametrize(
    ("language", "source", "translation", "lost"),
    [
        ("de", "Kontakt: Hans Müller", "Contact: Hans garbage", ["Hans Müller"]),
        ("de", "Bitte Anna und Hans P. Fischer rufen.", "Call Anna and Hans.", ["Hans P. Fischer"]),
        ("fr", "Voir Marie Blanc demain", "See Mary Blanc", ["Marie Blanc"]),
        ("en", "Ask Pierre Lefèvre's boss.", "Frag Lefèvres Chef.", ["Pierre Lefèvre"]),
        ("fr", "Contact : Claire Petit, directrice", "Contact: Petit Claire", ["Claire Petit"]),
        ("en", "Ask Hans Müller.", "Frag Hans Müller.", []),
        ("de", "Heute hat Anna Geburtstag.", "Today is her birthday.", []),
        ("de", "Ich fahre mit Anna Fahrrad.", "I cycle with Anna.", []),
        ("en", "Tell Anna Monday is fine.", "Sag Anna, Montag ist gut.", []),
        ("en", "Teach Tom French there.", "Lehre Tom Französisch.", []),
        ("en", "It is in San Gabriel, near Charles Bridge and St. Martin Church.", "Da ist es.", []),
        ("en", "How Tom Won", "Wie Tom gewann", []),
        ("en", "The Rose Garden was closed.", "Der Rosengarten war zu.", []),
        ("fr", "La Tour Eiffel est haute.", "The tower is high.", []),
    ],
)
def test_lost_names(language: str, source: str, translation: str, lost: list[str]) -> None:
    assert [source[begin:end] for begin, end in lost_names(source, translation, language)] == lost
