"""Functions on the scores of R rows. The result for one row never depends on other rows.

Shapes: B sentences, R rows, T tokens, V vocabulary.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from mt.decoding.options import Normalization, SearchOptions

BLOCK = 64
MIN_BLOCKS = 16  # with fewer blocks one plain top-k is as fast
MIN_SCORES = 40_000  # with fewer scores one plain maximum is as fast


def length_penalty(lengths: Tensor, alpha: Tensor, gnmt: Tensor) -> Tensor:
    """Return the divisor of log-probabilities: n ** alpha, or ((5 + n) / 6) ** alpha for gnmt (Wu et al. 2016, eq. 14).

    The lengths n, float64 `alpha` and boolean `gnmt` are broadcast against each other. The result is float32. The power
    is computed in float64, because vectorized and scalar code may differ in the last bit: in float32 a score would
    depend on the position of the sentence in the batch.
    """
    n = lengths.double()
    return torch.where(gnmt, (5 + n) / 6, n).pow(alpha).float()


def length_penalties(options: Sequence[SearchOptions], width: int, device: torch.device | None = None) -> Tensor:
    """Return float32 [B, width]: entry [b, t] is the length penalty if a hypothesis of sentence b ends at step t."""
    alpha = torch.tensor([sentence.length_penalty for sentence in options], dtype=torch.float64, device=device)
    gnmt = torch.tensor([sentence.normalization is Normalization.GNMT for sentence in options], device=device)
    return length_penalty(torch.arange(1, width + 1, device=device), alpha[:, None], gnmt[:, None])


def best(scores: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Return the k highest values of each row of `scores` [R, V] and their ids, each [R, k], best first.

    NaN counts as the highest value. Each row is divided into blocks. The k highest values are in the k blocks with the
    highest maxima, so most values of a row are compared only once. For k > 1 the choice between this method and one
    top-k must not depend on R: otherwise the order of two equal scores would depend on the batch. For k = 1 both
    methods find the first of equal values.
    """
    rows, size = scores.shape
    blocks = size // BLOCK
    if blocks < max(MIN_BLOCKS, k) or (k == 1 and scores.numel() < MIN_SCORES):
        return _best(scores, k)
    body = scores[:, : blocks * BLOCK].view(rows, blocks, BLOCK)
    chosen = _best(body.amax(2), k)[1]  # [R, k]
    inside = body.gather(1, chosen[:, :, None].expand(rows, k, BLOCK)).view(rows, k * BLOCK)
    values, places = _best(torch.cat((inside, scores[:, blocks * BLOCK :]), 1), k)
    in_tail = places >= k * BLOCK
    starts = chosen.gather(1, (places // BLOCK).clamp(max=k - 1)) * BLOCK
    return values, torch.where(in_tail, places + (blocks - k) * BLOCK, starts + places % BLOCK)


def _best(scores: Tensor, k: int) -> tuple[Tensor, Tensor]:
    values, ids = scores.topk(k, dim=1) if k > 1 else scores.max(dim=1, keepdim=True)
    return values, ids


def seen_tokens(history: Tensor, valid: Tensor, vocabulary: int) -> Tensor:
    """Return bool [R, V], True for each id that occurs in the row of `history` [R, T] where `valid` [R, T] is True."""
    ids = torch.where(valid, history, vocabulary)  # invalid ids are mapped to an extra column, which is removed
    seen = torch.zeros(history.shape[0], vocabulary + 1, dtype=torch.bool, device=history.device)
    return seen.scatter_(1, ids, True)[:, :vocabulary]


def repeating_ngrams(history: Tensor, lengths: Tensor, n: Tensor, longest: int) -> Tensor:
    """Return bool [R, T], True for each token of `history` [R, T] that would repeat an n-gram if it came next.

    The n - 1 tokens before such a token equal the last n - 1 tokens of the row (Paulus et al. 2018, section 2.5). Only
    the first lengths[r] tokens of row r are read. `n` [R] is at most `longest`; n[r] = 0 allows all repetitions.
    """
    places = torch.arange(history.shape[1], device=history.device)
    repeats = (places >= n[:, None] - 1) & (places < lengths[:, None]) & (n > 0)[:, None]
    for back in range(1, longest):
        latest = history.gather(1, (lengths - back).clamp(min=0)[:, None])  # [R, 1]
        repeats &= (history.roll(back, dims=1) == latest) | (n <= back)[:, None]
    return repeats
