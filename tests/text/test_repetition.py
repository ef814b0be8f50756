import re

import numpy as np
import pytest

from mt.text.alignment import PieceAttention, Range, with_edits
from mt.text.repetition import completeness, doubled_words, is_repetitive, is_too_short, omitted_words


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        ("a man rides", "ein Mann fährt", False),
        ("a man rides", "the the the the", True),
        ("a man rides", "the the the", False),
        ("ha ha ha ha", "ha ha ha ha", False),  # like the source
        ("ha ha ha ha", "ha ha ha ha ha ha ha ha", True),
        ("a man rides", "x und so und so und so", True),
        ("a man rides", "x und so und so", False),
        ("a billion", "1 0 0 0 0 0 0 0 0 0", False),  # no letters
        ("a line", ". . . . . . . . .", False),
        ("a b c", "w d e f g 1 d e f g 2 d e f g 3 d e f g", True),  # four times, not one after another
        ("", "", False),
    ],
)
def test_repetitive(source: str, target: str, expected: bool) -> None:
    assert is_repetitive(source.split(), target.split()) == expected


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        *(("a" * 60, "b" * 20, False), ("a" * 61, "b" * 20, True), ("a" * 59, "b", False)),  # the last is short itself
        *(("a" * 60, "中" * 8, False), ("a" * 63, "中" * 8, True)),
        *(("中" * 24, "b" * 20, False), ("中" * 25, "b" * 20, True)),
    ],
)
def test_too_short(source: str, target: str, expected: bool) -> None:
    assert is_too_short(source, target) == expected


@pytest.mark.parametrize(
    ("source", "peaks", "omitted"),
    [
        ("the dogs sleep near gates", [0.9, 0.9, 0.9, 0.9, 0.9], []),
        ("the dogs sleep near gates", [0.9, 0.9, 0.04, 0.04, 0.9], ["sleep near"]),
        ("the dogs sleep near gates", [0.05, 0.9, 0.05, 0.9, 0.05], []),  # no two neighbours
        ("the dogs sleep near gates", [0.9, 0.9, 0.06, 0.06, 0.06], ["sleep near gates"]),
        ("the dogs sleep near gates", [0.02, 0.02, 0.02, 0.12, 0.02], ["the dogs sleep near gates"]),
        ("the dogs sleep near gates", [0.02, 0.02, 0.9, 0.9, 0.9], []),  # narrow
        ("the dogs sleep near gates", [], ["the dogs sleep near gates"]),
        ("门里有很老的狗", [0.9, 0.9, 0.02, 0.02, 0.02, 0.02, 0.9], ["有很老的"]),
    ],
)
def test_omitted_words(source: str, peaks: list[float], omitted: list[str]) -> None:
    """Each word or Chinese character is a piece."""
    places = [match.start() for match in re.finditer(r"[a-z]+|[^ a-z]", source)]
    attention = PieceAttention(places, range(len(peaks)), np.diag(peaks) if peaks else np.zeros((0, len(places))))
    assert [source[begin:end] for begin, end in omitted_words(source, attention)] == omitted


@pytest.mark.parametrize(("width", "score", "expected"), [(60, -0.1, 0.5), (60, 0.0, 0.6), (110, -0.6, 0.5)])
def test_a_short_or_unlikely_translation_is_incomplete(width: int, score: float, expected: float) -> None:
    assert completeness("a" * 100, "b" * width, [score, score]) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("Just ignore it.", "Es ignoriert einfach⟨ einfach⟩."),
        ("a file", "a file/name⟨/name⟩ of a file⟨ file file⟩ of the room⟨ of the room⟩; so⟨ so⟩"),
        ("pears, flour, sail", "pears, the sail⟨, the sail⟩, rice⟨ and rice⟩"),
        ("no, no", "nein nein"),  # twice in the source
        ("", "die, die die Lehrer, er sieht sie sie sehen, Titan an der Mann, ein neuer Mann"),
        ("", "was gesagt wird, wird 12 12 Mal, x.x {name} {name}"),
        ("a number NA1", "mit einer NA1⟨-NA1⟩, 5-5, A4-A6, halbe-halbe"),  # a code
    ],
)
def test_doubled_words(source: str, target: str) -> None:
    plain = re.sub("[⟨⟩]", "", target)
    assert with_marks(plain, doubled_words(source, plain)) == target


def with_marks(text: str, ranges: list[Range]) -> str:
    return with_edits(text, [(begin, end, f"⟨{text[begin:end]}⟩") for begin, end in ranges])
