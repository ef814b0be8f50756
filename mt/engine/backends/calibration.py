"""Loss of quantized weights on the calibration text that a model directory contains."""

from collections.abc import Sequence
from typing import Any

import torch

from mt.checkpoint import CalibrationPair, LoadedModel
from mt.decoding.scorer import Scorer
from mt.tokenizer import EOS

LARGEST_LOSS = 0.01
"""Largest accepted decrease of the calibration text's log-probability with int8 weights, in nats per token.

A typical decrease is 0.001.
"""


@torch.inference_mode()
def mean_log_probability(scorer: Scorer[Any], loaded: LoadedModel) -> float:
    """Return the mean log-probability of the tokens of the calibration targets, EOS included."""
    pairs = sorted((_encode(loaded, pair) for pair in loaded.calibration), key=lambda pair: -len(pair[1]))
    state = scorer.start([source for source, _ in pairs], 1)
    total, tokens = 0.0, [scorer.special.bos] * len(pairs)
    for step in range(len(pairs[0][1])):
        remaining = sum(step < len(target) for _, target in pairs)  # the longest targets come first
        if remaining < len(tokens):
            state.select(torch.arange(remaining, device=scorer.device))
        log_probs = scorer.step(state, torch.tensor(tokens[:remaining], device=scorer.device)).float().log_softmax(1)
        tokens = [target[step] for _, target in pairs[:remaining]]
        total += float(log_probs[range(remaining), tokens].sum())
    return total / sum(len(target) for _, target in pairs)


def _encode(loaded: LoadedModel, pair: CalibrationPair) -> tuple[Sequence[int], Sequence[int]]:
    """Return the ids of source and target with EOS, each truncated to the model's maximum length."""
    tokenizer, limit = loaded.tokenizer, loaded.description.model.max_length
    tag = tokenizer.source_prefix(pair.direction.target, loaded.description.directions)
    source = [*tag, *tokenizer.encode(pair.source.strip())][: limit - 1]
    return (*source, EOS), (*tokenizer.target.encode(pair.target.strip())[: limit - 1], EOS)
