"""How often an epoch has each training pair: by the weight of its corpus, and by a temperature over directions."""

import numpy as np


def pair_weights(weights: np.ndarray, directions: np.ndarray, temperature: float) -> np.ndarray:
    """How often an epoch has each of N pairs, on average: [N], from the weights of their corpora and their directions.

    A direction with a share p of all weight gets one in proportion to p ** (1 / temperature) (Arivazhagan et al. 2019,
    section 3.1). The sum stays as it is, and so do all weights at temperature 1, to the last bit.
    """
    sizes = np.bincount(directions, weights)
    even = sizes ** (1 / temperature)
    mixed: np.ndarray = weights * (even[directions] / sizes[directions] * (sizes.sum() / even.sum()))
    return mixed


def epoch_counts(weights: np.ndarray, turns: np.ndarray, epoch: int) -> np.ndarray:
    """How often epoch `epoch` has each pair, [N]: its weight, rounded down or up.

    `turns`, in [0, 1), say when up: over any epochs in a row, a pair comes as often as its weight says, to within one.
    So a weight of 0.1 shows all of a large corpus in ten epochs, where drawing anew would leave out a third of it.
    """
    whole, part = np.divmod(weights, 1)
    before, after = (np.floor(part * number + turns) for number in (epoch, epoch + 1))
    counts: np.ndarray = (whole + after - before).astype(np.int64)
    return counts
