"""Greedy search and sampling, with the interface of beam search.

Shapes: B sentences, K rows per sentence, R = B x K rows, T steps, V vocabulary.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from mt.decoding.constraints import Constraints
from mt.decoding.hypothesis import Hypothesis
from mt.decoding.options import SearchOptions, SpecialIds
from mt.decoding.prefixes import check_prefixes
from mt.decoding.scores import best, keep_top_k, keep_top_p, length_penalties
from mt.decoding.search_state import SentenceTable

LOW_32 = 0xFFFFFFFF


def mixed(x: Tensor) -> Tensor:
    """Return a 32-bit hash of each 32-bit number in `x`. Both tensors are int64.

    The hash is lowbias32 (C. Wellons, "Prospecting for hash functions", 2018).
    """
    x = x ^ 0x9E3779B9  # without this, the hash of 0 would be 0
    x = ((x ^ (x >> 16)) * 0x7FEB352D) & LOW_32
    x = ((x ^ (x >> 15)) * 0x846CA68B) & LOW_32
    return x ^ (x >> 16)


def uniform(keys: Tensor) -> Tensor:
    """Return a pseudo-random float64 number in (0, 1) for each key. Equal keys give equal numbers."""
    return (mixed(keys).double() + 0.5) / 2**32


def draw(scores: Tensor, numbers: Tensor) -> Tensor:
    """Draw one id per row, [R], from unnormalized log-probabilities `scores` [R, V].

    `numbers` [R] are random numbers in (0, 1). The drawn id is the first one whose cumulative probability exceeds the
    number. An id of probability 0 is never drawn. If all scores of a row are -inf, the result is an arbitrary id. Sums
    are float64, because float32 would lose the least probable tokens.
    """
    below = scores.softmax(dim=1, dtype=torch.float64).cumsum(dim=1)
    ids = torch.searchsorted(below, numbers[:, None] * below[:, -1:], right=True).squeeze(1)
    return ids.clamp(max=scores.shape[1] - 1)


@dataclass(frozen=True)
class Filters:
    """Sampling options that at least one sentence of the batch uses. Unused options cost no time."""

    sample: bool
    top_k: bool
    top_p: bool


@dataclass
class Sampling(SentenceTable):
    """Greedy search or sampling over B sentences with K rows each.

    If `sample` is true for a sentence, its rows draw their next tokens; otherwise they take the most probable token. A
    draw depends on the seed, the number of the sample and the step, never on other sentences. Before a draw,
    temperature, top-k and top-p are applied in this order to the scores that the constraints allow. They do not change
    the log-probabilities in the results. A row in which no token is allowed has no hypothesis.
    """

    special: SpecialIds
    constraints: Constraints
    penalty: Tensor  # [B, T + 1] the length penalty of a hypothesis that ends at step t
    keys: Tensor  # [B, K] keys of the random numbers
    sample: Tensor  # [B]
    temperature: Tensor  # [B]
    top_k: Tensor  # [B]
    top_p: Tensor  # [B]
    steps: Tensor  # [B]
    ended: Tensor  # [B, K]
    latest: Tensor  # [B, K] newest tokens
    history: Tensor  # [B, K, T + 1] tokens; tokens after the first EOS of a row are not read
    log_probs: Tensor  # [B, K, T + 1] log-probabilities of the tokens in `history`

    @classmethod
    def start(
        cls,
        source_lengths: Sequence[int],
        options: Sequence[SearchOptions],
        prefixes: Sequence[Sequence[int]],
        special: SpecialIds,
        device: torch.device,
    ) -> Self:
        """Return a search before its first step. All sentences must have the same number of rows.

        Raises:
            RequestError: A prefix is invalid (see `check_prefixes`).
        """
        check_prefixes(prefixes, options, special)
        batch, rows = len(options), options[0].rows
        assert all(sentence.rows == rows for sentence in options)
        constraints = Constraints.start(source_lengths, options, prefixes, device)
        width = int(constraints.last.max()) + 2  # includes one unused column, to which finished sentences write
        seeds = torch.tensor([sentence.seed for sentence in options], device=device)
        keys = mixed(mixed(seeds & LOW_32) ^ (seeds >> 32))[:, None] ^ torch.arange(rows, device=device)
        return cls(
            special=special,
            constraints=constraints,
            penalty=length_penalties(options, width, device),
            keys=mixed(keys),
            sample=torch.tensor([sentence.sample for sentence in options], device=device),
            temperature=torch.tensor([sentence.temperature for sentence in options], device=device),
            top_k=torch.tensor([sentence.top_k for sentence in options], device=device),
            top_p=torch.tensor([sentence.top_p for sentence in options], device=device),
            steps=torch.zeros(batch, dtype=torch.int64, device=device),
            ended=torch.zeros(batch, rows, dtype=torch.bool, device=device),
            latest=torch.full((batch, rows), special.bos, device=device),
            history=torch.zeros((batch, rows, width), dtype=torch.int64, device=device),
            log_probs=torch.zeros((batch, rows, width), device=device),
        )

    def __post_init__(self) -> None:
        special = self.special
        self.never = torch.tensor([special.pad, special.unk, special.bos], device=self.steps.device)
        self._update()

    def _update(self) -> None:
        # one transfer from the device
        used = torch.stack((self.sample.any(), (self.top_k > 0).any(), (self.top_p < 1).any()))
        self.filters = Filters(*used.tolist())

    @property
    def tokens(self) -> Tensor:
        return self.latest.view(-1)

    @property
    def finished(self) -> Tensor:
        return self.ended.all(1)

    @property
    def failed(self) -> Tensor:
        taken = torch.arange(self.history.shape[2], device=self.steps.device) < self.steps[:, None, None]
        ends = (self.history == self.special.eos) & taken
        value = self.log_probs.gather(2, ends.int().argmax(2, keepdim=True))  # at the first EOS of each row
        return (value.isnan() & ends.any(2, keepdim=True)).flatten(1).any(1)

    def advance(self, logits: Tensor) -> Tensor | None:
        batch, rows = self.latest.shape
        eos = self.special.eos
        log_probs = torch.log_softmax(logits, 1, dtype=torch.float32)
        self.constraints.forbid_early_ends(log_probs[:, eos].view(batch, rows), self.steps)
        log_probs = self.constraints.apply(log_probs, self.never, self.steps, self.history)
        tokens = self._choose(log_probs).view(batch, rows)
        tokens = tokens.masked_fill((self.steps >= self.constraints.last)[:, None], eos)
        chosen = log_probs.gather(1, tokens.view(-1, 1)).view(batch, rows)
        tokens = tokens.masked_fill(~(chosen > -torch.inf), eos)  # if no token is allowed, or on NaN, the row ends
        at = self.steps[:, None, None].expand(batch, rows, 1)
        self.history.scatter_(2, at, tokens[:, :, None])
        self.log_probs.scatter_(2, at, chosen[:, :, None])
        self.steps.add_(~self.finished)  # finished sentences write to a column that is never read
        self.ended.logical_or_(tokens == eos)
        self.latest.copy_(tokens)
        return None

    def _choose(self, log_probs: Tensor) -> Tensor:
        """Return the next token of each row, int64 [R] or [R, 1], from log-probabilities [R, V]."""
        used = self.filters
        if not used.sample:
            return best(log_probs, 1)[1]
        rows = self.latest.shape[1]
        scores = log_probs / self.temperature.repeat_interleave(rows)[:, None]
        if used.top_k:
            scores = keep_top_k(scores, self.top_k.repeat_interleave(rows))
        if used.top_p:
            scores = keep_top_p(scores, self.top_p.repeat_interleave(rows))
        drawn = draw(scores, uniform(mixed(self.keys ^ self.steps[:, None]).view(-1)))
        return torch.where(self.sample.repeat_interleave(rows), drawn, best(log_probs, 1)[1].squeeze(1))

    def results(self, sentences: Sequence[int]) -> list[list[Hypothesis]]:
        chosen = torch.tensor(sentences, dtype=torch.int64, device=self.steps.device)
        table = zip(
            self.steps[chosen].tolist(),
            self.failed[chosen].tolist(),
            self.penalty[chosen].tolist(),
            self.history[chosen].tolist(),
            self.log_probs[chosen].tolist(),
            strict=True,
        )
        results = []
        for steps, failed, penalty, histories, log_probs in table:
            kept: list[Hypothesis] = []
            for history, row in zip(histories, log_probs, strict=True):
                if failed or self.special.eos not in history[:steps]:
                    continue
                end = history.index(self.special.eos)
                total = sum(row[: end + 1])
                if total > float("-inf"):
                    kept.append(Hypothesis(tuple(history[:end]), total / penalty[end], total, tuple(row[: end + 1])))
            results.append(sorted(kept, key=lambda hypothesis: -hypothesis.score))
        return results
