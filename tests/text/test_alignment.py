import pytest

from mt.text.alignment import Link, PieceAttention, link_words, piece_offsets, with_marks

MARK = "▁"


def links(
    source: list[str], target: list[str], weights: list[list[float]], known: list[Link] | None = None
) -> list[str]:
    """Return the links between the texts of pieces, as `source=target`."""
    texts = ["".join(pieces).replace(MARK, " ").strip() for pieces in (source, target)]
    attention = PieceAttention(piece_offsets(source, MARK), piece_offsets(target, MARK), weights)
    linked = link_words(texts[0], texts[1], attention, known or [])
    return [f"{texts[0][a:b]}={texts[1][c:d]}" for (a, b), (c, d) in linked]


DIAGONAL = [[0.9, 0.1], [0.1, 0.9]]
CROSSED = [[0.1, 0.9], [0.9, 0.1]]


@pytest.mark.parametrize(
    ("source", "target", "weights", "expected"),
    [
        ("▁a ▁dog", "▁ein ▁Hund", DIAGONAL, ["a=ein", "dog=Hund"]),
        ("▁a ▁dog", "▁b ▁c", CROSSED, ["dog=b", "a=c"]),
        ("▁Haus tür ▁auf", "▁door", [[0.3, 0.3, 0.4]], ["Haustür=door"]),  # the weights of a source word are added
        ("▁door ▁open", "▁Haus tür", [[0.4, 0.6], [0.9, 0.1]], ["door=Haustür"]),  # and of a target word averaged
        ("▁dog .", "▁Hund .", CROSSED, ["dog=Hund", ".=."]),  # punctuation is linked to punctuation
        ("▁dog", "▁Hund !", [[1.0], [1.0]], ["dog=Hund"]),
        ("▁the ▁city", "▁这个 城市", DIAGONAL, ["the=这个", "city=城市"]),
        ("▁这个 城市", "▁the ▁city", DIAGONAL, ["这个=the", "城市=city"]),
        ("▁a", "▁b", [[0.0]], []),
    ],
)
def test_links(source: str, target: str, weights: list[list[float]], expected: list[str]) -> None:
    assert links(source.split(), target.split(), weights) == expected


def test_units_of_a_known_link_get_no_other() -> None:
    pieces = (["▁see", "▁x", "▁dog"], ["▁x", "▁sieh", "▁Hund"])
    weights = [[0.9, 0.0, 0.1], [0.2, 0.7, 0.1], [0.1, 0.8, 0.1]]
    assert links(*pieces, weights) == ["see=x", "x=sieh", "x=Hund"]
    assert links(*pieces, weights, [((4, 5), (0, 1))]) == ["x=x", "see=sieh", "see=Hund"]


@pytest.mark.parametrize(
    ("pairs", "expected"),
    [
        ([(0, 0), (1, 1), (2, 2)], [(0, 0), (2, 1)]),
        ([(0, 1), (1, 1), (2, 0)], [(0, 1), (2, 0)]),  # in another order
        ([(0, 1), (2, 1)], [(0, 0), (2, 1)]),  # both in the same range
        ([(3, 3), (3, 0), (1, 2)], [(0, 0), (2, 1), (3, 3)]),  # none, and one to words without a mark
    ],
)
def test_links_of_marked_ranges(pairs: list[tuple[int, int]], expected: list[tuple[int, int]]) -> None:
    sources, targets = ((0, 19), (20, 30)), ((0, 10), (10, 30))  # of units of 10 characters
    linked = with_marks([((a * 10, a * 10 + 9), (b * 10, b * 10 + 9)) for a, b in pairs], sources, targets)
    assert sorted((left[0] // 10, right[0] // 10) for left, right in linked) == expected
    assert with_marks(linked, sources, ()) == linked
    lines = ((0, 20), (20, 30))  # which keep their order
    assert {*with_marks(linked, lines, targets)} >= {*zip(lines, targets, strict=True)}
