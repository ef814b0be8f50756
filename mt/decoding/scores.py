"""Small functions on scores. Each takes its parameters a row, so that a row never depends on its neighbours."""

import torch
from torch import Tensor

BLOCK = 64
BLOCKS_WORTH = 16  # below this many blocks one plain top-k is as fast
SINGLES_WORTH = 40_000  # below this many scores one plain maximum is as fast
NUCLEUS = 128  # tokens that top-p looks at before it sorts them all; mostly they are enough


def length_penalty(lengths: Tensor, alpha: Tensor, gnmt: Tensor) -> Tensor:
    """What a log-probability is divided by: `n ** alpha`, or `((5 + n) / 6) ** alpha` (Wu et al. 2016, eq. 14).

    Lengths, float64 alpha and boolean gnmt broadcast; float32 comes out. Computed in float64 because vector and
    scalar code may disagree in the last bit, and then a sentence would depend on its place in the batch.
    """
    n = lengths.double()
    return torch.where(gnmt, (5 + n) / 6, n).pow(alpha).float()


def best(scores: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k highest of each row, [R, V] -> values and ids [R, k], best first; NaN counts as highest.

    Two stages: the k highest lie in the k blocks with the highest maxima, so most of a row is only compared once.
    Which way is taken must not depend on R, or else two equal scores might change places with the batch; except for
    k = 1, where either way finds the first of equals.
    """
    rows, size = scores.shape
    blocks = size // BLOCK
    if blocks < max(BLOCKS_WORTH, k) or (k == 1 and scores.numel() < SINGLES_WORTH):
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
    """-inf for all but the k [R] highest of each row of [R, V]; k = 0 keeps all (Fan et al. 2018, section 5.4)."""
    size = scores.shape[1]
    most = min(max(int(k.max()), 1), size) if _host(scores) else size
    worst = scores.topk(most, dim=1).values.gather(1, k.clamp(1, most)[:, None] - 1)
    return scores.masked_fill((scores < worst) & (k > 0)[:, None], -torch.inf)


def keep_top_p(scores: Tensor, p: Tensor) -> Tensor:
    """-inf outside the smallest set of tokens whose probability reaches p [R] (Holtzman et al. 2020, section 3.1).

    Scores [R, V] need not be normalised; the most probable token always stays, as does what is as probable as the last
    one of the set, and p = 1 keeps all.
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
    """Whether less work is worth asking what the values are: a GPU would wait, and a CUDA graph cannot."""
    return scores.device.type == "cpu"


def _nucleus(probabilities: Tensor, p: Tensor, most: int) -> tuple[Tensor, Tensor]:
    """The least probability [R, 1] in the smallest set that reaches p, and whether `most` tokens are enough for it [R].

    A row that they are enough for comes out the same with more of them.
    """
    ordered = probabilities.topk(most, dim=1).values
    below = (ordered.cumsum(dim=1, dtype=torch.float64) < p[:, None]).sum(1)
    return ordered.gather(1, below.clamp(max=most - 1)[:, None]), below < most


def seen_tokens(history: Tensor, valid: Tensor, vocabulary: int) -> Tensor:
    """[R, T] ids, of which the valid ones count -> bool [R, V], True for each id that occurs."""
    ids = torch.where(valid, history, vocabulary)  # the others mark a column that is cut off
    seen = torch.zeros(history.shape[0], vocabulary + 1, dtype=torch.bool, device=history.device)
    return seen.scatter_(1, ids, True)[:, :vocabulary]


def penalize_repetition(log_probs: Tensor, seen: Tensor, penalty: Tensor) -> Tensor:
    """log p -> penalty * log p for the tokens seen [R, V], with a penalty [R] (after Keskar et al. 2019, section 4.1).

    The paper divides logits, which changes with a constant added to them; log-probabilities have no such freedom.
    """
    return torch.where(seen, log_probs * penalty[:, None], log_probs)


def repeating_ngrams(history: Tensor, lengths: Tensor, n: Tensor, longest: int) -> Tensor:
    """Places i of [R, T] whose token, said next, would repeat an n-gram (Paulus et al. 2018, section 2.5).

    That is where the n - 1 tokens before place i are also the last n - 1 ones. `lengths` [R] tokens of a row's
    history are real; `n` [R] is at most `longest`, and 0 lets a row repeat what it likes.
    """
    places = torch.arange(history.shape[1], device=history.device)
    repeats = (places >= n[:, None] - 1) & (places < lengths[:, None]) & (n > 0)[:, None]
    for back in range(1, longest):
        latest = history.gather(1, (lengths - back).clamp(min=0)[:, None])  # [R, 1]
        repeats &= (history.roll(back, dims=1) == latest) | (n <= back)[:, None]
    return repeats
