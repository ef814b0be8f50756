"""Alignment of words by attention."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mt.text.alignment import Link, PieceAttention, link_words, piece_offsets

MARK = "▁"


def links(
    source: list[str], target: list[str], weights: list[list[float]], known: list[Link] | None = None
) -> list[str]:
    """Return the links between the texts of pieces, as `source=target`."""
    texts = ["".join(pieces).replace(MARK, " ").strip() for pieces in (source, target)]
    attention = PieceAttention(piece_offsets(source, MARK), piece_offsets(target, MARK), weights)
    linked = link_words(texts[0], texts[1], attention, known or [])
    return [f"{texts[0][a:b]}={texts[1][c:d]}" for (a, b), (c, d) in linked]


CASES: dict[str, tuple[list[str], list[str], list[list[float]], list[str]]] = {
    "word by word": (["▁a", "▁dog"], ["▁ein", "▁Hund"], [[0.9, 0.1], [0.2, 0.8]], ["a=ein", "dog=Hund"]),
    "words cross": (["▁a", "▁dog"], ["▁b", "▁c"], [[0.1, 0.9], [0.8, 0.2]], ["dog=b", "a=c"]),
    "the weights of the pieces of a source word are added": (
        ["▁Haus", "tür", "▁auf"],
        ["▁door"],
        [[0.3, 0.3, 0.4]],
        ["Haustür=door"],
    ),
    "the weights of the pieces of a target word are averaged": (
        ["▁door", "▁open"],
        ["▁Haus", "tür"],
        [[0.4, 0.6], [0.9, 0.1]],
        ["door=Haustür"],
    ),
    "punctuation is linked to punctuation, words to words": (
        ["▁dog", "."],
        ["▁Hund", "."],
        [[0.1, 0.9], [0.9, 0.1]],
        ["dog=Hund", ".=."],
    ),
    "punctuation without a counterpart": (["▁dog"], ["▁Hund", "!"], [[1.0], [1.0]], ["dog=Hund"]),
    "pieces of a script without spaces": (
        ["▁the", "▁city"],
        ["▁这个", "城市"],
        [[0.9, 0.1], [0.1, 0.9]],
        ["the=这个", "city=城市"],
    ),
    "a source without spaces": (
        ["▁这个", "城市"],
        ["▁the", "▁city"],
        [[0.9, 0.1], [0.1, 0.9]],
        ["这个=the", "城市=city"],
    ),
    "no weight, no link": (["▁a"], ["▁b"], [[0.0]], []),
}


@pytest.mark.parametrize("name", CASES)
def test_links(name: str) -> None:
    source, target, weights, expected = CASES[name]
    assert links(source, target, weights) == expected


def test_units_of_a_known_link_get_no_other() -> None:
    pieces = (["▁see", "▁x", "▁dog"], ["▁x", "▁sieh", "▁Hund"])
    weights = [[0.9, 0.0, 0.1], [0.2, 0.7, 0.1], [0.1, 0.8, 0.1]]
    assert links(*pieces, weights) == ["see=x", "x=sieh", "x=Hund"]
    assert links(*pieces, weights, [((4, 5), (0, 1))]) == ["x=x", "see=sieh", "see=Hund"]


WORDS = st.lists(st.sampled_from(["▁a", "b", "▁", ".", "▁c", "你好", "们", "▁("]), min_size=1, max_size=8)


@given(st.data(), WORDS, WORDS)
def test_links_are_in_order_within_their_texts_and_none_of_a_translation_overlap(
    data: st.DataObject, source: list[str], target: list[str]
) -> None:
    row = st.lists(st.floats(0, 1), min_size=len(source), max_size=len(source))
    weights = data.draw(st.lists(row, min_size=len(target), max_size=len(target)))
    texts = ["".join(pieces).replace(MARK, " ").removeprefix(" ") for pieces in (source, target)]
    attention = PieceAttention(piece_offsets(source, MARK), piece_offsets(target, MARK), weights)
    end = 0
    for (a, b), (c, d) in link_words(texts[0], texts[1], attention):
        assert 0 <= a < b <= len(texts[0]) and end <= c < d <= len(texts[1])
        assert texts[0][a:b] == texts[0][a:b].strip() and texts[1][c:d] == texts[1][c:d].strip()
        end = d
