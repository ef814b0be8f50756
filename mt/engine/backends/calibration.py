"""Loss of quantized weights: on the calibration text of a model directory, or along translations of sentences."""

from collections.abc import Sequence
from typing import Any

import torch

from mt.checkpoint import CalibrationPair, Int8Check, LoadedModel
from mt.decoding.scorer import Scorer
from mt.tokenizer import EOS

LARGEST_LOSS = 0.01
"""Largest accepted decrease of the calibration text's log-probability with int8 weights, in nats per token.

A typical decrease is 0.001.
"""

LARGEST_DIVERGENCE, LARGEST_DECILE = 0.005, 0.02
"""Largest accepted divergence of int8 from float32 in nats per token: mean, and mean of the worst tenth of sentences.

Three models with 3+3 and 4+4 layers have a mean of 0.0002 to 0.0007 with int8 weights, of 0.002 to 0.007 with 6 bits
(no loss of BLEU on 500 captions), and of 0.008 to 0.027 with 5 bits (0.3 BLEU lost).
"""
NOT_FINITE = 1e6


def accepts(check: Int8Check) -> bool:
    """Return whether int8 is close enough to float32 to be selected."""
    return check.divergence <= LARGEST_DIVERGENCE and check.worst_decile <= LARGEST_DECILE


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


@torch.inference_mode()
def divergence(
    exact: Scorer[Any], rounded: Scorer[Any], loaded: LoadedModel, pairs: Sequence[CalibrationPair]
) -> Int8Check:
    """Compare the next tokens' distributions of two scorers along the greedy translations by `exact`.

    The targets of `pairs` must be empty. The divergence of a token is KL(exact || rounded) in nats, or `NOT_FINITE`.
    """
    encoded = [_encode(loaded, pair) for pair in pairs]
    sources, prefixes = [source for source, _ in encoded], [target[:-1] for _, target in encoded]
    special, limit = exact.special, loaded.description.model.max_length
    states = [scorer.start(sources, 1) for scorer in (exact, rounded)]
    totals, counts = torch.zeros(len(pairs), dtype=torch.float64), torch.zeros(len(pairs), dtype=torch.float64)
    sentences = torch.arange(len(pairs))  # those whose translations are not complete
    tokens = torch.full((len(pairs),), special.bos)
    for step in range(min(limit, 2 * max(map(len, sources)) + 10)):
        expected, found = (
            scorer.step(state, tokens.to(scorer.device)).double().cpu().log_softmax(1)
            for scorer, state in zip((exact, rounded), states, strict=True)
        )
        divergences = (expected.exp() * (expected - found)).sum(1)
        totals[sentences] += divergences.nan_to_num(NOT_FINITE, NOT_FINITE)
        counts[sentences] += 1
        expected[:, [special.pad, special.unk, special.bos]] = -torch.inf
        tokens = expected.argmax(1)
        for row, sentence in enumerate(sentences.tolist()):
            if step < len(prefixes[sentence]):
                tokens[row] = prefixes[sentence][step]
        remaining = (tokens != EOS).nonzero().flatten()
        if not len(remaining):
            break
        sentences, tokens = sentences[remaining], tokens[remaining]
        for scorer, state in zip((exact, rounded), states, strict=True):
            state.select(remaining.to(scorer.device))
    means = (totals / counts).sort(descending=True).values
    return Int8Check(
        sentences=len(pairs),
        divergence=float(totals.sum() / counts.sum()),
        worst_decile=float(means[: -(-len(means) // 10)].mean()),
    )


def _encode(loaded: LoadedModel, pair: CalibrationPair) -> tuple[Sequence[int], Sequence[int]]:
    """Return the ids of source and target with EOS, each truncated to the model's maximum length."""
    tokenizer, limit = loaded.tokenizer, loaded.description.model.max_length
    direction = pair.direction
    tag = tokenizer.source_prefix(direction.source, direction.target, loaded.description.directions)
    source = [*tag, *tokenizer.encode(pair.source.strip())][: limit - 1]
    target = [*tokenizer.target_prefix(direction.target), *tokenizer.target.encode(pair.target.strip())][: limit - 1]
    return (*source, EOS), (*target, EOS)
