"""Comparison of int8 with float32 for a model without calibration text, such as an imported one.

The float32 weights are read from the mapped file, so that they take no private memory of the process.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from mt.checkpoint import TokenPair
from mt.decoding.scorer import Scorer
from mt.description import Int8Check

MORE_TOKENS = 10  # a translation is compared up to the length of the longest source plus this number
NOT_FINITE = 1e6


@torch.inference_mode()
def divergence(exact: Scorer[Any], rounded: Scorer[Any], pairs: Sequence[TokenPair], limit: int) -> Int8Check:
    """Compare the next-token probabilities of two scorers at each step of greedy translations.

    The translations are those of `exact` for the sources of `pairs`, and have at most `limit` tokens. The targets of
    `pairs` contain only the ids with which translations begin, and EOS. The divergence of a token is
    KL(exact || rounded) in nats. An infinite or NaN divergence counts as `NOT_FINITE`.
    """
    sources, prefixes = [source for source, _ in pairs], [target[:-1] for _, target in pairs]
    special = exact.special
    states = [scorer.start(sources, 1) for scorer in (exact, rounded)]
    totals, counts = torch.zeros(len(pairs), dtype=torch.float64), torch.zeros(len(pairs), dtype=torch.float64)
    sentences = torch.arange(len(pairs))  # indices of the sentences that are not yet translated completely
    tokens = torch.full((len(pairs),), special.bos)
    for step in range(min(limit, max(map(len, sources)) + MORE_TOKENS)):
        logits_exact, logits_int8 = (
            scorer.step(state, tokens.to(scorer.device)).cpu()
            for scorer, state in zip((exact, rounded), states, strict=True)
        )
        totals[sentences] += torch.stack(
            [_divergence(*logits) for logits in zip(logits_exact, logits_int8, strict=True)]
        )
        counts[sentences] += 1
        logits_exact[:, [special.pad, special.unk, special.bos]] = -torch.inf
        tokens = logits_exact.argmax(1)
        for row, sentence in enumerate(sentences.tolist()):
            if step < len(prefixes[sentence]):
                tokens[row] = prefixes[sentence][step]
        remaining = (tokens != special.eos).nonzero().flatten()
        if not len(remaining):
            break
        if len(remaining) < len(tokens):
            sentences, tokens = sentences[remaining], tokens[remaining]
            for scorer, state in zip((exact, rounded), states, strict=True):
                state.select(remaining.to(scorer.device))
    means = (totals / counts).sort(descending=True).values
    return Int8Check(
        sentences=len(pairs),
        divergence=float(totals.sum() / counts.sum()),
        worst_decile=float(means[: -(-len(means) // 10)].mean()),
    )


def _divergence(logits_exact: Tensor, logits_int8: Tensor) -> Tensor:
    """Return KL(exact || int8) of two distributions, given as logits [V]; `NOT_FINITE` if infinite or NaN."""
    exact, rounded = (logits.double().log_softmax(0) for logits in (logits_exact, logits_int8))
    return (exact.exp() * (exact - rounded)).sum().nan_to_num(NOT_FINITE, NOT_FINITE)
