"""Greedy search, with the interface of beam search.

Shapes: B sentences, K rows per sentence, R = B x K rows, T steps, V vocabulary.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from mt.decoding.hypothesis import Hypothesis
from mt.decoding.options import SearchOptions
from mt.decoding.scores import best
from mt.decoding.token_search import TokenSearch


@dataclass
class GreedySearch(TokenSearch):
    """Search that takes the most probable token at each step, over B sentences with K rows each.

    The rows of a sentence are independent of each other. K is 1, except in `Sampling`, which draws tokens. A row in
    which no token is allowed has no hypothesis.
    """

    ended: Tensor  # [B, K]
    latest: Tensor  # [B, K] newest tokens
    history: Tensor  # [B, K, T + 1] tokens; tokens after the first EOS of a row are not read
    log_probs: Tensor  # [B, K, T + 1] log-probabilities of the tokens in `history`

    @classmethod
    def _tables(cls, options: Sequence[SearchOptions], common: TokenSearch) -> dict[str, Any]:
        (batch, width), rows, device = common.penalty.shape, options[0].rows, common.penalty.device
        return {
            "ended": torch.zeros(batch, rows, dtype=torch.bool, device=device),
            "latest": torch.full((batch, rows), common.special.bos, device=device),
            "history": torch.zeros((batch, rows, width), dtype=torch.int64, device=device),
            "log_probs": torch.zeros((batch, rows, width), device=device),
        }

    def __post_init__(self) -> None:
        special = self.special
        self.never = torch.tensor([special.pad, special.unk, special.bos], device=self.steps.device)

    @property
    def tokens(self) -> Tensor:
        return self.latest.view(-1)

    @property
    def finished(self) -> Tensor:
        return self.ended.all(1)

    def _failed(self) -> Tensor:
        """Return bool [B], True for each sentence with a NaN score."""
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
        return best(log_probs, 1)[1]

    def results(self, sentences: Sequence[int]) -> list[list[Hypothesis]]:
        chosen = torch.tensor(sentences, dtype=torch.int64, device=self.steps.device)
        table = zip(
            self.steps[chosen].tolist(),
            self._failed()[chosen].tolist(),
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
