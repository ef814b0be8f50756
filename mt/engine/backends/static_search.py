"""Searches over the tables of a static batch: few GPU kernels take a step of many sentences.

`StaticBeam` finds the same hypotheses as `BeamSearch`, `StaticSampling` the same as `Sampling`. Both fill `progress`,
which the host reads after each step.
"""

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Self, TypeVar

import torch
from torch import Tensor
from torch.nn import functional as F

from mt.decoding.beam import BeamSearch
from mt.decoding.constraints import Constraints
from mt.decoding.hypothesis import Hypothesis
from mt.decoding.options import SearchOptions, SpecialIds
from mt.decoding.sampling import Sampling
from mt.decoding.scores import length_penalties
from mt.decoding.search_state import SentenceTable
from mt.kernels.cuda.fused import MAX_BEAMS, BeamStep

BLOCK = 64

Tables = Mapping[str, Tensor]
Table = TypeVar("Table", bound=SentenceTable)


def tables_of(table: SentenceTable, prefix: str = "") -> dict[str, Tensor]:
    """Return the tensors of a table and of its nested tables, by name."""
    tensors = {}
    for field in fields(table):
        value = getattr(table, field.name)
        if isinstance(value, Tensor):
            tensors[prefix + field.name] = value
        elif isinstance(value, SentenceTable):
            tensors.update(tables_of(value, f"{prefix}{field.name}."))
    return tensors


def with_tables(table: Table, tensors: Tables, prefix: str = "") -> Table:
    """Return a copy of `table` with these tensors instead. Unlike the constructor, read no tensor."""
    made = copy(table)
    for field in fields(table):
        value = getattr(table, field.name)
        if isinstance(value, Tensor):
            setattr(made, field.name, tensors[prefix + field.name])
        elif isinstance(value, SentenceTable):
            setattr(made, field.name, with_tables(value, tensors, f"{prefix}{field.name}."))
    return made


