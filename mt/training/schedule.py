"""Learning rates by update, counted from 1."""

import math

from mt.config import TrainingConfig


def noam(update: int, d_model: int, warmup: int, factor: float = 1.0) -> float:
    """factor * d_model^-0.5 * min(update^-0.5, update * warmup^-1.5) (Vaswani et al. 2017, equation 3)."""
    return factor / math.sqrt(d_model) * min(1 / math.sqrt(update), update / math.sqrt(warmup) ** 3)


def inverse_sqrt(update: int, peak: float, warmup: int) -> float:
    """Linear to `peak` at update `warmup`, then falling with the square root of the updates."""
    return peak * min(update / warmup, math.sqrt(warmup / update))


def cooldown(update: int, last: int, length: int) -> float:
    """A factor that falls linearly over the last `length` updates, to 0 just after update `last`.

    Hägele et al. 2024 (section 3): most of what a long decay brings, at the end of any schedule.
    """
    return min(1.0, (last + 1 - update) / length) if length else 1.0


def learning_rate(update: int, config: TrainingConfig, d_model: int) -> float:
    """The rate that a recipe asks for at an update."""
    if config.schedule == "noam":
        rate = noam(update, d_model, config.warmup_updates, config.learning_rate)
    else:
        rate = inverse_sqrt(update, config.learning_rate, config.warmup_updates)
    return rate * cooldown(update, config.max_updates, config.cooldown_updates)
