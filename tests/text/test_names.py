"""Names of people: whole lines, and names that a translation lacks."""

import pytest

from mt.text.names import is_given_name, is_name, lost_names

NAMES = [
    *("Hans Müller", "Pierre Lefèvre", "Jean-Luc Picard", "Dr. Anna Klein", "Prof. Dr. Hans Peter Meier"),
    *("John F. Smith", "Sean O'Neill", "Anna Müller-Lang"),
]
OTHERS = [
    *("Hans", "Red Car", "Claire fontaine", "Will Power", "Anna sleeps", "Anna Müller schläft", "Peter & Paul"),
    *("Peter Müller kommt heute zu Frau Müller", "Pierre Naturelle", "Caroline Islands", "Guillaume le Conquérant"),
    *("Otto Motoren", "Denis Street", "Jean Bleu", "Maria Himmelfahrt", "Jens Schule", "Karl Müller-Straße"),
]


@pytest.mark.parametrize(("text", "expected"), [*((text, True) for text in NAMES), *((text, False) for text in OTHERS)])
def test_names(text: str, expected: bool) -> None:
    assert is_name(text) is expected and is_given_name(text) is (text == "Hans")


@pytest.mark.parametrize(
    ("source", "translation", "lost"),
    [
        ("Kontakt: Hans Müller", "Contact: Hans garbage", ["Hans Müller"]),
        ("Bitte Anna und Hans P. Fischer rufen.", "Call Anna and Hans.", ["Hans P. Fischer"]),
        ("Ask Pierre Lefèvre's boss.", "Frag seinen Chef.", ["Pierre Lefèvre"]),
        ("Ask Hans Müller.", "Frag Johann Müller.", ["Hans Müller"]),
        ("Tom and Mary Brown sleep.", "Tom und Maria Brown schlafen.", ["Mary Brown"]),
        ("Heute hat Anna Geburtstag.", "Today is her birthday.", []),
        ("Tell Anna Monday is fine.", "Sag Anna, Montag ist gut.", []),
        ("Weil Martin der Bauer ist und Karl König wurde", "Because Martin is the farmer and Karl became king", []),
        ("The Martin Family and the Robert Schools", "Familie Martin und die Schulen von Robert", []),
        ("La Caroline du Nord, Louis XIV et Alexandre Ier", "North Carolina, Louis the Great and Alexander I", []),
        ("Send Michael Invoices. Did Anna Tell you?", "Sende Michael Rechnungen. Sagte Anna es?", []),
    ],
)
def test_lost_names(source: str, translation: str, lost: list[str]) -> None:
    assert [source[begin:end] for begin, end in lost_names(source, translation)] == lost
