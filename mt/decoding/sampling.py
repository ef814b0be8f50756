"""Greedy search and sampling, as a state machine over rows with the interface of beam search."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from mt.decoding.constraints import Constraints, check_prefixes
from mt.decoding.options import Normalization, SearchOptions, SpecialIds
from mt.decoding.rows import Hypothesis, SentenceTable
from mt.decoding.scores import best, keep_top_k, keep_top_p, length_penalty

LOW_32 = 0xFFFFFFFF


def mixed(x: Tensor) -> Tensor:
    """A hash of 32-bit numbers held in int64 (lowbias32, C. Wellons, "Prospecting for hash functions", 2018)."""
    x = x ^ 0x9E3779B9  # or zero would stay zero
    x = ((x ^ (x >> 16)) * 0x7FEB352D) & LOW_32
    x = ((x ^ (x >> 15)) * 0x846CA68B) & LOW_32
    return x ^ (x >> 16)


def uniform(keys: Tensor) -> Tensor:
    """A number in (0, 1) for each key, float64, a function of the key alone."""
    return (mixed(keys).double() + 0.5) / 2**32


def draw(scores: Tensor, numbers: Tensor) -> Tensor:
    """Scores [R, V], which need not be normalised, and numbers in (0, 1) [R] -> ids [R] drawn by their probability.

    The first token up to which the probabilities sum to more than the number; one with none is never drawn. In float64,
    for a vocabulary has tokens less probable than float32's last bit of 1. A row of -inf alone gives any id.
    """
    below = scores.softmax(dim=1, dtype=torch.float64).cumsum(dim=1)
    ids = torch.searchsorted(below, numbers[:, None] * below[:, -1:], right=True).squeeze(1)
    return ids.clamp(max=scores.shape[1] - 1)


@dataclass(frozen=True)
class Filters:
    """What any sentence of the batch uses of sampling: the rest costs nothing."""

    sample: bool
    top_k: bool
    top_p: bool


@dataclass
class Sampling(SentenceTable):
    """B sentences with K rows each; a row takes the most probable token, or draws one if its sentence samples.

    A draw depends on the seed, the number of the sample and the step, never on the neighbours. It is
    made from the constrained scores after temperature, top-k and top-p, in this order; the log-probabilities that
    come out are those before the three. A row is dropped if no token was left to it.
    """

    special: SpecialIds
    constraints: Constraints
    penalty: Tensor  # [B, T + 1] the length penalty of a hypothesis that ends at step t
    keys: Tensor  # [B, K] of the noise
    sample: Tensor  # [B]
    temperature: Tensor  # [B]
    top_k: Tensor  # [B]
    top_p: Tensor  # [B]
    steps: Tensor  # [B]
    ended: Tensor  # [B, K]
    latest: Tensor  # [B, K]
    history: Tensor  # [B, K, T + 1] tokens; what follows a row's first EOS is not read
    log_probs: Tensor  # [B, K, T + 1] of these tokens

    @classmethod
    def start(
        cls,
        source_lengths: Sequence[int],
        options: Sequence[SearchOptions],
        prefixes: Sequence[Sequence[int]],
        special: SpecialIds,
        device: torch.device,
    ) -> Self:
        """Sentences before their first step, with the same number of rows. Raises RequestError for a useless prefix."""
        check_prefixes(prefixes, options, special)
        batch, rows = len(options), options[0].rows
        assert all(wanted.rows == rows for wanted in options)
        constraints = Constraints.start(source_lengths, options, prefixes, device)
        width = int(constraints.last.max()) + 2  # one more than can be used: a finished sentence writes there
        alpha = torch.tensor([wanted.length_penalty for wanted in options], dtype=torch.float64, device=device)
        gnmt = torch.tensor([wanted.normalization is Normalization.GNMT for wanted in options], device=device)
        seeds = torch.tensor([wanted.seed for wanted in options], device=device)
        keys = mixed(mixed(seeds & LOW_32) ^ (seeds >> 32))[:, None] ^ torch.arange(rows, device=device)
        return cls(
            special=special,
            constraints=constraints,
            penalty=length_penalty(torch.arange(1, width + 1, device=device), alpha[:, None], gnmt[:, None]),
            keys=mixed(keys),
            sample=torch.tensor([wanted.sample for wanted in options], device=device),
            temperature=torch.tensor([wanted.temperature for wanted in options], device=device),
            top_k=torch.tensor([wanted.top_k for wanted in options], device=device),
            top_p=torch.tensor([wanted.top_p for wanted in options], device=device),
            steps=torch.zeros(batch, dtype=torch.int64, device=device),
            ended=torch.zeros(batch, rows, dtype=torch.bool, device=device),
            latest=torch.full((batch, rows), special.bos, device=device),
            history=torch.zeros((batch, rows, width), dtype=torch.int64, device=device),
            log_probs=torch.zeros((batch, rows, width), device=device),
        )

    def __post_init__(self) -> None:
        special = self.special
        self._never = torch.tensor([special.pad, special.unk, special.bos], device=self.steps.device)
        self._settle()

    def _settle(self) -> None:
        """What depends on who is in the batch; one visit to the device."""
        asked = torch.stack((self.sample.any(), (self.top_k > 0).any(), (self.top_p < 1).any()))
        self._filters = Filters(*asked.tolist())

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
        log_probs = self.constraints.apply(log_probs, self._never, self.steps, self.history)
        tokens = self._choose(log_probs).view(batch, rows)
        tokens = tokens.masked_fill((self.steps >= self.constraints.last)[:, None], eos)
        chosen = log_probs.gather(1, tokens.view(-1, 1)).view(batch, rows)
        tokens = tokens.masked_fill(~(chosen > -torch.inf), eos)  # nothing was left, or NaN: the row is over
        at = self.steps[:, None, None].expand(batch, rows, 1)
        self.history.scatter_(2, at, tokens[:, :, None])
        self.log_probs.scatter_(2, at, chosen[:, :, None])
        self.steps.add_(~self.finished)  # a finished sentence goes on writing to where nobody reads
        self.ended.logical_or_(tokens == eos)
        self.latest.copy_(tokens)
        return None

    def _choose(self, log_probs: Tensor) -> Tensor:
        """[R, V] -> [R]."""
        used = self._filters
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
        found = []
        for steps, failed, penalty, histories, log_probs in table:
            kept: list[Hypothesis] = []
            for history, each in zip(histories, log_probs, strict=True):
                if failed or self.special.eos not in history[:steps]:
                    continue
                end = history.index(self.special.eos)
                total = sum(each[: end + 1])
                if total > float("-inf"):
                    kept.append(Hypothesis(tuple(history[:end]), total / penalty[end], total, tuple(each[: end + 1])))
            found.append(sorted(kept, key=lambda hypothesis: -hypothesis.score))
        return found

    def select(self, sentences: Tensor) -> None:
        super().select(sentences)
        self._settle()

    def extend(self, other: Self) -> None:
        super().extend(other)
        self._settle()
