"""Learning rates as functions of the update number, which starts at 1."""

import math

from mt.config import TrainingConfig

LONGEST_WARMUP = 1000  # largest default warm-up, in updates
WARMUP_SHARE = 0.1  # default warm-up, as a share of the planned updates
COOLDOWN_SHARE = 0.2  # default cool-down, as a share of the updates or minutes of the recipe


def noam(update: int, d_model: int, warmup: int, factor: float = 1.0) -> float:
    """Return factor * d_model^-0.5 * min(update^-0.5, update * warmup^-1.5) (Vaswani et al. 2017, equation 3)."""
    return factor / math.sqrt(d_model) * min(1 / math.sqrt(update), update / math.sqrt(warmup) ** 3)


def inverse_sqrt(update: int, peak: float, warmup: int) -> float:
    """Return the learning rate: linear up to `peak` at update `warmup`, then proportional to 1 / sqrt(update)."""
    return peak * min(update / warmup, math.sqrt(warmup / update))


def default_learning_rate(config: TrainingConfig, d_model: int) -> float:
    """Return the learning rate of recipes that do not set `training.learning_rate`.

    With the schedule `noam`, it is the factor 1. Otherwise it is the peak: 1e-3 for Adam, and 0.034 / sqrt(d_model) for
    Muon, which is 3e-3 at d_model 128.
    """
    if config.schedule == "noam":
        return 1.0
    return 0.034 / math.sqrt(d_model) if config.optimizer == "muon" else 1e-3


def warmup_updates(config: TrainingConfig, planned_updates: int) -> int:
    """Return `config.warmup_updates` or, if it is not set, a fraction of `planned_updates`.

    `planned_updates` is the expected number of updates of the run. If it is 0, `config.max_updates` is used instead.
    """
    planned = planned_updates or config.max_updates
    return config.warmup_updates or max(1, min(LONGEST_WARMUP, round(WARMUP_SHARE * planned)))


def peak_warning(config: TrainingConfig, updates: int, planned_updates: int) -> str:
    """Return a warning if the learning rate does not reach its peak in a run of `updates` updates, otherwise "".

    The run ends within the warm-up, or the cool-down begins before the end of the warm-up. The warning proposes the
    default values for `updates`.
    """
    warmup = warmup_updates(config, planned_updates)
    overlap = cooldown(warmup, 0.0, config) < 1
    if updates >= warmup and not overlap:
        return ""
    falling = COOLDOWN_SHARE * config.max_updates if config.cooldown_updates is None else config.cooldown_updates
    reached = min(updates / warmup, (config.max_updates + 1) / (warmup + falling) if overlap else 1.0)
    phases, remedy = f"a warm-up of {warmup:,}", f"training.warmup_updates={max(1, round(WARMUP_SHARE * updates))}"
    if overlap:
        phases += f" and a cool-down of {falling:,.0f}"
        remedy += f" training.cooldown_updates={round(COOLDOWN_SHARE * updates)}, or a larger training.max_updates"
    return (
        f"the learning rate reaches only {reached:.0%} of its peak in {updates:,} updates, with {phases} updates, and "
        f"the model may be poor; set {remedy}{'' if overlap else ', or train longer'}"
    )


def cooldown(update: int, seconds: float, config: TrainingConfig) -> float:
    """Return a factor for the learning rate: 1 until the cool-down at the end of the run, then falling linearly to 0.

    `seconds` is the duration of the run so far. The cool-down takes `config.cooldown_updates` updates; if this is not
    set, it takes a fraction of the updates or minutes of the recipe. A linear cool-down after any schedule brings most
    of the gain of a long decay (Hägele et al. 2024, section 3).
    """
    left = config.max_updates + 1 - update
    if config.cooldown_updates is not None:
        return min(1.0, left / config.cooldown_updates) if config.cooldown_updates else 1.0
    remaining = left / config.max_updates
    if config.max_minutes is not None:
        remaining = min(remaining, 1 - seconds / (60 * config.max_minutes))
    return min(1.0, max(0.0, remaining / COOLDOWN_SHARE))


def learning_rate(update: int, config: TrainingConfig, d_model: int, warmup: int) -> float:
    """Return the learning rate of an update, before it is multiplied with the factor that `cooldown` returns.

    `warmup` is the number of warm-up updates.
    """
    peak = config.learning_rate or default_learning_rate(config, d_model)
    if config.schedule == "noam":
        return noam(update, d_model, warmup, peak)
    return inverse_sqrt(update, peak, warmup)
