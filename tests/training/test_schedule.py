import re
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mt.config import TrainingConfig
from mt.training.schedule import cooldown, learning_rate, noam, peak_warning, warmup_updates


@pytest.mark.parametrize(
    ("update", "d_model", "warmup", "rate"),
    [
        # 1 / sqrt(d_model) * min(1 / sqrt(update), update / warmup^1.5), equation 3
        (50, 100, 100, 0.1 * 50 / 1000),
        (100, 100, 100, 0.1 * 1 / 10),
        (400, 100, 100, 0.1 * 1 / 20),
        (4000, 512, 4000, 6.987712e-4),  # the peak of the paper's base model
    ],
)
def test_noam_is_equation_3(update: int, d_model: int, warmup: int, rate: float) -> None:
    assert noam(update, d_model, warmup) == pytest.approx(rate, rel=1e-6)
    assert noam(update, d_model, warmup, factor=2.0) == pytest.approx(2 * rate, rel=1e-6)


@pytest.mark.parametrize(
    ("values", "d_model", "peak"),
    [
        ({}, 128, 3.0e-3),
        ({}, 512, 1.5e-3),
        ({"optimizer": "adam"}, 512, 1e-3),
        ({"schedule": "noam"}, 512, 6.987712e-4),
        ({"schedule": "noam", "learning_rate": 2.0}, 512, 2 * 6.987712e-4),
        ({"learning_rate": 5e-3}, 512, 5e-3),
    ],
)
def test_the_default_rate_fits_optimizer_size_and_schedule(values: dict[str, Any], d_model: int, peak: float) -> None:
    assert learning_rate(4000, TrainingConfig(**values), d_model, 4000) == pytest.approx(peak, rel=0.01)


@pytest.mark.parametrize(
    ("warmup", "planned", "expected"),
    [(None, 100_000, 1000), (None, 9000, 900), (None, 222, 22), (None, 3, 1), (1000, 222, 1000)],
)
def test_a_warm_up_fits_into_the_run(warmup: int | None, planned: int, expected: int) -> None:
    assert warmup_updates(TrainingConfig(warmup_updates=warmup), planned) == expected


@pytest.mark.parametrize(
    ("values", "update", "minutes", "factor"),
    [
        ({"cooldown_updates": 100}, 900, 0, 1),
        ({"cooldown_updates": 100}, 951, 0, 0.5),
        ({"cooldown_updates": 100, "max_minutes": 10}, 900, 10, 1),  # the length in updates is exact
        ({}, 901, 0, 0.5),
        ({}, 1000, 0, 0.005),
        ({"max_minutes": 10}, 100, 9, 0.5),  # the nearer of both limits counts
        ({"max_minutes": 10}, 951, 9, 0.25),
        ({"max_minutes": 10}, 100, 10.1, 0),
    ],
)
def test_the_rate_falls_to_zero_at_the_end(values: dict[str, Any], update: int, minutes: float, factor: float) -> None:
    assert cooldown(update, 60 * minutes, TrainingConfig(max_updates=1000, **values)) == pytest.approx(factor)


@pytest.mark.parametrize(
    ("values", "updates", "expected"),
    [
        ({}, 1000, ""),
        ({"warmup_updates": 301, "cooldown_updates": 700}, 1000, ""),  # the peak lasts for one update
        ({"schedule": "noam", "warmup_updates": 400, "cooldown_updates": 0}, 1000, ""),
        ({"max_updates": 100_000, "max_minutes": 5.0}, 4000, ""),  # ended by patience
        ({"warmup_updates": 100, "cooldown_updates": 700}, 99, "only 99% of its peak in 99 updates, with a warm-up of"),
        (
            {"max_updates": 300, "warmup_updates": 100, "cooldown_updates": 700},
            300,
            "only 38% of its peak in 300 updates, with a warm-up of 100 and a cool-down of 700 updates, and the model "
            "may be poor; set training.warmup_updates=30 training.cooldown_updates=60, or a larger",
        ),
    ],
)
def test_a_rate_that_does_not_reach_its_peak_is_reported(values: dict[str, Any], updates: int, expected: str) -> None:
    config = TrainingConfig(**{"max_updates": 1000, **values})
    warning = peak_warning(config, updates, 0)
    assert expected in warning and bool(expected) == bool(warning)


@given(
    maximum=st.integers(1, 60),
    warmup=st.none() | st.integers(1, 80),
    falling=st.none() | st.integers(0, 80),
    schedule=st.sampled_from(["noam", "inverse_sqrt"]),
)
def test_the_warning_is_given_when_no_update_has_the_peak_and_its_values_fit(
    maximum: int, warmup: int | None, falling: int | None, schedule: Literal["noam", "inverse_sqrt"]
) -> None:
    lengths = {"max_updates": maximum, "warmup_updates": warmup, "cooldown_updates": falling}
    config = TrainingConfig.model_validate({**lengths, "schedule": schedule, "learning_rate": 1.0})
    rising = warmup_updates(config, 0)
    peak = learning_rate(rising, config, 64, rising)
    updates = range(1, maximum + 1)
    highest = max(learning_rate(update, config, 64, rising) * cooldown(update, 0.0, config) for update in updates)
    warning = peak_warning(config, maximum, 0)
    assert bool(warning) == (highest < peak * (1 - 1e-9))
    proposed = {key: int(value) for key, value in re.findall(r"training\.(\w+)=(\d+)", warning)}
    assert not peak_warning(config.model_copy(update=proposed), maximum, 0)