@dataclass
class StaticBeam(SentenceTable):
    """Beam search over B slots with K beams each: `BeamSearch` with about half as many kernels in a step.

    The K best continuations of a sentence are in the K blocks of `BLOCK` scores with the highest maxima. A continuation
    is the number (slot * K + beam) * V + token, with V rounded up to a multiple of `BLOCK`. The tables do not record
    whether a finished hypothesis is one of the K best of its step: the host computes this again when it reads the
    results.
    """

    RECORD: ClassVar = ("totals", "continuations")
    LOOSE: ClassVar = ("latest", "best", "pool", "progress")
    SCRATCH: ClassVar = ("history",)

    special: SpecialIds
    constraints: Constraints
    nth: Tensor  # [B, 1] n_best - 1
    limits: Tensor  # [B, T + 1, 4] at step t: divisor and length penalty with room in `pool`, both without room
    progress: Tensor  # [B, 2] steps; 1 until the sentence is finished, then 0
    latest: Tensor  # [B, K] newest tokens
    best: Tensor  # [B, 2K] log-probabilities of the live hypotheses, best first, then of those that end in this step
    pool: Tensor  # [B, K] the scores of finished hypotheses, best first
    totals: Tensor  # [B, T + 1, 2K] at step t: `best`
    continuations: Tensor  # [B, T + 1, K] at step t: the continuations that stayed alive
    history: Tensor  # [B, K, T + 1] tokens, read by constraints

    def __post_init__(self) -> None:
        special = self.special
        self.never = torch.tensor([special.pad, special.unk, special.bos, special.eos])
        self.kernel: BeamStep | None = None
        self.reference: BeamSearch | None = None  # the search on the host, which reads results

    @classmethod
    def of(cls, search: BeamSearch) -> Self:
        """Return a search before its first step, on the host."""
        batch, width, double = search.totals.shape
        largest = search.largest_penalty[:, None].expand_as(search.penalty)
        penalty = search.penalty
        limits = torch.stack((largest, penalty, torch.minimum(penalty, largest), penalty), 2)
        # # A sentence runs on while the best live score exceeds a score in the pool. Divisor 0 (score -inf) ends it at
        # its last step.
        at_last = search.constraints.last[:, None, None].expand(-1, 1, 2)
        limits[:, :, ::2].scatter_(1, at_last, 0.0)
        made = cls(
            special=search.special,
            constraints=search.constraints,
            nth=search.nth,
            limits=limits,
            progress=torch.stack((search.steps, search.running), 1),
            latest=search.alive_tokens,
            best=torch.cat((search.alive_totals, torch.full_like(search.alive_totals, -torch.inf)), 1),
            pool=search.pool,
            totals=search.totals,
            continuations=torch.zeros(batch, width, double // 2, dtype=torch.int64),
            history=search.history,
        )
        made.reference = search
        return made

    def place(self, vocabulary: int) -> None:
        """Compute the numbers of the continuations in the first block of each slot, [B, 1, BLOCK]."""
        slots, beams = self.latest.shape
        self.size = -(-vocabulary // BLOCK) * BLOCK
        first = torch.arange(slots, device=self.latest.device) * (beams * self.size)
        self.places = first[:, None, None] + torch.arange(BLOCK, device=first.device)

    def advance(self, logits: Tensor) -> Tensor | None:
        """Take one step with logits [R, V] of the next tokens. Return the row that each row continues, int64 [R]."""
        slots, beams = self.latest.shape
        if self.kernel is not None and beams <= MAX_BEAMS and not self.constraints.features.used:
            return self._advance_by(self.kernel, logits)
        steps, running = self.progress.unbind(1)
        alive, ends = self.best.split(beams, 1)
        log_probs = torch.log_softmax(logits, 1, dtype=torch.float32)
        torch.add(log_probs[:, self.special.eos].view(slots, beams), alive, out=ends)
        self.constraints.forbid_early_ends(ends, steps)
        log_probs = self.constraints.apply(log_probs, self.never, steps, self.history)
        if missing := self.size - log_probs.shape[1]:
            log_probs = F.pad(log_probs, (0, missing), value=-torch.inf)

        blocks = log_probs.view(slots, beams, -1, BLOCK)
        each = blocks.shape[2]
        chosen = (
            (blocks.amax(3) + alive[:, :, None]).flatten(1).topk(beams, sorted=False).indices
        )  # [B, K] of [B, K * N]
        inside = blocks.flatten(1, 2).gather(1, chosen[:, :, None].expand(-1, -1, BLOCK))
        candidates = inside + alive.gather(1, chosen // each)[:, :, None]  # [B, K, BLOCK]
        picked = torch.empty_like(self.latest)
        torch.topk(candidates.flatten(1), beams, out=(alive, picked))
        numbers = torch.add(self.places, chosen[:, :, None], alpha=BLOCK)
        continuations = numbers.flatten(1).gather(1, picked)
        torch.remainder(continuations, self.size, out=self.latest)
        rows = (continuations // self.size).view(-1)
        self._record(steps, continuations, rows)
        self._finish(steps, running, alive)
        return rows

    def _advance_by(self, kernel: BeamStep, logits: Tensor) -> Tensor:
        """Take one step in one kernel."""
        slots, beams = self.latest.shape
        rows = torch.empty(slots * beams, dtype=torch.int64, device=logits.device)
        tables = (self.best, self.pool, self.latest, self.progress, rows)
        strided: list[Tensor | int] = []
        for table in (self.limits, self.nth, self.totals, self.continuations):
            strided += (table, table.stride(0))
        special = (self.special.pad, self.special.unk, self.special.bos, self.special.eos)
        kernel(slots, (logits, *tables, *strided, beams, logits.shape[1], self.size, *special))
        return rows

    def _record(self, steps: Tensor, continuations: Tensor, rows: Tensor) -> None:
        slots, beams = continuations.shape
        at = steps[:, None, None].expand(slots, 1, 2 * beams)
        self.totals.scatter_(1, at, self.best[:, None])
        self.continuations.scatter_(1, at[:, :, :beams], continuations[:, None])
        if self.constraints.features.history:
            self.history.copy_(self.history.flatten(0, 1).index_select(0, rows).view_as(self.history))
            self.history.scatter_(2, at[:, :, :beams].mT, self.latest[:, :, None])

    def _finish(self, steps: Tensor, running: Tensor, alive: Tensor) -> None:
        """Add scores to the pool, and stop sentences. NaN compares as False and stops a sentence."""
        slots, beams = alive.shape
        limits = self.limits.gather(1, steps[:, None, None].expand(-1, 1, 4)).view(slots, 2, 2, 1)
        quotients = self.best.view(slots, 1, 2, beams) / limits
        scores = quotients[:, 0, 1].masked_fill_(_outranked(self.best, beams), -torch.inf)
        torch.topk(torch.cat((self.pool, scores), 1), beams, out=(self.pool, torch.empty_like(self.latest)))
        with_room, without = quotients[:, :, 0, 0].unbind(1)
        leading = torch.where(self.pool[:, -1] == -torch.inf, with_room, without)
        steps.add_(running)  # finished sentences write to a column that is never read
        # A sentence that has stopped stays stopped: totals only fall, and the scores in `pool` only rise.
        torch.gt(leading, self.pool.gather(1, self.nth)[:, 0], out=running)

    def hypotheses(
        self, record: Tables, steps: Sequence[int], last: Sequence[int], options: Sequence[SearchOptions]
    ) -> list[list[Hypothesis]]:
        """Return the hypotheses of finished sentences, best first, from a record on the host."""
        until = max(steps)
        totals, continuations = record["totals"][:, :until].clone(), record["continuations"][:, :until]
        beams = continuations.shape[2]
        at_last = torch.arange(until) >= torch.tensor(last)[:, None]
        totals[:, :, beams:].masked_fill_(_outranked(totals, beams) & ~at_last[:, :, None], -torch.inf)
        assert self.reference is not None
        search = copy(self.reference)
        search.steps = torch.tensor(steps)
        search.totals = totals
        search.links = torch.cat((continuations // self.size % beams, continuations % self.size), 2)
        search.penalty = length_penalties(options, until)
        search.nth = torch.tensor([[sentence.n_best - 1] for sentence in options])
        return search.results(range(len(steps)))


def _outranked(best: Tensor, beams: int) -> Tensor:
    """Return bool [..., K]: True for a hypothesis that ends but is not one of the K best in `best` [..., 2K]."""
    return best[..., beams:] < best.topk(beams).values[..., -1:]


@dataclass
class StaticSampling(Sampling):
    """Greedy search or sampling over B slots."""

    RECORD: ClassVar = ("history", "log_probs")
    LOOSE: ClassVar = ("latest", "progress")
    SCRATCH: ClassVar = ()

    progress: Tensor  # [B, 2] steps; 1 until the sentence is finished, then 0

    def __post_init__(self) -> None:
        super().__post_init__()
        self.reference: Sampling | None = None  # the search on the host, which reads results

    @classmethod
    def of(cls, search: Sampling) -> Self:
        """Return a search before its first step, on the host."""
        values: dict[str, Any] = {field.name: getattr(search, field.name) for field in fields(search)}
        made = cls(**values, progress=torch.stack((search.steps, torch.ones_like(search.steps)), 1))
        made.reference = search
        return made

    def place(self, vocabulary: int) -> None:
        """Do nothing. `StaticBeam.place` is the counterpart."""

    def advance(self, logits: Tensor) -> Tensor | None:
        super().advance(logits)
        self.progress[:, 0].copy_(self.steps)
        self.progress[:, 1].copy_(~self.finished)
        return None

    def hypotheses(
        self, record: Tables, steps: Sequence[int], last: Sequence[int], options: Sequence[SearchOptions]
    ) -> list[list[Hypothesis]]:
        """Return the hypotheses of finished sentences, best first, from a record on the host."""
        assert self.reference is not None
        search = copy(self.reference)
        search.steps = torch.tensor(steps)
        search.history, search.log_probs = record["history"], record["log_probs"]
        search.penalty = length_penalties(options, search.history.shape[2])
        return search.results(range(len(steps)))
