"""Finished hypotheses of a search. This module does not import torch."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Hypothesis:
    """A finished translation: its ids without BOS and EOS, and its log-probabilities.

    `token_log_probabilities` has one entry for each token, then one for EOS. `log_probability` is the sum of these
    entries. `score` is `log_probability` divided by the length penalty. Hypotheses are ranked by `score`. `attention`
    [tokens and EOS, source tokens], which the compiled kernels record, is what CrossAttention.alignment computes.
    """

    tokens: tuple[int, ...]
    score: float
    log_probability: float
    token_log_probabilities: tuple[float, ...]
    attention: NDArray[np.float32] | None = field(default=None, repr=False, compare=False)
