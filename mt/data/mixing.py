"""How often each training pair occurs in an epoch: by corpus weights and a temperature over directions."""

import numpy as np


def pair_weights(weights: np.ndarray, directions: np.ndarray, temperature: float) -> np.ndarray:
    """Return how often each pair occurs in an epoch on average, [N], from the corpus weight of each pair, [N].

    The share p of a direction becomes proportional to p ** (1 / temperature) (Arivazhagan et al. 2019, section 3.1).
    The result has the sum of `weights`. Temperature 1 returns `weights` exactly.
    """
    sizes = np.bincount(directions, weights)
    even = sizes ** (1 / temperature)
    mixed: np.ndarray = weights * (even[directions] / sizes[directions] * (sizes.sum() / even.sum()))
    return mixed


def epoch_counts(weights: np.ndarray, phases: np.ndarray, epoch: int) -> np.ndarray:
    """Return how often each pair occurs in epoch `epoch`, [N]: its weight, rounded down or up.

    The phase of a pair, in [0, 1), decides in which epochs its weight is rounded up. Over consecutive epochs, counts
    and weights of a pair have the same sum, to within 1. With weight 0.1, ten epochs thus use every pair of a corpus;
    independent random draws would miss a third of the pairs.
    """
    whole, part = np.divmod(weights, 1)
    before, after = (np.floor(part * number + phases) for number in (epoch, epoch + 1))
    counts: np.ndarray = (whole + after - before).astype(np.int64)
    return counts
