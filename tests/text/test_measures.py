"""Amounts of something, whose unit and content are translated apart."""

import pytest

from mt.text.measures import read_measure


@pytest.mark.parametrize(
    ("direction", "sentence", "content", "expected"),
    [
        ("en-de", "2 cups of flour", "flour", "2 Tassen flour"),
        ("en-de", "1 cup flour", "flour", "1 Tasse flour"),
        ("en-fr", "1½ cups milk", "milk", "1½ tasses de milk"),
        ("en-de", "1 1/2 cups flour", "flour", "1 1/2 Tassen flour"),
        ("en-fr", "200 g oil", "oil", "200 g d'oil"),
        ("de-en", "½ Liter Milch", "Milch", "½ litre of milch"),
        ("de-en", "500ml frisches Wasser", "frisches Wasser", "500ml frisches Wasser"),
        ("de-en", "3 Stück USB-Kabel, weiß", "USB-Kabel, weiß", "3 pieces of USB-Kabel, weiß"),
        ("fr-en", "2 cuillères à soupe d'huile", "huile", "2 tablespoons of huile"),
        ("fr-de", "1/2 tasse de lait", "lait", "1/2 Tasse lait"),
        ("de-en", "1,5 Liter Milch", "Milch", "1.5 litres of milch"),
        ("en-fr", "0.5 litres of haricots", "haricots", "0,5 litres de haricots"),
    ],
)
def test_measures(direction: str, sentence: str, content: str, expected: str) -> None:
    measure = read_measure(sentence, *direction.split("-"))
    assert measure and (measure.content, measure.write(content)) == (content, expected)


@pytest.mark.parametrize(
    ("direction", "sentence"),
    [
        *(("en-de", f"5 kg {rest}") for rest in ("in total", "are left.", "per day", "", "is too much", "(10 lb)")),
        *(("en-de", text) for text in ("cups of tea", "2 dogs", "2 cups of tea and milk for all of my friends")),
        *(
            ("en-de", text)
            for text in ("3 glass bowls", "2 can be used", "5 ml twice a day", "3 bottles empty", "5 kg max")
        ),
        *(
            ("de-en", sentence)
            for sentence in (
                "3 Flaschen Wein bestellen",
                "2 Flaschen Wein sind kaputt",
                "5 kg mehr",
                "3 Tassen sind leer",
                "2 m breit",
            )
        ),
        *(("fr-en", text) for text in ("2 tasses vides", "3 livres d'anglais", "5 cm de long")),
        ("en-it", "2 cups of tea"),
    ],
)
def test_other_sentences(direction: str, sentence: str) -> None:
    assert read_measure(sentence, *direction.split("-")) is None
