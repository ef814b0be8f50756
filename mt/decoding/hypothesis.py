"""Finished hypotheses of a search. This module does not import torch."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Hypothesis:
    """A finished translation: its ids without BOS and EOS, and its log-probabilities.

    `token_log_probabilities` has one entry for each token, then one for EOS. `log_probability` is the sum of these
    entries. `score` is `log_probability` divided by the length penalty. Hypotheses are ranked by `score`.
    """

    tokens: tuple[int, ...]
    score: float
    log_probability: float
    token_log_probabilities: tuple[float, ...]
