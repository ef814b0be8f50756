"""Finished hypotheses of a search. This module does not import torch."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Hypothesis:
    """A finished translation: its ids without BOS and EOS, and its log-probabilities.

    `token_log_probabilities` has one entry for each token, then one for EOS. `log_probability` is the sum of these
    entries. `score` is `log_probability` divided by the length penalty. Hypotheses are ranked by `score`. `attention`
    [tokens and EOS, source tokens] of float32, which the compiled kernels record, is what CrossAttention.alignment
    computes; a memoryview is made faster than an array, and few callers read it.
    """

    tokens: tuple[int, ...]
    score: float
    log_probability: float
    token_log_probabilities: tuple[float, ...]
    attention: "memoryview[float] | None" = field(default=None, repr=False, compare=False)
