import pytest

from mt.text.members import fill_list, mend_lists, split_list, translate_numeral

WORDS = {
    "rot": "red",
    "blau": "blue",
    "grün": "green",
    "Brot": "bread",
    "Milch": "milk",
    "Salz": "salt",
    "Gold": "gold",
}
LANGUAGES = "de", "en"
HAVE = "Wir haben Brot, Milch, Salz und Gold."


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("rot, blau, grün", "rot|, |blau|, |grün|"),
        ("Rot, sehr helles Blau und Grün.", "Rot|, |sehr helles Blau| and |Grün|."),
        ("rot, blau, oder grün", "rot|, |blau| or |grün|"),
        ("rot und blau", ""),
        ("rot und blau, grün", ""),  # the conjunction stands before the last member
        ("rot, blau; grün, gelb", ""),
        ("er sah mich dort, rot, blau", ""),  # a member of four words
    ],
)
def test_lists(text: str, parts: str) -> None:
    assert "|".join(split_list(text, LANGUAGES)) == parts


def test_lists_of_other_languages_are_not_read() -> None:
    assert split_list("rojo, verde, azul", ("es", "en")) == split_list("red, green, blue", ("en", "es")) == []
    assert mend_lists("rojo, verde y azul", "red", ("es", "en"), lambda some: [*some]) == ("red", [])


@pytest.mark.parametrize(("translation", "filled"), [("Red, pale or lime.", "red, pale, green"), ("red, pale", None)])
def test_other_members_are_those_of_the_translation(translation: str, filled: str | None) -> None:
    parts = [("red", True), (", ", True), ("blass", False), (", ", True), ("green", True), ("", True)]
    assert fill_list(parts, translation, "en") == filled


def test_numerals() -> None:
    assert translate_numeral("Sept", ("fr-CA", "de")) == "sieben"
    assert translate_numeral("dreizehn", LANGUAGES) is translate_numeral("two", ("en", "es")) is None


@pytest.mark.parametrize(
    ("source", "translation", "mended", "lost"),
    [
        (HAVE, "We have bread, salt, and gold.", "We have bread, milk, salt, and gold.", []),
        (HAVE, "We have bread and gold.", "We have bread, milk, salt and gold.", []),
        (HAVE, "We have Brot, milk, salt, and gold.", "We have bread, milk, salt, and gold.", []),
        # not side by side, and the last one
        (HAVE, "We have the bread, the salt, and gold.", "", ["Milch"]),
        (HAVE, "We have bread, milk, salt.", "", ["Gold"]),
        # as many members, and other words for them
        (HAVE, "We have loaves, cream, salt and gold.", "", []),
        ("Er ging, sah Brot, kam und schlief.", "He went and slept.", "", []),  # most words are unknown
        ("Brot, das ich sah, und Gold", "bread and gold", "", []),
    ],
)
def test_lost_members(source: str, translation: str, mended: str, lost: list[str]) -> None:
    found = mend_lists(source, translation, LANGUAGES, lambda some: [*map(WORDS.get, some)])
    assert found == (mended or translation, lost)
    assert mend_lists(source, translation, LANGUAGES, lambda some: [*map(WORDS.get, some)], kept=True)[0] == translation
