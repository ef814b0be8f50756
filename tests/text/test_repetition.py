"""Repetitive and short translations."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mt.text.repetition import is_repetitive, is_too_short, text_width


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


@given(st.lists(st.sampled_from("abc1."), max_size=30))
def test_a_translation_repeats_no_more_than_a_source_that_is_the_same(pieces: list[str]) -> None:
    assert not is_repetitive(pieces, pieces)


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        ("a" * 60, "b" * 20, False),
        ("a" * 61, "b" * 20, True),
        ("a" * 59, "b", False),  # too short to judge
        ("a" * 60, "中" * 8, False),
        ("a" * 63, "中" * 8, True),
        ("中" * 24, "b" * 20, False),
        ("中" * 25, "b" * 20, True),
    ],
)
def test_too_short(source: str, target: str, expected: bool) -> None:
    assert is_too_short(source, target) == expected


def test_width() -> None:
    assert (text_width("abc"), text_width("é中"), text_width("")) == (3, 3.5, 0)
