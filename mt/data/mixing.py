"""Number of occurrences of each training pair in an epoch, computed from corpus weights and a temperature."""

import numpy as np


def pair_weights(weights: np.ndarray, directions: np.ndarray, temperature: float) -> np.ndarray:
    """Return the mean number of occurrences of each pair in an epoch: [N] for N pairs.

    `weights` [N] has the corpus weight of each pair, and `directions` [N] the index of its direction. If a direction
    has a fraction p of the sum of weights, its new fraction is proportional to p ** (1 / temperature) (Arivazhagan et
    al. 2019, section 3.1). The sum of the result equals the sum of `weights`. If the temperature is 1, the result
    equals `weights`.
    """
    sizes = np.bincount(directions, weights)
    even = sizes ** (1 / temperature)
    mixed: np.ndarray = weights * (even[directions] / sizes[directions] * (sizes.sum() / even.sum()))
    return mixed


def epoch_counts(weights: np.ndarray, phases: np.ndarray, epoch: int) -> np.ndarray:
    """Return the number of occurrences of each pair in an epoch: the weight of the pair, rounded down or up.

    `weights` and `phases` have one number for each pair. The phase, in [0, 1), determines the epochs in which the
    weight is rounded up. In n consecutive epochs, a pair of weight w occurs n * w times, rounded down or up. With
    weight 0.1, for example, each pair occurs once in ten epochs; independent random draws would miss a third of them.
    """
    whole, part = np.divmod(weights, 1)
    before, after = (np.floor(part * number + phases) for number in (epoch, epoch + 1))
    counts: np.ndarray = (whole + after - before).astype(np.int64)
    return counts
