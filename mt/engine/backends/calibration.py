"""Limits on the loss of quality by int8 weights, and log-probabilities of a model's calibration text."""

from collections.abc import Sequence

import numpy as np

from mt.checkpoint import TokenPair
from mt.description import CalibrationLoss, Int8Check
from mt.kernels.library import CpuBatch, CpuModel
from mt.kernels.structs import scores_only

LARGEST_LOSS = 0.01
"""Largest accepted decrease of the calibration text's log-probability with int8 weights, in nats per token.

A typical decrease is 0.001.
"""

LARGEST_DIVERGENCE, LARGEST_DECILE = 0.005, 0.02
"""Largest accepted divergence of int8 from float32, in nats per token: over all sentences, and over the worst tenth.

Three models with 3+3 and 4+4 layers diverge by 0.0002 to 0.0007 with int8 weights, by 0.002 to 0.007 with 6 bits (no
loss of BLEU on 500 captions), and by 0.008 to 0.027 with 5 bits (0.3 BLEU lost).
"""


def accepts(check: CalibrationLoss | Int8Check) -> bool:
    """Return whether `check` found int8 close enough to float32 to use int8."""
    if isinstance(check, CalibrationLoss):
        return check.loss <= LARGEST_LOSS
    return check.divergence <= LARGEST_DIVERGENCE and check.worst_decile <= LARGEST_DECILE


def mean_log_probability(model: CpuModel, pairs: Sequence[TokenPair]) -> float:
    """Return the mean log-probability per token of the targets of `pairs`. Sources and targets end with EOS."""
    pairs = sorted(pairs, key=lambda pair: -len(pair[1]))
    batch = CpuBatch(model)
    batch.join([source for source, _ in pairs], [scores_only(1)] * len(pairs))
    total, tokens = 0.0, [model.bos] * len(pairs)
    for step in range(len(pairs[0][1])):
        remaining = sum(step < len(target) for _, target in pairs)  # pairs are sorted by target length, longest first
        if remaining < len(tokens):
            batch.select(range(remaining))
        logits = batch.logits(tokens[:remaining]).astype(np.float64)
        tokens = [target[step] for _, target in pairs[:remaining]]
        highest = logits.max(1)
        normalizers = highest + np.log(np.exp(logits - highest[:, None]).sum(1))
        total += float((logits[range(remaining), tokens] - normalizers).sum())
    return total / sum(len(target) for _, target in pairs)
