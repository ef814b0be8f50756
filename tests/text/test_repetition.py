import numpy as np
import pytest

from mt.text.alignment import PieceAttention
from mt.text.repetition import is_repetitive, is_too_short, may_omit, omitted_clauses


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
    ("read", "omitted"),
    [
        ([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11], []),
        ([0, 1, 2, 3, 8, 9, 10, 11], [(8, 16)]),  # the second clause
        ([0, 1, 4, 6, 10, 11], []),  # half of each clause
        ([0, 1, 2, 3], [(8, 16), (16, 24)]),
        ([], [(0, 8), (8, 16), (16, 24)]),
    ],
)
def test_omitted_clauses(read: list[int], omitted: list[tuple[int, int]]) -> None:
    """Three clauses of four pieces, each of two characters. Each target piece reads one source piece."""
    weights = np.eye(12)[read] * 0.9 + 0.1 / 12
    attention = PieceAttention(range(0, 24, 2), range(0, 2 * len(read), 2), weights)
    assert omitted_clauses([(0, 8), (8, 16), (16, 24)], attention) == omitted


def test_a_clause_of_three_pieces_is_checked() -> None:
    attention = PieceAttention(range(0, 24, 2), range(0, 18, 2), np.eye(12)[[0, 1, 2, 3, 4, 5, 9, 10, 11]])
    assert omitted_clauses([(0, 6), (6, 12), (12, 18), (18, 24)], attention) == [(12, 18)]


def test_a_short_or_unlikely_translation_may_omit_a_clause() -> None:
    for width, score, expected in [(70, -0.1, True), (70, 0.0, False), (110, -0.6, True), (110, -0.4, False)]:
        assert may_omit("a" * 100, "b" * width, [score, score]) == expected
