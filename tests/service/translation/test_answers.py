"""Links from a source through a bridge language."""

from collections.abc import Callable
from functools import partial

from hypothesis import given
from hypothesis import strategies as st

from mt.pipeline.results import SentenceReport
from mt.text.alignment import Link
from service.translation.answers import compose_links, moved_ranges
from service.translation.bridging import bridge_sentence
from service.workers.messages import SourceText
from tests.linear_time import assert_linear

RANGES = st.tuples(st.integers(0, 12), st.integers(0, 12)).map(sorted).map(tuple)
LINKS = st.lists(st.tuples(RANGES, RANGES), max_size=12)


@given(LINKS, LINKS)
def test_links_through_a_bridge_are_those_that_touch_there(first: list[Link], second: list[Link]) -> None:
    both = ((here, there, *one, *other) for here, one in first for other, there in second)
    expected = {(here, there) for here, there, a, b, c, d in both if a < d and c < b}
    assert compose_links(first, second) == tuple(sorted(expected))


class Place(int):
    """Counts how often it is compared."""

    compared = 0

    def __lt__(self, other: int) -> bool:
        Place.compared += 1
        return int(self) < other

    def __gt__(self, other: int) -> bool:
        Place.compared += 1
        return int(self) > other


def test_links_of_a_long_text_are_not_compared_each_with_each() -> None:
    words = [(Place(3 * number), Place(3 * number + 2)) for number in range(1000)]
    links = [(word, word) for word in words]
    Place.compared = 0
    assert compose_links(links, links[::-1]) == tuple(links)
    assert Place.compared < 100 * len(links)


def test_protected_ranges_move_to_where_their_characters_are() -> None:
    text, translation = "A1 is A2 and A1", "and A1: A2 A1 A"
    assert moved_ranges([(0, 2), (6, 8), (13, 15)], text, translation) == ((4, 6), (8, 10), (11, 13))
    assert moved_ranges([(0, 2), (0, 1)], "A1", "A1 A") == ((0, 2),)  # the second is within the first
    assert moved_ranges([(0, 1), (0, 2)], "A1", "A1 A") == ((0, 1),)


def test_sentences_through_a_bridge_look_only_at_their_own_protected_ranges() -> None:
    count = 1000
    text = "A1 b. " * count
    protected = tuple((Place(6 * number), Place(6 * number + 2)) for number in range(count))
    source = SourceText(text, protected, False)
    Place.compared = 0
    for number in range(count):
        begin = 6 * number
        report = SentenceReport((begin, begin + 5), (begin, begin + 5), "", "b A1.", " ", 1.0)
        assert bridge_sentence(source, report).protected == ((2, 4),)
    assert Place.compared < 100 * count


def test_the_time_to_move_protected_ranges_grows_with_their_number() -> None:
    def move(size: int) -> Callable[[], object]:
        text = "a b " * size
        return partial(moved_ranges, [(place, place + 1) for place in range(0, len(text), 4)], text, text)

    assert moved_ranges([(0, 1), (4, 5)], "a b a b", "b a b a") == ((2, 3), (6, 7))
    assert_linear(move, 1000)
