"""Processor time of hostile input at n, 2n and 4n: parsers, markup, protection, terms and planning.

`python -m scripts.attack.growth [PART ...]` prints the table, of the inputs whose names begin with a PART.
"""

import sys
from collections.abc import Callable, Iterator
from functools import partial

from scripts.attack.payloads import SIZED_DOCUMENTS
from tests.attacks.test_growth import PLANNING
from tests.linear_time import RUNS, Prepare, cpu_time
from tests.text.test_growth import GROWTH, SIZES, translate_file


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
