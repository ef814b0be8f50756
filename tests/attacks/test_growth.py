"""Planning takes time that is proportional to the size of the text."""

from collections.abc import Callable
from functools import cache, partial

import pytest

from mt.pipeline.translator import Translator
from mt.text.terms import Terms
from scripts.attack.target import MODEL
from tests.linear_time import Prepare, assert_linear

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
