"""Beam search for a batch of sentences, one decoder step at a time.

Shapes: B sentences, K beams per sentence, R = B x K rows, T steps, V vocabulary. A total is the log-probability of a
hypothesis; its score is the total divided by the length penalty.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from mt.decoding.backtrace import best_hypotheses
from mt.decoding.hypothesis import Hypothesis
from mt.decoding.options import SearchOptions
from mt.decoding.scores import best
from mt.decoding.token_search import TokenSearch


@dataclass
class BeamSearch(TokenSearch):
    """Beam search over B sentences with K beams each. Sentences may be at different steps.

    Each step ranks all continuations of a sentence. Continuations that end with EOS and are among the best K become
    finished hypotheses. The best K continuations without EOS stay alive, unless their totals are more than `margin`
    below the best total of the step: they seldom win, and on a CPU their rows are not computed. A sentence is finished
    when one of these is true:

    - It has K finished hypotheses, and no live hypothesis has a higher score at its present length than the worst of
      the `n_best` finished ones. K finished hypotheses alone do not suffice, because a model can finish K short and bad
      translations before one long and good translation.
    - It has reached its maximum length.
    - All live hypotheses are more than `margin` below one that ended in this step.
    - No live hypothesis can ever become one of the `n_best`. This bound is exact, because a log-probability decreases
      with each token, and because a hypothesis of maximum length has the largest length penalty.
    - The constraints forbid every continuation.

    Each step records the parent and the token of each beam. `results` follows the parents back from the last token to
    the first, so the tokens of earlier steps need not be copied when beams are reordered. All operations run in place
    on the device of the logits, without synchronisation.
    """

    nth: Tensor  # [B, 1] n_best - 1
    needed: Tensor  # [B, 1] number of finished hypotheses with which a sentence can be finished, at most K
    margin: Tensor  # [B, 1] largest difference of a live hypothesis from the best one of its step
    largest_penalty: Tensor  # [B] the length penalty of the longest hypothesis
    running: Tensor  # int64 [B], 1 until the sentence is finished, then 0
    alive_tokens: Tensor  # [B, K]
    alive_totals: Tensor  # [B, K] log-probabilities
    pool: Tensor  # [B, K] the scores of finished hypotheses, best first
    links: Tensor  # [B, T + 1, 2K] at step t: the parents of the beams that stayed alive, then their tokens
    totals: Tensor  # [B, T + 1, 2K] at step t: log-probabilities of the live hypotheses, then of the ended ones
    history: Tensor  # [B, K, T + 1] tokens, or [B, K, 0] if no constraint reads them

    @classmethod
    def _tables(cls, options: Sequence[SearchOptions], common: TokenSearch) -> dict[str, Any]:
        (batch, width), beams, device = common.penalty.shape, options[0].beam_size, common.penalty.device
        totals = torch.full((batch, width, 2 * beams), -torch.inf, device=device)
        alive_totals = totals[:, 0, :beams].clone()
        alive_totals[:, 0] = 0  # the beams are equal before the first step, so only beam 0 may continue
        return {
            "nth": torch.tensor([[sentence.n_best - 1] for sentence in options], device=device),
            "margin": torch.tensor([[sentence.margin] for sentence in options], device=device),
            "needed": torch.full((batch, 1), beams, device=device),
            "largest_penalty": common.penalty.gather(1, common.constraints.last[:, None])[:, 0],
            "running": torch.ones(batch, dtype=torch.int64, device=device),
            "alive_tokens": torch.full((batch, beams), common.special.bos, device=device),
            "alive_totals": alive_totals,
            "pool": totals[:, 0, :beams].clone(),
            "links": torch.zeros((batch, width, 2 * beams), dtype=torch.int64, device=device),
            "totals": totals,
            "history": torch.zeros((batch, beams, 0), dtype=torch.int64, device=device),
        }

    def __post_init__(self) -> None:
        special, device = self.special, self.steps.device
        self._not_alive = torch.tensor([special.pad, special.unk, special.bos, special.eos], device=device)
        self._update()

    def _update(self) -> None:
        batch, beams, width = self.history.shape
        self._first_rows = torch.arange(0, batch * beams, beams, device=self.steps.device)[:, None]
        needed = self.links.shape[1] if self.constraints.features.history else 0
        self.history = F.pad(self.history, (0, needed - width))

    @property
    def tokens(self) -> Tensor:
        return self.alive_tokens.view(-1)

    @property
    def finished(self) -> Tensor:
        return self.running == 0

    def advance(self, logits: Tensor) -> Tensor | None:
        batch, beams = self.alive_totals.shape
        log_probs, ends = self.scores(logits)
        # At most K continuations of one beam can be among the best K of the sentence.
        values, ids = best(log_probs, min(beams, log_probs.shape[1]))  # [R, k]
        width = values.shape[1]
        candidates = values.view(batch, beams, width) + self.alive_totals[:, :, None]
        alive, picked = candidates.view(batch, -1).topk(beams)  # [B, K]
        ends = self.without_outranked(ends, alive)
        return self.record_step(alive, picked // width, ids.view(batch, -1).gather(1, picked), ends, alive)

    def scores(self, logits: Tensor) -> tuple[Tensor, Tensor]:
        """Return the log-probabilities [R, V] of the next tokens, and the totals [B, K] of hypotheses that end now."""
        log_probs = torch.log_softmax(logits, 1, dtype=torch.float32)
        ends = log_probs[:, self.special.eos].view(self.alive_totals.shape) + self.alive_totals
        self.constraints.forbid_early_ends(ends, self.steps)
        return self.constraints.apply(log_probs, self._not_alive, self.steps, self.history), ends

    def without_outranked(self, ends: Tensor, rivals: Tensor) -> Tensor:
        """Return `ends` [B, K] with -inf for the hypotheses that may not end, because `needed` others are better.

        `rivals` are the totals of live hypotheses. At the last step, all hypotheses may end.
        """
        ranked = torch.cat((rivals, ends), 1).topk(ends.shape[1]).values
        outranked = ends < ranked.gather(1, self.needed - 1)
        return ends.masked_fill(outranked & (self.steps < self.constraints.last)[:, None], -torch.inf)

    def record_step(
        self, alive: Tensor, parents: Tensor, tokens: Tensor, ends: Tensor, leading: Tensor
    ) -> Tensor | None:
        """Record a step. Return the index [R] of the row that each row continues, or None if K is 1.

        Args:
            alive: Totals [B, K] of the hypotheses that stay alive, but for those that are below the margin.
            parents: The beams [B, K] that these hypotheses continue.
            tokens: The newest tokens [B, K] of these hypotheses.
            ends: Totals [B, K] of the hypotheses that end.
            leading: The totals in `alive` of the hypotheses that can keep the sentence running, and -inf for others.
        """
        batch, beams = self.alive_totals.shape
        at = self.steps[:, None, None].expand(batch, 1, 2 * beams)
        self.links.scatter_(1, at, torch.cat((parents, tokens), 1)[:, None])
        self.totals.scatter_(1, at, (totals := torch.cat((alive, ends), 1))[:, None])
        if self.constraints.features.history:
            self.history.copy_(self.history.gather(1, parents[:, :, None].expand_as(self.history)))
            self.history.scatter_(2, at[:, :, :beams].mT, tokens[:, :, None])

        penalty = self.penalty.gather(1, self.steps[:, None])
        scores, leading = ends / penalty, leading.amax(1)
        self.pool.copy_(torch.cat((self.pool, scores), 1).topk(beams).values)
        # NaN, or -inf if no hypothesis is alive, compares as False and finishes the sentence.
        worst = self.pool.gather(1, self.nth)[:, 0]
        hopeful = leading / self.largest_penalty > worst
        promising = leading / penalty[:, 0] > worst
        unfilled = self.pool.gather(1, self.needed - 1)[:, 0] == -torch.inf
        self.steps.add_(self.running)  # finished sentences write to a column that is never read
        self.alive_tokens.copy_(tokens)
        self.alive_totals.copy_(alive)
        drop_unlikely(self.alive_totals, totals, self.margin)
        going_on = hopeful & (unfilled | promising) & (self.alive_totals[:, 0] > -torch.inf)
        self.running.mul_((self.steps <= self.constraints.last) & going_on)
        return (parents + self._first_rows).view(-1) if beams > 1 else None

    def results(self, sentences: Sequence[int]) -> list[list[Hypothesis]]:
        return self.best_of(sentences, self.nth[:, 0] + 1)

    def best_of(self, sentences: Sequence[int], counts: Tensor) -> list[list[Hypothesis]]:
        """Return the best hypotheses of each of these finished sentences, best first: at most counts[b] for sentence b.

        A sentence with a NaN score has none.
        """
        chosen = torch.tensor(sentences, dtype=torch.int64, device=self.steps.device)
        steps = self.steps[chosen].cpu().numpy()
        until = int(steps.max(initial=0))
        parents, tokens = np.split(self.links[chosen, :until].cpu().numpy(), 2, axis=2)
        totals, penalty = self.totals[chosen, :until].cpu().numpy(), self.penalty[chosen, :until].cpu().numpy()
        return best_hypotheses(totals, parents, tokens, penalty, steps, counts[chosen].cpu().numpy())


def drop_unlikely(alive: Tensor, totals: Tensor, margin: Tensor) -> None:
    """Set to -inf the totals `alive` [B, K] that are more than `margin` [B, 1] below the best of `totals` [B, 2K]."""
    alive.masked_fill_(alive < totals.amax(1, keepdim=True) - margin, -torch.inf)
