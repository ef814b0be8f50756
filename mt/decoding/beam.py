"""Beam search as a state machine over rows."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Self

import torch
from torch import Tensor
from torch.nn import functional as F

from mt.decoding.constraints import Constraints, check_prefixes
from mt.decoding.options import Normalization, SearchOptions, SpecialIds
from mt.decoding.rows import Hypothesis, SentenceTable
from mt.decoding.scores import best, length_penalty


@dataclass
class BeamSearch(SentenceTable):
    """Beam search over B sentences with K beams each, every sentence at its own step.

    At each step all continuations of a sentence are ranked. Those among the first K that end the sentence are
    finished hypotheses; the best K others stay alive. A sentence is finished when it has K finished hypotheses and
    nothing alive scores better, as it stands, than the worst of its `n_best`; when its longest length is reached
    (where all that is alive must end); or when nothing alive can ever come among its `n_best`. That bound is exact:
    log-probabilities only fall, and no hypothesis is divided by more than the penalty of the longest length. K finished
    hypotheses alone are no reason to stop: a model that is sure of one long translation offers worse, shorter ones
    before it. Where every continuation is forbidden, a sentence ends with what it has.

    Nothing is copied when beams change places: each step records for each beam its parent and its token, and
    `results` follows them back. All is done on the device of the logits, without synchronisation, and in place.
    """

    special: SpecialIds
    constraints: Constraints
    nth: Tensor  # [B, 1] n_best - 1
    penalty: Tensor  # [B, T + 1] the length penalty of a hypothesis that ends at step t
    largest_penalty: Tensor  # [B]
    steps: Tensor  # [B]
    running: Tensor  # int64 [B], 0 once finished
    alive_tokens: Tensor  # [B, K]
    alive_totals: Tensor  # [B, K] log-probabilities
    pool: Tensor  # [B, K] the scores of finished hypotheses, best first
    links: Tensor  # [B, T + 1, 2K] at step t: the parents of the beams that stayed alive, then their tokens
    totals: Tensor  # [B, T + 1, 2K] at step t: log-probabilities of the beams alive, then of those that ended
    history: Tensor  # [B, K, T + 1] tokens, or width 0 where no constraint asks for them

    @classmethod
    def start(
        cls,
        source_lengths: Sequence[int],
        options: Sequence[SearchOptions],
        prefixes: Sequence[Sequence[int]],
        special: SpecialIds,
        device: torch.device,
    ) -> Self:
        """Sentences before their first step, all with one beam size. Raises RequestError for a prefix of no use."""
        check_prefixes(prefixes, options, special)
        batch, beams = len(options), options[0].beam_size
        assert all(wanted.beam_size == beams for wanted in options)
        constraints = Constraints.start(source_lengths, options, prefixes, device)
        width = int(constraints.last.max()) + 2  # one more than can be used: a finished sentence writes there
        alpha = torch.tensor([wanted.length_penalty for wanted in options], dtype=torch.float64, device=device)
        gnmt = torch.tensor([wanted.normalization is Normalization.GNMT for wanted in options], device=device)
        penalty = length_penalty(torch.arange(1, width + 1, device=device), alpha[:, None], gnmt[:, None])
        nothing = torch.full((batch, width, 2 * beams), -torch.inf, device=device)
        alive_totals = nothing[:, 0, :beams].clone()
        alive_totals[:, 0] = 0  # the beams are alike before the first step: only one may continue
        return cls(
            special=special,
            constraints=constraints,
            nth=torch.tensor([[wanted.n_best - 1] for wanted in options], device=device),
            penalty=penalty,
            largest_penalty=penalty.gather(1, constraints.last[:, None])[:, 0],
            steps=torch.zeros(batch, dtype=torch.int64, device=device),
            running=torch.ones(batch, dtype=torch.int64, device=device),
            alive_tokens=torch.full((batch, beams), special.bos, device=device),
            alive_totals=alive_totals,
            pool=nothing[:, 0, :beams].clone(),
            links=torch.zeros((batch, width, 2 * beams), dtype=torch.int64, device=device),
            totals=nothing,
            history=torch.zeros((batch, beams, 0), dtype=torch.int64, device=device),
        )

    def __post_init__(self) -> None:
        special, device = self.special, self.steps.device
        self._not_alive = torch.tensor([special.pad, special.unk, special.bos, special.eos], device=device)
        self._settle()

    def _settle(self) -> None:
        """What depends on who is in the batch."""
        batch, beams, width = self.history.shape
        self._first_rows = torch.arange(0, batch * beams, beams, device=self.steps.device)[:, None]
        wanted = self.links.shape[1] if self.constraints.features.history else 0
        self.history = F.pad(self.history, (0, wanted - width))

    @property
    def tokens(self) -> Tensor:
        return self.alive_tokens.view(-1)

    @property
    def finished(self) -> Tensor:
        return self.running == 0

    @property
    def failed(self) -> Tensor:
        at = (self.steps - 1).clamp(min=0)[:, None, None].expand(-1, 1, self.totals.shape[2])
        return self.totals.gather(1, at).isnan().any(2)[:, 0]

    def advance(self, logits: Tensor) -> Tensor | None:
        batch, beams = self.alive_totals.shape
        log_probs, ends = self.scores(logits)
        # A beam can place at most K of its own continuations among the best K of its sentence.
        values, ids = best(log_probs, min(beams, log_probs.shape[1]))  # [R, k]
        own = values.shape[1]
        candidates = values.view(batch, beams, own) + self.alive_totals[:, :, None]
        alive, picked = candidates.view(batch, -1).topk(beams)  # [B, K]
        outranked = ends < torch.cat((alive, ends), 1).topk(beams).values[:, -1:]
        ends = ends.masked_fill(outranked & (self.steps < self.constraints.last)[:, None], -torch.inf)
        return self.go_on(alive, picked // own, ids.view(batch, -1).gather(1, picked), ends)

    def scores(self, logits: Tensor) -> tuple[Tensor, Tensor]:
        """Log-probabilities [R, V] of what may come next, and totals [B, K] of what ends here."""
        log_probs = torch.log_softmax(logits, 1, dtype=torch.float32)
        ends = log_probs[:, self.special.eos].view(self.alive_totals.shape) + self.alive_totals
        self.constraints.forbid_early_ends(ends, self.steps)
        return self.constraints.apply(log_probs, self._not_alive, self.steps, self.history), ends

    def go_on(
        self,
        alive: Tensor,
        parents: Tensor,
        tokens: Tensor,
        ends: Tensor,
        leading: Tensor | None = None,
        enough: Tensor | None = None,
    ) -> Tensor | None:
        """Record a step, all [B, K]: totals, beams and ids of those that stay alive, and totals of those that end.

        `leading` are the totals of those alive that are worth waiting for. One more than `enough` [B, 1] finished
        hypotheses, else K, are reason to stop if these do not promise better.
        """
        batch, beams = self.alive_totals.shape
        at = self.steps[:, None, None].expand(batch, 1, 2 * beams)
        self.links.scatter_(1, at, torch.cat((parents, tokens), 1)[:, None])
        self.totals.scatter_(1, at, torch.cat((alive, ends), 1)[:, None])
        if self.constraints.features.history:
            self.history.copy_(self.history.gather(1, parents[:, :, None].expand_as(self.history)))
            self.history.scatter_(2, at[:, :, :beams].mT, tokens[:, :, None])

        penalty = self.penalty.gather(1, self.steps[:, None])
        scores, leading = ends / penalty, (alive if leading is None else leading).amax(1)
        self.pool.copy_(torch.cat((self.pool, scores), 1).topk(beams).values)
        # NaN, and -inf where nothing is alive, are not greater: they finish the sentence too.
        worst = self.pool.gather(1, self.nth)[:, 0]
        hopeful = leading / self.largest_penalty > worst
        promising = leading / penalty[:, 0] > worst
        room = (self.pool[:, -1] if enough is None else self.pool.gather(1, enough)[:, 0]) == -torch.inf
        self.steps.add_(self.running)  # a finished sentence goes on writing to where nobody reads
        self.running.mul_((self.steps <= self.constraints.last) & hopeful & (room | promising))
        self.alive_tokens.copy_(tokens)
        self.alive_totals.copy_(alive)
        return (parents + self._first_rows).view(-1) if beams > 1 else None

    def results(self, sentences: Sequence[int]) -> list[list[Hypothesis]]:
        return self.best_of(sentences, self.nth[:, 0] + 1)

    def best_of(self, sentences: Sequence[int], counts: Tensor) -> list[list[Hypothesis]]:
        """At most so many [B] hypotheses of each of these finished sentences, best first."""
        chosen = torch.tensor(sentences, dtype=torch.int64, device=self.steps.device)
        steps = self.steps[chosen].tolist()
        until = max(steps, default=0)
        totals = self.totals[chosen, :until]
        beams = totals.shape[2] // 2
        scores = totals[:, :, beams:] / self.penalty[chosen, :until, None]
        table = zip(
            steps,
            self.failed[chosen].tolist(),
            counts[chosen].tolist(),
            scores.tolist(),
            totals.tolist(),
            self.links[chosen, :until].tolist(),
            strict=True,
        )
        return [
            [] if failed else _hypotheses(scores[:taken], totals, links, count)
            for taken, failed, count, scores, totals, links in table
        ]

    def select(self, sentences: Tensor) -> None:
        super().select(sentences)
        self._settle()

    def extend(self, other: Self) -> None:
        super().extend(other)
        self._settle()


def _hypotheses(
    scores: list[list[float]], totals: list[list[float]], links: list[list[int]], count: int
) -> list[Hypothesis]:
    """The best of one sentence's finished hypotheses; of equals, the one that was finished first."""
    ends = [(-score, step, beam) for step, line in enumerate(scores) for beam, score in enumerate(line)]
    found = []
    for negative, step, beam in sorted(end for end in ends if end[0] < float("inf"))[:count]:
        beams = len(scores[step])
        tokens, sums = [], [totals[step][beams + beam]]
        for before in reversed(range(step)):
            tokens.append(links[before][beams + beam])
            sums.append(totals[before][beam])
            beam = links[before][beam]
        sums.append(0.0)
        each = tuple(later - earlier for earlier, later in pairwise(reversed(sums)))
        found.append(Hypothesis(tuple(reversed(tokens)), -negative, sums[0], each))
    return found
