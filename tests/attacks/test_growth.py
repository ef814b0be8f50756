"""Processor time of hostile input at n, 2n and 4n: parsers, markup, protection, terms and planning.

`python -m tests.attacks.test_growth [PART ...]` prints the table, of the inputs whose names begin with a PART.
"""

import sys
from collections.abc import Callable, Iterator
from functools import cache, partial

import pytest

from mt.pipeline.translator import Translator
from mt.text.terms import Terms
from tests.attacks.payloads import SIZED_DOCUMENTS
from tests.attacks.target import MODEL
from tests.linear_time import RUNS, Prepare, assert_linear, cpu_time
from tests.text.test_growth import GROWTH, SIZES, translate_file

pytestmark = pytest.mark.attack
TERMS = Terms(tuple((f"a {number}", "b") for number in range(1000)))


@cache
def translator() -> Translator:
    return Translator.load(MODEL, device="cpu")


def plan(unit: str, size: int, terms: Terms | None = None) -> Callable[[], object]:
    planner = translator().planner(source="en", target="de", terms=terms)
    planner.task(unit)
    return partial(planner.task, unit * size)


PLANNING: dict[str, tuple[Prepare, int]] = {
    f"planning: {name}": (partial(plan, unit), size)
    for name, (unit, size) in {
        "sentences": ("The dog sees the house. ", 400),
        "no sentence ends": ("the dog sees the house and ", 400),
        "no spaces": ("a", 10_000),
        "Chinese without spaces": ("中", 10_000),
        "an unknown script": ("ܐܒܓ ", 2500),
        "headlines": ("I GO. ", 1500),
        "spans": ("a-1", 3000),
        "brackets": ("([{", 3000),
        "quotation marks": ("\"'“", 3000),
        "numbers": ("1,000 ", 1500),
        "placeholders": ("{a} %s ", 1500),
        "line breaks": ("a\n", 2000),
    }.items()
}
PLANNING["planning: terms"] = partial(plan, "a ", terms=TERMS), 2000


@pytest.mark.parametrize(("prepare", "size"), PLANNING.values(), ids=PLANNING.keys())
def test_planning_takes_time_proportional_to_the_size(prepare: Prepare, size: int) -> None:
    assert_linear(prepare, size)


def document(name: str, content: Callable[[int], bytes], size: int) -> Callable[[], object]:
    return partial(translate_file, name, content(size))


def inputs() -> Iterator[tuple[str, Prepare, int]]:
    """Yield name, preparation and size n of each input."""
    for kind, (name, content) in SIZED_DOCUMENTS.items():
        yield kind, partial(document, name, content), 20_000
    for kind, (prepare, size) in {**GROWTH, **PLANNING}.items():
        yield kind, prepare, SIZES.get(kind, size)


def main(parts: list[str]) -> None:
    for kind, prepare, size in inputs():
        if not parts or kind.startswith(tuple(parts)):
            calls = [prepare(scale * size) for scale in (1, 2, 4)]
            times = [1000 * min(cpu_time(call) for _ in range(RUNS)) for call in calls]
            ratios = [times[1] / times[0], times[2] / times[1]]
            print(" | ".join([kind, *(f"{value:.1f}" for value in (*times, *ratios))]), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
