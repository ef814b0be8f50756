"""Counts of the training pairs in an epoch, from the weights of corpora and the temperature of directions."""

import numpy as np


def pair_weights(weights: np.ndarray, directions: np.ndarray, temperature: float) -> np.ndarray:
    """Return the mean number of occurrences of each pair in an epoch, [N].

    `weights` [N] are the corpus weights and `directions` [N] the direction indices of the pairs. The share p of each
    direction becomes proportional to p ** (1 / temperature) (Arivazhagan et al. 2019, section 3.1). The sum of the
    result equals the sum of `weights`. If the temperature is 1, the result is `weights`.
    """
    sizes = np.bincount(directions, weights)
    even = sizes ** (1 / temperature)
    mixed: np.ndarray = weights * (even[directions] / sizes[directions] * (sizes.sum() / even.sum()))
    return mixed


def epoch_counts(weights: np.ndarray, phases: np.ndarray, epoch: int) -> np.ndarray:
    """Return the number of occurrences [N] of each pair in an epoch: the weight of the pair, rounded down or up.

    The phase of a pair, in [0, 1), determines the epochs in which its weight is rounded up. Over n consecutive epochs,
    a pair of weight w occurs n * w times, to within 1. With weight 0.1, ten epochs thus use every pair of a corpus;
    independent random draws would miss a third of the pairs.
    """
    whole, part = np.divmod(weights, 1)
    before, after = (np.floor(part * number + phases) for number in (epoch, epoch + 1))
    counts: np.ndarray = (whole + after - before).astype(np.int64)
    return counts
