"""Comparison of int8 with float32 for a model that has no calibration text, such as an imported one."""

from collections.abc import Sequence
from typing import Any

import torch

from mt.checkpoint import CalibrationPair, Int8Check, LoadedModel
from mt.data.check_sentences import check_sentences
from mt.decoding.scorer import Scorer
from mt.engine.backends.calibration import encode_pair
from mt.engine.backends.compiled_scorer import CompiledScorer
from mt.engine.backends.cpu import compile_model
from mt.tokenizer import EOS

MAX_DIRECTIONS = 8
MAX_SENTENCES = 64
NOT_FINITE = 1e6


@torch.inference_mode()
def measure_int8(loaded: LoadedModel) -> Int8Check:
    """Compare int8 with float32 in the compiled kernels, which must be available.

    At most `MAX_SENTENCES` sentences are translated, in at most `MAX_DIRECTIONS` of the model's directions.
    """
    directions = sorted(loaded.description.directions, key=str)
    directions = directions[:: -(-len(directions) // MAX_DIRECTIONS)]
    pieces = loaded.tokenizer.pieces(range(len(loaded.tokenizer)))
    share = MAX_SENTENCES // len(directions)
    pairs = [
        CalibrationPair(direction=direction, source=sentence, target="")
        for direction in directions
        for sentence in check_sentences(direction.source, pieces)[:share]
    ]
    exact, rounded = (CompiledScorer(compile_model(loaded, int8)) for int8 in (False, True))
    return divergence(exact, rounded, loaded, pairs)


@torch.inference_mode()
def divergence(
    exact: Scorer[Any], rounded: Scorer[Any], loaded: LoadedModel, pairs: Sequence[CalibrationPair]
) -> Int8Check:
    """Compare the next tokens' distributions of two scorers along the greedy translations by `exact`.

    The targets of `pairs` must be empty. The divergence of a token is KL(exact || rounded) in nats, or `NOT_FINITE`.
    """
    encoded = [encode_pair(loaded, pair) for pair in pairs]
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
