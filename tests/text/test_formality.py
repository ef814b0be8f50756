import pytest

from mt.text.formality import Formality, banned_words, formalities_of

LESS, MORE = Formality.LESS, Formality.MORE


@pytest.mark.parametrize(
    ("text", "language", "expected"),
    [
        *((text, "de", {LESS}) for text in ("Hast du deinen Hund gesehen?", "Könnt ihr helfen?", "Gut. Komm herein!")),
        *((text, "de-AT", {MORE}) for text in ("Haben Sie Ihren Hund?", "Klicken Sie auf OK.", "Lassen Sie mich aus.")),
        *((text, "de", set()) for text in ("Sie hat ihren Hund gesehen.", "Ich komm und geh nach Haus.")),
        ("Er weiß, dass sie Ihnen dein Buch gab.", "de", {LESS, MORE}),
        ("Lass mich wissen, ob Sie kommen.", "de", {LESS, MORE}),
        ("Gib uns bitte Ihre Nummer.", "de", {LESS, MORE}),
        ("Bitte sag mir, was Sie denken.", "de", {LESS, MORE}),
        *((text, "fr", {LESS}) for text in ("Tu as vu ton chien ?", "Je t'aime.")),
        *((text, "fr-CA", {MORE}) for text in ("Avez-vous vu votre chien ?", "Cliquez sur OK.")),
        *((text, "fr", set()) for text in ("Il me donne un livre.", "Il est chez lui, assez loin du nez.")),
        ("Donne-moi votre numéro.", "fr", {LESS, MORE}),
    ],
)
def test_formality_of_a_translation(text: str, language: str, expected: set[Formality]) -> None:
    assert formalities_of(text, language, "", "") == expected


def test_first_words_and_banned_words() -> None:
    text = "Sie haben recht. Ihr Hund schläft."
    assert formalities_of(text, "de", "You are right. Your dog sleeps.", "en") == {MORE}
    assert formalities_of(text, "de", "They are right. Her dog sleeps.", "en") == set()
    assert formalities_of(text, "de", "Vous avez raison.", "fr") == set()
    for language in ("de", "fr"):
        for expected in Formality:
            for word in banned_words(language, expected):
                assert expected not in formalities_of(f"x {word} aime", language, "", "")
    assert {"Deinem", "deiner", "euch"} <= set(banned_words("de", MORE))
    assert {"Sie", "Ihres"} <= set(banned_words("de", LESS))
