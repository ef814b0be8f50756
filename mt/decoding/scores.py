"""Functions on scores. Parameters have one entry for each row, and a row never depends on other rows."""

from collections.abc import Sequence

import torch
from torch import Tensor

from mt.decoding.options import Normalization, SearchOptions

BLOCK = 64
MIN_BLOCKS = 16  # with fewer blocks one plain top-k is as fast
MIN_SCORES = 40_000  # with fewer scores one plain maximum is as fast
NUCLEUS = 128  # tokens that top-p sorts at first; it rarely needs more


def length_penalty(lengths: Tensor, alpha: Tensor, gnmt: Tensor) -> Tensor:
    """Return the divisor of log-probabilities: n ** alpha, or ((5 + n) / 6) ** alpha for gnmt (Wu et al. 2016, eq. 14).

    Lengths n, float64 alpha and boolean gnmt broadcast to the float32 result. The power is computed in float64, because
    vectorized and scalar code may differ in the last bit. In float32 a score would depend on the position of the
    sentence in the batch.
    """
    n = lengths.double()
    return torch.where(gnmt, (5 + n) / 6, n).pow(alpha).float()


def length_penalties(options: Sequence[SearchOptions], width: int, device: torch.device | None = None) -> Tensor:
    """Return float32 [B, width]: the length penalty of a hypothesis of each sentence that ends at step 0, 1, ..."""
    alpha = torch.tensor([sentence.length_penalty for sentence in options], dtype=torch.float64, device=device)
    gnmt = torch.tensor([sentence.normalization is Normalization.GNMT for sentence in options], device=device)
    return length_penalty(torch.arange(1, width + 1, device=device), alpha[:, None], gnmt[:, None])


def best(scores: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Return the k highest values of each row of [R, V] and their ids, [R, k], best first. NaN counts as highest.

    Rows are divided into blocks. The k highest values are in the k blocks with the highest maxima, so most values of a
    row are compared only once. For k > 1 the choice between blocks and one top-k must not depend on R: otherwise the
    order of two equal scores would depend on the batch. For k = 1 both methods find the first of equal values.
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


def keep_top_k(scores: Tensor, k: Tensor) -> Tensor:
    """Set all scores of row r of [R, V] to -inf except the k[r] highest (Fan et al. 2018, sec. 5.4); 0 keeps all."""
    size = scores.shape[1]
    most = min(max(int(k.max()), 1), size) if _host(scores) else size
    worst = scores.topk(most, dim=1).values.gather(1, k.clamp(1, most)[:, None] - 1)
    return scores.masked_fill((scores < worst) & (k > 0)[:, None], -torch.inf)


def keep_top_p(scores: Tensor, p: Tensor) -> Tensor:
    """Keep the smallest set of tokens whose probability reaches p [R]; set other scores to -inf.

    This is nucleus sampling (Holtzman et al. 2020, section 3.1). Scores [R, V] need not be normalized. The most
    probable token is always kept. Tokens as probable as the least probable token of the set are kept too. p = 1 keeps
    all tokens.
    """
    size = scores.shape[1]
    probabilities = scores.softmax(dim=1)
    some = min(NUCLEUS, size) if _host(scores) else size
    least, enough = _nucleus(probabilities, p, some)
    if some < size:
        wide = ~enough & (p < 1)
        least[wide], _ = _nucleus(probabilities[wide], p[wide], size)
    return scores.masked_fill((probabilities < least) & (p < 1)[:, None], -torch.inf)


def _host(scores: Tensor) -> bool:
    """Return whether scores are on a CPU. Reading values of a GPU would wait, and is not allowed in a CUDA graph."""
    return scores.device.type == "cpu"


def _nucleus(probabilities: Tensor, p: Tensor, most: int) -> tuple[Tensor, Tensor]:
    """Return the least probability [R, 1] in the smallest set that reaches p, from the `most` most probable tokens.

    Also returns bool [R], true for each row in which `most` tokens suffice.
    """
    ordered = probabilities.topk(most, dim=1).values
    below = (ordered.cumsum(dim=1, dtype=torch.float64) < p[:, None]).sum(1)
    return ordered.gather(1, below.clamp(max=most - 1)[:, None]), below < most


def seen_tokens(history: Tensor, valid: Tensor, vocabulary: int) -> Tensor:
    """Return bool [R, V], True for each id that occurs among the valid ids of history [R, T]."""
    ids = torch.where(valid, history, vocabulary)  # invalid ids are mapped to an extra column, which is removed
    seen = torch.zeros(history.shape[0], vocabulary + 1, dtype=torch.bool, device=history.device)
    return seen.scatter_(1, ids, True)[:, :vocabulary]


def penalize_repetition(log_probs: Tensor, seen: Tensor, penalty: Tensor) -> Tensor:
    """Multiply the log-probabilities of seen tokens [R, V] by a penalty [R] (after Keskar et al. 2019, section 4.1).

    The paper divides logits instead, but that result changes if a constant is added to all logits.
    """
    return torch.where(seen, log_probs * penalty[:, None], log_probs)


def repeating_ngrams(history: Tensor, lengths: Tensor, n: Tensor, longest: int) -> Tensor:
    """Return bool [R, T], true for each token of history [R, T] that would repeat an n-gram if it came next.

    The n - 1 tokens before such a token equal the last n - 1 tokens of the row (Paulus et al. 2018, section 2.5). The
    first lengths[r] tokens of row r are valid. `n` [R] is at most `longest`; n = 0 allows all repetitions.
    """
    places = torch.arange(history.shape[1], device=history.device)
    repeats = (places >= n[:, None] - 1) & (places < lengths[:, None]) & (n > 0)[:, None]
    for back in range(1, longest):
        latest = history.gather(1, (lengths - back).clamp(min=0)[:, None])  # [R, 1]
        repeats &= (history.roll(back, dims=1) == latest) | (n <= back)[:, None]
    return repeats
