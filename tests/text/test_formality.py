"""Formal and informal address: what counts, in which language."""

import pytest

from mt.text.formality import Formality, banned_words, formality_of, supports_formality

LESS, MORE = Formality.LESS, Formality.MORE


@pytest.mark.parametrize(
    ("text", "language", "expected"),
    [
        ("Hast du deinen Hund gesehen?", "de", LESS),
        ("Haben Sie Ihren Hund gesehen?", "de", MORE),
        ("Klicken Sie auf OK.", "de-AT", MORE),
        ("Könnt ihr uns helfen?", "de", LESS),
        ("Sie hat ihren Hund gesehen.", "de", None),
        ("Er weiß, dass sie Ihnen dein Buch gab.", "de", None),  # one of each
        ("Das ist ein Haus.", "de", None),
        ("Tu as vu ton chien ?", "fr", LESS),
        ("Je t'aime.", "fr", LESS),
        ("Avez-vous vu votre chien ?", "fr-CA", MORE),
        ("Cliquez sur OK.", "fr", MORE),
        ("Il est chez lui, assez loin du nez.", "fr", None),
    ],
)
def test_formality_of_a_translation(text: str, language: str, expected: Formality | None) -> None:
    assert formality_of(text, language, "", "") is expected


def test_the_first_word_is_formal_only_if_the_source_addresses_the_reader() -> None:
    text = "Sie haben recht. Ihr Hund schläft."
    assert formality_of(text, "de", "You are right. Your dog sleeps.", "en") is MORE
    assert formality_of(text, "de", "They are right. Her dog sleeps.", "en") is None
    assert formality_of(text, "de", "Vous avez raison.", "fr") is None


def test_banned_words_are_those_of_the_opposite_formality() -> None:
    for language in ("de", "fr"):
        for expected in Formality:
            for word in banned_words(language, expected):
                assert formality_of(f"x {word} aime", language, "", "") in (expected.opposite, None)
    assert {"Deinem", "deiner", "euch"} <= set(banned_words("de", MORE))
    assert {"Sie", "Ihres"} <= set(banned_words("de", LESS))


def test_languages_with_formality() -> None:
    assert [language for language in ("de", "de-CH", "fr", "en", "pt-BR", "zh") if supports_formality(language)] == [
        "de",
        "de-CH",
        "fr",
    ]
