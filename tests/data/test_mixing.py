import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mt.data.mixing import epoch_counts, pair_weights


@settings(max_examples=100)
@example(pairs=[(1.9, 0.1)], first=0, epochs=11)  # nine times 0.9 and 0.1 is a little less than 1
@given(
    pairs=st.lists(st.tuples(st.floats(0.001, 1000), st.floats(0, 1, exclude_max=True)), min_size=1, max_size=9),
    first=st.integers(0, 1000),
    epochs=st.integers(1, 20),
)
def test_a_pair_comes_as_often_as_its_weight_says(pairs: list[tuple[float, float]], first: int, epochs: int) -> None:
    weights, phases = np.array(pairs).T
    counts = np.array([epoch_counts(weights, phases, epoch) for epoch in range(first, first + epochs)])
    assert ((counts == np.floor(weights)) | (counts == np.ceil(weights))).all()
    assert (abs(counts.sum(axis=0) - epochs * weights) < 1 + 1e-6).all()


@pytest.mark.parametrize(
    ("temperature", "many", "few"),
    [
        (1, 1, 1),  # 16 pairs and 1
        (2, 0.85, 3.4),  # 4 to 1, of 17: 13.6 and 3.4
        (4, 17 / 24, 17 / 3),  # 2 to 1
        (1e9, 8.5 / 16, 8.5),  # even
    ],
)
def test_a_temperature_by_hand(temperature: float, many: float, few: float) -> None:
    directions = np.array([0] * 16 + [2])  # and none in direction 1
    mixed = pair_weights(np.ones(17), directions, temperature)
    assert mixed == pytest.approx([many] * 16 + [few])


@settings(max_examples=100)
@given(
    pairs=st.lists(st.tuples(st.floats(0.001, 1000), st.integers(0, 4)), min_size=1, max_size=30),
    temperature=st.floats(1, 100),
)
def test_a_temperature_keeps_the_length_of_an_epoch(pairs: list[tuple[float, int]], temperature: float) -> None:
    weights, directions = np.array([weight for weight, _ in pairs]), np.array([number for _, number in pairs])
    assert pair_weights(weights, directions, temperature).sum() == pytest.approx(weights.sum())
    assert (pair_weights(weights, directions, 1) == weights).all()
