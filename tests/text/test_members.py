import pytest

from mt.text.members import fill_list, split_list

LANGUAGES = "de", "en"


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


@pytest.mark.parametrize(("translation", "filled"), [("Red, pale or lime.", "red, pale, green"), ("red, pale", None)])
def test_other_members_are_those_of_the_translation(translation: str, filled: str | None) -> None:
    parts = [("red", True), (", ", True), ("blass", False), (", ", True), ("green", True), ("", True)]
    assert fill_list(parts, translation, "en") == filled
