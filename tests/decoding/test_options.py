from typing import Any

import pytest

from mt.decoding.options import SearchOptions
from mt.errors import RequestError


def test_all_problems_are_told_at_once() -> None:
    wrong: dict[str, Any] = {
        "beam_size": 0, "n_best": 0, "length_penalty": -1.0, "max_length_factor": float("nan"),
        "max_length_offset": -1, "max_length": 0, "min_length": 7, "no_repeat_ngram": -1,
        "temperature": 1e-39, "seed": -1,
    }  # fmt: skip
    with pytest.raises(RequestError) as caught:
        SearchOptions(**wrong)
    assert [name for name in wrong if f"{name} is " not in str(caught.value)] == []


@pytest.mark.parametrize("wrong", [{"n_best": 6}, {"temperature": 0.7}])
def test_options_that_would_have_no_effect_or_no_room_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(RequestError):
        SearchOptions(**wrong)
    SearchOptions(sample=True, **wrong)


@pytest.mark.parametrize(
    ("options", "source", "prefix", "longest"),
    [
        (SearchOptions(), 7, 0, 24),
        (SearchOptions(max_length=20), 7, 0, 20),
        (SearchOptions(max_length_factor=0, max_length_offset=0, max_length=9), 7, 4, 5),
        (SearchOptions(max_length_factor=1.5, max_length_offset=1), 3, 0, 5),
    ],
)
def test_the_maximum_length_follows_the_source(options: SearchOptions, source: int, prefix: int, longest: int) -> None:
    assert options.longest(source, prefix) == longest
