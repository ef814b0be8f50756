"""Negations that translations lose or invert."""

import pytest

from mt.text.negation import is_lost, mend_prohibitions


@pytest.mark.parametrize(
    ("direction", "source", "translation", "expected"),
    [
        ("en-de", "Do not open the valve.", "Öffnen Sie das Ventil.", True),
        ("en-de", "Do not open the valve.", "Öffnen Sie das Ventil nicht.", False),
        ("en-de", "This isn't possible.", "Das ist unmöglich.", False),
        ("en-de", "He is nice, isn't he?", "Er ist nett, oder?", False),
        ("en-de", "He didn't come until Friday.", "Er kam erst am Freitag.", False),
        ("en-de", "Do not use it without oil.", "Verwenden Sie es ohne Öl.", True),
        ("en-fr", "The file could not be read.", "Impossible de lire le fichier.", False),
        ("en-fr", "I never smoke.", "Je fume.", True),
        ("de-en", "Das ist nicht nur gut, sondern billig.", "It is good and cheap.", False),
        ("de-en", "Er hat keine Zeit.", "He has time.", True),
        ("fr-en", "N'est-ce pas joli ?", "Pretty?", False),
        ("fr-de", "Je ne l'ai pas vu.", "Ich habe ihn gesehen.", True),
        ("en-ja", "Do not run.", "走る。", False),
    ],
)
def test_lost_negations(direction: str, source: str, translation: str, expected: bool) -> None:
    source_language, target_language = direction.split("-")
    assert is_lost(source, translation, (source_language, target_language)) is expected


@pytest.mark.parametrize(
    ("direction", "source", "translation", "expected"),
    [
        ("en-de", "It must not be opened.", "Es muss nicht geöffnet werden.", "Es darf nicht geöffnet werden."),
        ("en-de", "Children mustn't use it.", "Müssen Kinder es nicht nutzen", "Dürfen Kinder es nicht nutzen"),
        (
            "en-de",
            "I must pay and must not go.",
            "Ich muss zahlen und muss nicht gehen.",
            "Ich muss zahlen und darf nicht gehen.",
        ),
        ("en-de", "You must pay and must not go.", "Du musst zahlen, nicht gehen.", None),
        ("en-de", "You don't have to pay.", "Du musst nicht zahlen.", None),
        ("en-de", "It must not be opened.", "Es darf nicht geöffnet werden.", None),
        ("fr-de", "Vous ne devez pas l'ouvrir.", "Sie müssen es nicht öffnen.", "Sie dürfen es nicht öffnen."),
        ("fr-de", "Vous devez l'ouvrir.", "Sie müssen es öffnen.", None),
        ("en-fr", "It must not be opened.", "Cela muss nicht", None),
        (
            "en-de",
            "You must not go, but you don't have to pay.",
            "Du darfst nicht gehen, musst aber nicht zahlen.",
            None,
        ),
        ("en-de", "You must not wait, but have to go.", "Du darfst nicht warten, aber musst gehen.", None),
        (
            "en-de",
            "I must not go, but I have to wait.",
            "Ich muss nicht gehen, muss warten.",
            "Ich darf nicht gehen, muss warten.",
        ),
        ("en-de", "It must not be hot.", "Es muss kalt sein.", None),
        ("fr-de", "Il ne faut pas rester.", "Man muss nicht bleiben.", "Man darf nicht bleiben."),
        ("fr-de", "Vous n'avez pas besoin de rester.", "Sie müssen nicht bleiben.", None),
    ],
)
def test_prohibitions_in_german(direction: str, source: str, translation: str, expected: str | None) -> None:
    source_language, target_language = direction.split("-")
    mended = mend_prohibitions(source, translation, (source_language, target_language))
    assert mended == (expected or translation)
