"""Searches over the tensors of a static batch, for many sentences in few kernels.

`StaticBeam` finds the same hypotheses as `BeamSearch`, and `StaticGreedy` the same as `GreedySearch`. Both write
`progress`, which the host reads after each step.

Shapes: B slots, one sentence each; K rows per slot; R = B x K rows; T steps; V vocabulary.
"""

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from mt.decoding.backtrace import best_hypotheses
from mt.decoding.beam import BeamSearch, drop_unlikely
from mt.decoding.constraints import Constraints
from mt.decoding.greedy import GreedySearch
from mt.decoding.hypothesis import Hypothesis
from mt.decoding.options import SearchOptions, SpecialIds
from mt.decoding.scores import length_penalties
from mt.decoding.search_state import SentenceTable
from mt.kernels.cuda.beam_step import BeamStep, SearchTables

BLOCK = 64
HALF = 32
TOKEN = (1 << HALF) - 1
"""Bit mask of the token in a continuation (see `StaticBeam`)."""

Tables = Mapping[str, Tensor]
Table = TypeVar("Table", bound=SentenceTable)


def tables_of(table: SentenceTable, prefix: str = "") -> dict[str, Tensor]:
    """Return the tensors of `table` and of the tables nested in it, by name. A nested name is `outer.inner`."""
    tensors = {}
    for field in fields(table):
        value = getattr(table, field.name)
        if isinstance(value, Tensor):
            tensors[prefix + field.name] = value
        elif isinstance(value, SentenceTable):
            tensors.update(tables_of(value, f"{prefix}{field.name}."))
    return tensors


