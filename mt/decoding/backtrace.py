"""Reading the hypotheses of a beam search from its record, for many sentences at once.

Shapes: N sentences, K beams per sentence, T steps, M hypotheses.
"""

import numpy as np

from mt.decoding.hypothesis import Hypothesis


def best_hypotheses(
    totals: np.ndarray,
    parents: np.ndarray,
    tokens: np.ndarray,
    penalty: np.ndarray,
    steps: np.ndarray,
    counts: np.ndarray,
) -> list[list[Hypothesis]]:
    """Return the counts[n] best finished hypotheses of each sentence n, best first.

    If two scores are equal, the hypothesis that ended first ranks higher. A sentence with a NaN score has none.

    Args:
        totals: float32 [N, T, 2K], at step t: log-probabilities of the live hypotheses, then of those that end.
        parents: [N, T, K], at step t: the beams that the live hypotheses continue.
        tokens: [N, T, K], at step t: the newest tokens of the live hypotheses.
        penalty: float32 [N, T], the length penalty of a hypothesis that ends at step t.
        steps: [N], the numbers of steps, each from 1 to T.
        counts: [N], at least 1.
    """
    beams = parents.shape[2]
    with np.errstate(divide="ignore", invalid="ignore"):  # an extreme exponent makes penalties 0 or infinite
        scores = totals[:, :, beams:] / penalty[:, :, None]
    scores[np.arange(scores.shape[1]) >= steps[:, None]] = -np.inf
    scores[np.isnan(totals[np.arange(len(steps)), steps - 1]).any(1)] = -np.inf
    flat = scores.reshape(len(steps), scores.shape[1] * beams)
    ranked = np.argsort(-flat, axis=1, kind="stable")[:, : counts.max(initial=1)]
    values = np.take_along_axis(flat, ranked, 1)
    sentence, rank = np.nonzero((values > -np.inf) & (np.arange(ranked.shape[1]) < counts[:, None]))  # [M] each
    end, beam = np.divmod(ranked[sentence, rank], beams)
    ids, sums = _backtrace(totals[sentence], parents[sentence], tokens[sentence], end, beam)
    log_probs = np.diff(sums, axis=1)
    hypotheses: list[list[Hypothesis]] = [[] for _ in steps]
    finished = zip(sentence.tolist(), values[sentence, rank].tolist(), end.tolist(), ids, sums, log_probs, strict=True)
    for owner, score, length, own_ids, own_sums, own_log_probs in finished:
        translation, probabilities = tuple(own_ids[:length].tolist()), tuple(own_log_probs[: length + 1].tolist())
        hypotheses[owner].append(Hypothesis(translation, score, float(own_sums[length + 1]), probabilities))
    return hypotheses


def _backtrace(
    totals: np.ndarray, parents: np.ndarray, tokens: np.ndarray, end: np.ndarray, beam: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Follow the parents of M hypotheses from their ends to their beginnings.

    Hypothesis m ends in beam beam[m] of step end[m]. The first dimension of the other parameters is M too.

    Returns: the tokens [M, longest] and the sums [M, longest + 2] of log-probabilities before each token, before EOS
        and after EOS, both valid for the length of each hypothesis.
    """
    longest, beams = int(end.max(initial=0)), parents.shape[2]
    steps, rows = np.arange(longest), np.arange(len(end))
    alive = steps[:, None] < end  # [longest, M]
    # Before its backward path begins, a hypothesis stays in its beam. An index counts the beams of all hypotheses.
    continued = np.where(alive[:, :, None], parents[:, :longest].swapaxes(0, 1), np.arange(beams))
    continued = (continued + rows[:, None] * beams).reshape(longest, len(end) * beams)
    path, index = np.empty((longest, len(end)), np.int64), rows * beams + beam
    for step in reversed(range(longest)):
        path[step] = index
        index = continued[step][index]
    beam_at = (path % beams).T  # [M, longest]
    sums = np.zeros((len(end), longest + 2))
    sums[:, 1:-1] = np.where(alive.T, totals[rows[:, None], steps, beam_at], 0.0)
    sums[rows, end + 1] = totals[rows, end, beams + beam]
    return tokens[rows[:, None], steps, beam_at], sums
