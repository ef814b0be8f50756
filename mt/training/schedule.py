"""Learning rates by update, counted from 1."""

from mt.config import TrainingConfig


def noam(update: int, d_model: int, warmup: int, factor: float = 1.0) -> float:
    """factor * d_model^-0.5 * min(update^-0.5, update * warmup^-1.5) (Vaswani et al. 2017, equation 3)."""
    return factor * d_model**-0.5 * min(update**-0.5, update * warmup**-1.5)


def inverse_sqrt(update: int, peak: float, warmup: int) -> float:
    """Linear to `peak` at update `warmup`, then falling with the square root of the updates."""
    return peak * min(update / warmup, (warmup / update) ** 0.5)


def learning_rate(update: int, config: TrainingConfig, d_model: int) -> float:
    """The rate that a recipe asks for at an update."""
    if config.schedule == "noam":
        return noam(update, d_model, config.warmup_updates, config.learning_rate)
    return inverse_sqrt(update, config.learning_rate, config.warmup_updates)
