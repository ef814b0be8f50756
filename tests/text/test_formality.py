"""Formal and informal address: what counts, in which language."""

import pytest

from mt.text.formality import Formality, banned_words, formalities_of, supports_formality

LESS, MORE = Formality.LESS, Formality.MORE


@pytest.mark.parametrize(
    ("text", "language", "expected"),
    [
        ("Hast du deinen Hund gesehen?", "de", {LESS}),
        ("Haben Sie Ihren Hund gesehen?", "de", {MORE}),
        ("Klicken Sie auf OK.", "de-AT", {MORE}),
        ("Könnt ihr uns helfen?", "de", {LESS}),
        ("Sie hat ihren Hund gesehen.", "de", set()),
        ("Er weiß, dass sie Ihnen dein Buch gab.", "de", {LESS, MORE}),
        ("Das ist ein Haus.", "de", set()),
        ("Tu as vu ton chien ?", "fr", {LESS}),
        ("Je t'aime.", "fr", {LESS}),
        ("Avez-vous vu votre chien ?", "fr-CA", {MORE}),
        ("Cliquez sur OK.", "fr", {MORE}),
        ("Lass mich wissen, ob Sie kommen.", "de", {LESS, MORE}),
        ("Gib uns bitte Ihre Nummer.", "de", {LESS, MORE}),
        ("Bitte sag mir, was Sie denken.", "de", {LESS, MORE}),
        ("Gut. Komm herein!", "de", {LESS}),
        ("Lassen Sie mich ausreden.", "de", {MORE}),
        ("Ich komm und geh nach Haus.", "de", set()),
        ("Donne-moi votre numéro.", "fr", {LESS, MORE}),
        ("Il me donne un livre.", "fr", set()),
        ("Il est chez lui, assez loin du nez.", "fr", set()),
    ],
)
def test_formality_of_a_translation(text: str, language: str, expected: set[Formality]) -> None:
    assert formalities_of(text, language, "", "") == expected


def test_the_first_word_is_formal_only_if_the_source_addresses_the_reader() -> None:
    text = "Sie haben recht. Ihr Hund schläft."
    assert formalities_of(text, "de", "You are right. Your dog sleeps.", "en") == {MORE}
    assert formalities_of(text, "de", "They are right. Her dog sleeps.", "en") == set()
    assert formalities_of(text, "de", "Vous avez raison.", "fr") == set()


def test_banned_words_are_those_of_the_opposite_formality() -> None:
    for language in ("de", "fr"):
        for expected in Formality:
            for word in banned_words(language, expected):
                assert expected not in formalities_of(f"x {word} aime", language, "", "")
    assert {"Deinem", "deiner", "euch"} <= set(banned_words("de", MORE))
    assert {"Sie", "Ihres"} <= set(banned_words("de", LESS))


def test_languages_with_formality() -> None:
    assert all(map(supports_formality, ("de", "de-CH", "fr")))
    assert not any(map(supports_formality, ("en", "pt-BR", "zh")))
