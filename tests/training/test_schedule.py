import pytest
from hypothesis import given
from hypothesis import strategies as st

from mt.config import TrainingConfig
from mt.training.schedule import inverse_sqrt, learning_rate, noam


@pytest.mark.parametrize(
    ("update", "d_model", "warmup", "rate"),
    [
        # 1 / sqrt(d_model) * min(1 / sqrt(update), update / warmup^1.5), equation 3
        (1, 100, 100, 0.1 * 1 / 1000),
        (50, 100, 100, 0.1 * 50 / 1000),
        (100, 100, 100, 0.1 * 1 / 10),
        (400, 100, 100, 0.1 * 1 / 20),
        (10_000, 100, 100, 0.1 * 1 / 100),
        (4000, 512, 4000, 6.987712e-4),  # the peak of the paper's base model
    ],
)
def test_noam_is_equation_3(update: int, d_model: int, warmup: int, rate: float) -> None:
    assert noam(update, d_model, warmup) == pytest.approx(rate, rel=1e-6)
    assert noam(update, d_model, warmup, factor=2.0) == pytest.approx(2 * rate, rel=1e-6)


@pytest.mark.parametrize(("update", "rate"), [(1, 1e-5), (50, 5e-4), (100, 1e-3), (400, 5e-4), (1600, 2.5e-4)])
def test_inverse_sqrt_rises_to_its_peak_and_halves_at_four_times_the_warm_up(update: int, rate: float) -> None:
    assert inverse_sqrt(update, peak=1e-3, warmup=100) == pytest.approx(rate)


@given(st.integers(1, 100_000), st.integers(1, 10_000))
def test_both_schedules_peak_at_the_warm_up(update: int, warmup: int) -> None:
    assert 0 < inverse_sqrt(update, 1e-3, warmup) <= inverse_sqrt(warmup, 1e-3, warmup) == 1e-3
    assert 0 < noam(update, 64, warmup) <= noam(warmup, 64, warmup) * (1 + 1e-9)


def test_a_recipe_names_its_schedule() -> None:
    noam_config = TrainingConfig(schedule="noam", learning_rate=2.0, warmup_updates=100)
    assert learning_rate(400, noam_config, 100) == pytest.approx(2 * 0.1 / 20)
    assert learning_rate(400, TrainingConfig(learning_rate=1e-3, warmup_updates=100), 100) == pytest.approx(5e-4)
