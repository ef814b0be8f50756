"""Links from a source through a bridge language."""

from collections import Counter
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from mt.text.markup import Link, Range
from service.translation.answers import compose_links

RANGES = st.tuples(st.integers(0, 12), st.integers(0, 12)).map(sorted).map(tuple)
LINKS = st.lists(st.tuples(RANGES, RANGES), max_size=12)


def touch(one: Range, other: Range) -> bool:
    return one[0] < other[1] and other[0] < one[1]


@given(LINKS, LINKS)
def test_links_through_a_bridge_are_those_that_touch_there(first: list[Link], second: list[Link]) -> None:
    expected = {(here, there) for here, one in first for other, there in second if touch(one, other)}
    assert compose_links(first, second) == tuple(sorted(expected))


def test_links_of_a_long_text_are_not_compared_each_with_each() -> None:
    compared: Counter[str] = Counter()

    class Place(int):
        """Counts how often it is compared."""

        def __lt__(self, other: Any) -> bool:
            compared["<"] += 1
            return int(self) < int(other)

        def __gt__(self, other: Any) -> bool:
            compared[">"] += 1
            return int(self) > int(other)

    words = [(Place(3 * number), Place(3 * number + 2)) for number in range(1000)]
    links = [(word, word) for word in words]
    assert compose_links(links, links[::-1]) == tuple(links)
    assert compared.total() < 100 * len(links)
