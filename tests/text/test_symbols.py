"""Units, words of mixed case and codes."""

import pytest

from mt.text.symbols import damaged_words, is_code, lost_symbols, unknown_words


@pytest.mark.parametrize(
    ("source", "translation", "lost"),
    [
        ("Apply 10 mV.", "10 MV anwenden.", ["10 mV"]),
        ("It is 500 nm.", "Es ist 500 Uhr.", ["500 nm"]),
        ("a room of 20 m²", "ein Raum von 20 qm", ["20 m²"]),
        ("a 5 kΩ resistor", "ein 5 k\ufffd Widerstand", ["5 kΩ"]),
        ("3 µg/ml and 4 µg/ml", "3 µg/ml", ["3 µg/ml", "4 µg/ml"]),
        ("12 kWh at 200 MB/s", "12 KWh bei 200 Mb/s", ["12 kWh", "200 MB/s"]),
        ("90 °F", "90 Grad", ["90 °F"]),
        ("Take ~ 5 mg.", "Nimm 5 mg.", ["~ 5 mg"]),
        ("Il y a 1 500 km.", "There are 1,500.", ["1 500 km"]),
        ("2.5 kg", "2,5 Kilo", []),  # the separator may be another
        ("2.5 kg", "2,5 kg", []),
        ("12 V or 230 V", "12 au ou 230 V", ["12 V", "230 V"]),
        ("5–10 dB louder", "5 10 lauter", ["5–10 dB"]),
        ("5 - 10 kg", "5:10 kg", ["5 - 10 kg"]),
        ("5 - 10 kg", "5 bis 10 kg", []),
        ("von 5—10 mm", "from 5 10 mm", ["5—10 mm"]),
        ("Drink 1.5–2 l of it.", "Trink 1,5-2 davon.", ["1.5–2 l"]),
        ("5 to 10 kg", "5–10 kg", []),
        ("10–15 kW and 5 kW", "10–15 kW", ["10–15 kW", "5 kW"]),
        ("My iPhone and GitHub", "Mein IchPhone und GitHub", ["iPhone"]),
        ("Die MitarbeiterInnen der GmbH", "The employees of the LLC", ["GmbH"]),
        ("EN 60335-1 and ISO 9001", "60335-1 und ISO 9001", ["EN 60335-1"]),
        *((text, "", []) for text in ("He left at 5 pm.", "Il est 2 h.", "in the 1970s", "3 pcs, 4 Stk. and 5 J.")),
        *((text, "", []) for text in ("5 m'a dit", "See Figure 3.", "ROOM 101", "Mr.Smith and Monday.Peter", "Wi-Fi")),
    ],
)
def test_lost_symbols(source: str, translation: str, lost: list[str]) -> None:
    assert [source[begin:end] for begin, end in lost_symbols(source, translation)] == lost
    assert lost_symbols(source, source) == []


CODES = [
    *("x o  x", "C  G  F#m7  A/E"),
    *("x", "M", "id", "pcs", "sku", "kg", "A 1", "$ pip install x", "docker run -p 80:80 image", "import numpy as np"),
    *("if (x > 5) { return 1; }", "def f(self): return 1", "return None", "let x = 5;", "void f(int a) {"),
    *("SELECT * FROM dogs", "$ cd dogs", "npm run build", "btn btn-primary"),
    *("a → b ≠ c", "f(x) = 2x + b", "A ∪ B", "x² + y² = z²"),
]
NO_CODES = [
    *("", "my", "is", "The", "qty", "5", "я", "水", "a b", "A dog", "I", "a", "$ per month", "git is good", "so big"),
    *("if (it rains)", "import the dog", "return home", "let the dog out;", "make a cake - now"),
    *("git is good to start", "SELECT A DOG FROM THE LIST", "class A dogs:", "git push is a command."),
    *("A to B", "C Bad F", 'a "b" c', "public services (schools);", "long and long-term effects", "I = you", "Plan B"),
]


@pytest.mark.parametrize(
    ("text", "expected"), [*((text, True) for text in CODES), *((text, False) for text in NO_CODES)]
)
def test_codes(text: str, expected: bool) -> None:
    assert is_code(text, "en") is expected


def test_a_word_without_vowels_is_no_code_in_languages_that_have_such_words() -> None:
    assert not is_code("krk", "cs")


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("He says привет мир, twice.", ["привет мир"]),
        ("नमस्ते and Señor", ["नमस्ते"]),  # one unknown letter of five is no unknown word
        ("naïve – “café” 5 €", []),
        ("a d\ufffdg \ufffd here", ["d\ufffdg"]),
    ],
)
def test_unknown_words(sentence: str, expected: list[str]) -> None:
    known = frozenset("abcdefghijklmnopqrstuvwxyz")
    assert [sentence[begin:end] for begin, end in unknown_words(sentence, known)] == expected


@pytest.mark.parametrize(
    ("sentence", "translation", "expected"),
    [
        ("The dọg sees ǹo cat.", "Der d\ufffd\ufffdg sieht ǹo.", ["dọg"]),
        ("une coïncidence", "a coincidence", []),  # a word that the model knows
        ("a naïve ŝanĝi, une voix aiguë", "a nave ani, eine aigu?", ["naïve", "ŝanĝi", "aiguë"]),
        ("The word " + "ა" * 2000 + " is" + " ." * 2000, "The word is" + " ." * 2000, ["ა" * 2000]),  # linear time
        ("The DỌG sleeps.", "Der DOG schläft.", ["DỌG"]),
        ("The dog 住sleeps.", "Der Hund schläft.", []),
    ],
)
def test_damaged_words(sentence: str, translation: str, expected: list[str]) -> None:
    known = frozenset("abcdefghijklmnopqrstuvwxyz")
    assert [sentence[begin:end] for begin, end in damaged_words(sentence, translation, known)] == expected
