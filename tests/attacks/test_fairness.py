"""A single sentence of one caller beside one busy caller."""

from collections.abc import Iterator
from itertools import count

import pytest

from scripts.attack.fairness import ROWS, measure
from scripts.attack.target import ServiceProcess, running

pytestmark = pytest.mark.attack


@pytest.fixture(scope="module")
def target() -> Iterator[ServiceProcess]:
    with running({"MT_CACHE_CHARACTERS": "0"}) as service:
        yield service


@pytest.mark.parametrize(("load", "kind"), ROWS)
def test_single_sentence_beside_a_busy_caller(target: ServiceProcess, load: str, kind: str) -> None:
    row = measure(target, load, kind, count(10_000_000))
    assert row.within, str(row)