def with_tables(table: Table, tensors: Tables, prefix: str = "") -> Table:
    """Return a copy of `table` whose tensors are those in `tensors`, named as in `tables_of`.

    The constructor is not called, because it would read values of tensors.
    """
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

    The scores of a row are divided into blocks of `BLOCK` scores. The K best continuations of a row are in the K blocks
    with the highest maxima. A continuation is an int64: its lower half is the token, and its upper half is the row that
    it continues, so that both can be read as views. Whether a hypothesis that ended is one of the K best of its step is
    not recorded: the host repeats the comparison when it reads the results.

    The tensors named in RECORD are read when a sentence has finished, those in SEPARATE are contiguous tensors of their
    own, and those in SCRATCH need no initial values.
    """

    RECORD: ClassVar = ("totals", "continuations")
    SEPARATE: ClassVar = ("newest", "best", "pool", "progress")
    SCRATCH: ClassVar = ("history",)

    special: SpecialIds
    constraints: Constraints
    nth: Tensor  # [B, 1] n_best - 1
    margin: Tensor  # [B, 1] as in BeamSearch
    limits: Tensor  # [B, T + 1, 4] at step t: divisor if `pool` is not full, penalty, divisor if it is full, penalty
    progress: Tensor  # [B, 2] steps; 1 until the sentence is finished, then 0
    newest: Tensor  # [B, K] newest continuations
    best: Tensor  # [B, 2K] log-probabilities of the live hypotheses, best first, then of those that end in this step
    pool: Tensor  # [B, K] the scores of finished hypotheses, best first
    totals: Tensor  # [B, T + 1, 2K] at step t: `best`
    continuations: Tensor  # [B, T + 1, K] at step t: the continuations that stayed alive
    history: Tensor  # [B, K, T + 1] tokens, read by constraints

    def __post_init__(self) -> None:
        special = self.special
        self.never = torch.tensor([special.pad, special.unk, special.bos, special.eos])
        self.kernel: BeamStep | None = None  # takes the steps that have no constraints

    @classmethod
    def of(cls, search: BeamSearch) -> Self:
        """Convert `search`, which must be on the CPU and before its first step."""
        batch, width, double = search.totals.shape
        largest = search.largest_penalty[:, None].expand_as(search.penalty)
        penalty = search.penalty
        limits = torch.stack((largest, penalty, torch.minimum(penalty, largest), penalty), 2)
        # A live hypothesis keeps a sentence running if its score is above another score. At the last step none is.
        at_last = search.constraints.last[:, None, None].expand(-1, 1, 2)
        limits[:, :, ::2].scatter_(1, at_last, 0.0)
        return cls(
            special=search.special,
            constraints=search.constraints,
            nth=search.nth,
            margin=search.margin,
            limits=limits,
            progress=torch.stack((search.steps, search.running), 1),
            newest=search.alive_tokens,
            best=torch.cat((search.alive_totals, torch.full_like(search.alive_totals, -torch.inf)), 1),
            pool=search.pool,
            totals=search.totals,
            continuations=torch.zeros(batch, width, double // 2, dtype=torch.int64),
            history=search.history,
        )

    @property
    def latest(self) -> Tensor:
        """Newest tokens, int32 [B, K]."""
        return self.newest.view(torch.int32)[:, ::2]

    @property
    def rows(self) -> Tensor:
        """Index of the row that each row continues, int32 [R]."""
        return self.newest.view(torch.int32)[:, 1::2].flatten()

    def prepare_continuations(self, vocabulary: int) -> None:
        """Compute `padding` and `first_continuations`, two constants that `advance` reads.

        `vocabulary` scores and `padding` more fill whole blocks. `first_continuations` [R, 1, BLOCK] are the
        continuations of each row by the tokens of the first block.
        """
        self.padding = -vocabulary % BLOCK
        rows = torch.arange(self.newest.numel(), device=self.newest.device)
        self.first_continuations = (rows << HALF)[:, None, None] + torch.arange(BLOCK, device=rows.device)

    def advance(self, logits: Tensor) -> Tensor | None:
        """Take one step with the logits [R, V] of the next tokens.

        Return the row that each row continues, int32 [R].
        """
        features = self.constraints.features
        if self.kernel is not None and not (features.prefix or features.history):
            names = (field.name for field in fields(SearchTables) if field.name != "first_end")
            tables = {name: getattr(self, name) for name in names}
            self.kernel(logits, SearchTables(**tables, first_end=self.constraints.first_end))
            return self.rows
        slots, beams = self.newest.shape
        steps, running = self.progress.unbind(1)
        alive, ends = self.best.split(beams, 1)
        log_probs = torch.log_softmax(logits, 1, dtype=torch.float32)
        torch.add(log_probs[:, self.special.eos].view(slots, beams), alive, out=ends)
        self.constraints.forbid_early_ends(ends, steps)
        log_probs = self.constraints.apply(log_probs, self.never, steps, self.history)
        if self.padding:
            log_probs = F.pad(log_probs, (0, self.padding), value=-torch.inf)

        blocks = log_probs.view(slots * beams, -1, BLOCK)
        maxima = blocks.amax(2)
        chosen = maxima.topk(min(beams, maxima.shape[1]), sorted=False).indices[:, :, None]  # [R, K, 1]
        inside = blocks.gather(1, chosen.expand(-1, -1, BLOCK))  # [R, K, BLOCK]
        candidates = inside.view(slots, beams, -1) + alive[:, :, None]
        picked = torch.empty_like(self.newest)
        torch.topk(candidates.flatten(1), beams, out=(alive, picked))
        numbers = torch.add(self.first_continuations, chosen, alpha=BLOCK)
        torch.gather(numbers.view(slots, -1), 1, picked, out=self.newest)
        self._record(steps)
        self._finish(steps, running, alive)
        drop_unlikely(alive, self.best, self.margin)
        return self.rows

    def _record(self, steps: Tensor) -> None:
        slots, beams = self.newest.shape
        at = steps[:, None, None].expand(slots, 1, 2 * beams)
        self.totals.scatter_(1, at, self.best[:, None])
        self.continuations.scatter_(1, at[:, :, :beams], self.newest[:, None])
        if self.constraints.features.history:
            self.history.copy_(self.history.flatten(0, 1).index_select(0, self.rows).view_as(self.history))
            self.history.scatter_(2, at[:, :, :beams].mT, self.latest[:, :, None].long())

    def _finish(self, steps: Tensor, running: Tensor, alive: Tensor) -> None:
        """Add the scores of ended hypotheses to the pool, and mark finished sentences.

        A sentence with a NaN score is finished.
        """
        slots, beams = alive.shape
        limits = self.limits.gather(1, steps[:, None, None].expand(-1, 1, 4)).view(slots, 2, 2, 1)
        quotients = self.best.view(slots, 1, 2, beams) / limits
        scores = quotients[:, 0, 1].masked_fill_(_outranked(self.best, beams), -torch.inf)
        torch.topk(torch.cat((self.pool, scores), 1), beams, out=(self.pool, torch.empty_like(self.newest)))
        with_room, without = quotients[:, :, 0, 0].unbind(1)
        leading = torch.where(self.pool[:, -1] == -torch.inf, with_room, without)
        steps.add_(running)  # finished sentences write to a column that is never read
        # A sentence that has stopped stays stopped: totals only fall, and the scores in `pool` only rise.
        torch.gt(leading, self.pool.gather(1, self.nth)[:, 0], out=running)

    def hypotheses(
        self, record: Tables, steps: Sequence[int], last: Sequence[int], options: Sequence[SearchOptions]
    ) -> list[list[Hypothesis]]:
        """Return the hypotheses of finished sentences, best first.

        `record` contains the tensors named in RECORD, on the CPU. `steps` are the steps after which the sentences
        finished, and `last` the steps at which they had to end.
        """
        until, beams = max(steps), record["continuations"].shape[2]
        totals = record["totals"][:, :until].numpy().copy()
        continuations = record["continuations"][:, :until].numpy()
        before_last = np.arange(until) < np.array(last)[:, None]
        worst = np.partition(totals, beams, axis=2)[:, :, beams : beams + 1]  # the K-th best of 2K
        ends = totals[:, :, beams:]
        ends[(ends < worst) & before_last[:, :, None]] = -np.inf
        return best_hypotheses(
            totals,
            (continuations >> HALF) % beams,
            continuations & TOKEN,
            length_penalties(options, until).numpy(),
            np.array(steps),
            np.array([sentence.n_best for sentence in options]),
        )


def _outranked(best: Tensor, beams: int) -> Tensor:
    """Return bool [..., K], True for each hypothesis that ends but is not among the K best of `best` [..., 2K].

    The first K entries of `best` are the live hypotheses, the others those that end.
    """
    return best[..., beams:] < best.topk(beams).values[..., -1:]


@dataclass
class StaticGreedy(GreedySearch):
    """Greedy search over B slots."""

    RECORD: ClassVar = ("history", "log_probs")
    SEPARATE: ClassVar = ("latest", "progress")
    SCRATCH: ClassVar = ()

    progress: Tensor  # [B, 2] steps; 1 until the sentence is finished, then 0

    def __post_init__(self) -> None:
        super().__post_init__()
        self.reference: GreedySearch | None = None  # the search on the host, which reads results

    @classmethod
    def of(cls, search: GreedySearch) -> Self:
        """Convert `search`, which must be on the CPU and before its first step."""
        values: dict[str, Any] = {field.name: getattr(search, field.name) for field in fields(search)}
        made = cls(**values, progress=torch.stack((search.steps, torch.ones_like(search.steps)), 1))
        made.reference = search
        return made

    def prepare_continuations(self, vocabulary: int) -> None:
        """Do nothing: `advance` needs no constants like those of `StaticBeam.prepare_continuations`."""

    def advance(self, logits: Tensor) -> Tensor | None:
        super().advance(logits)
        self.progress[:, 0].copy_(self.steps)
        self.progress[:, 1].copy_(~self.finished)
        return None

    def hypotheses(
        self, record: Tables, steps: Sequence[int], last: Sequence[int], options: Sequence[SearchOptions]
    ) -> list[list[Hypothesis]]:
        """Return the hypotheses of finished sentences, best first.

        `record` contains the tensors named in RECORD, on the CPU. `steps` are the steps after which the sentences
        finished.
        """
        assert self.reference is not None
        search = copy(self.reference)
        search.steps = torch.tensor(steps)
        search.history, search.log_probs = record["history"], record["log_probs"]
        search.penalty = length_penalties(options, search.history.shape[2])
        return search.results(range(len(steps)))
