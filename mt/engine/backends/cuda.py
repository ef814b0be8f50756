"""CUDA backend: one CUDA graph over static memory runs a whole decoder step, from embedding to finished flags."""

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Self

import torch
from torch import Tensor

from mt.checkpoint import LoadedModel
from mt.decoding.beam import BeamSearch
from mt.decoding.constraints import Constraints
from mt.decoding.hypothesis import Hypothesis
from mt.decoding.options import SearchOptions, SpecialIds
from mt.decoding.sampling import Filters, Sampling
from mt.decoding.scorer import ModelScorer, padded, real
from mt.engine.backends.memory import device_limits
from mt.engine.backends.protocol import GPU_THREADS, Backend, Batch, Dtype
from mt.engine.backends.static_batch import (
    MIN_SLOTS,
    MIN_WIDTH,
    GraphLimits,
    StaticBatch,
    StaticPool,
    StaticSearch,
)
from mt.engine.backends.torch import SearchDecoder
from mt.engine.devices import has_bfloat16
from mt.engine.requests import Request
from mt.engine.scheduler import BatchKind
from mt.errors import ModelError
from mt.kernels.cuda.graphs import CudaGraphs, Eager, Executor, Flags, Program
from mt.kernels.cuda.static_decoder import DecoderMemory, Shape, StaticDecoder, bucket, copy_slots
from mt.model.transformer import Transformer

MIN_COLUMNS = 32

REFERENCE_COST = 8
"""Estimated time of a row's step of `SearchBatch`, relative to a graph."""


@dataclass(eq=False)
class SlotState:
    """A sentence of a batch, and the slot that it occupies."""

    options: SearchOptions
    last: int  # maximum number of tokens of its translation, without EOS
    slot: int = -1
    first_step: int = 0  # the step of the batch at which the sentence began
    reported: bool = False  # whether `advance` has returned the sentence as finished


@dataclass
class PendingSequences:
    """Sentences to copy into slots of a static batch.

    New sentences have `slots` None. Other sentences move from slots `slots` of `static`, which then returns to the
    pool.
    """

    states: list[SlotState]
    search: StaticSearch
    memory: DecoderMemory
    slots: Tensor | None = None
    static: StaticBatch | None = None


@dataclass(frozen=True)
class FinishedPoll:
    """Finished flags of a step, and the sentence of each slot at that step."""

    flags: Flags
    occupants: list[tuple[SlotState, int]]


class GraphDecoder:
    """Factory of `GraphBatch`. Owned by one thread; the weights must not change while it is in use.

    On a CPU, the same steps run eagerly. The results equal the results of `SearchBatch`, except for rounding in
    attention. Requests with term constraints use `SearchBatch`.
    """

    def __init__(
        self,
        model: Transformer,
        special: SpecialIds,
        device: torch.device,
        executor: Executor | None = None,
        limits: GraphLimits | None = None,
    ) -> None:
        executor = executor or (CudaGraphs(device) if device.type == "cuda" else Eager(device))
        with torch.inference_mode():
            self.decoder = StaticDecoder(model)
        self.pool = StaticPool(self.decoder, special, executor, limits or GraphLimits.of(device))
        self._reference = SearchDecoder(ModelScorer(model, special, device))

    def kind(self, request: Request) -> BatchKind:
        kind = BatchKind.of(request)
        return replace(kind, cost=REFERENCE_COST) if kind.constrained else kind

    @torch.inference_mode()
    def begin(self, requests: Sequence[Request]) -> Batch:
        """Encode requests of one kind and return their batch.

        Raises:
            RequestError: A prefix cannot be used.
        """
        kind = self.kind(requests[0])
        assert all(self.kind(request) == kind for request in requests)
        if kind.constrained:
            return self._reference.begin(requests)
        sources = [request.source for request in requests]
        executor, special = self.pool.executor, self.pool.special
        host = torch.device("cpu")  # building tensors on the device would wait for queued work
        search = (BeamSearch if kind.beams else Sampling).start(
            [len(source) for source in sources],
            [request.options for request in requests],
            [request.prefix for request in requests],
            special,
            host,
        )
        mask = executor.send(real(sources, host))
        memory = self.decoder.memory(Shape(len(sources), kind.rows, 0, 0))
        memory.cross = self.pool.encode(executor.send(padded(sources, special.pad, host)), mask)
        memory.source = mask
        last = search.constraints.last.tolist()
        states = [SlotState(request.options, steps) for request, steps in zip(requests, last, strict=True)]
        return GraphBatch(self.pool, kind, PendingSequences(states, search, memory))


class GraphBatch:
    """Sentences in the slots of a static batch.

    A sentence that leaves frees its slot. A sentence that joins is copied into a free slot. If slots, columns or width
    do not suffice, or three quarters of the slots are free, all sentences are copied to another static batch.
    """

    def __init__(self, pool: StaticPool, kind: BatchKind, pending: PendingSequences) -> None:
        self._pool = pool
        self._executor = pool.executor
        self._kind = kind
        self._states = list(pending.states)
        self._pending = [pending]
        # Copy on the host, from which the features in use are read. Decoding does not change this copy.
        self._constraints: Constraints = copy(pending.search.constraints)
        self._static: StaticBatch | None = None
        self._program: Program | None = None  # None after sentences have joined or left
        self._steps = 0
        self._program_end = 0  # the step at which the program's columns are full
        self._poll: FinishedPoll | None = None
        self._last_poll = 0  # step of the last poll

    @torch.inference_mode()
    def advance(self) -> list[int]:
        """Queue one step. Return the indices of the sentences that the second last poll reports as finished."""
        if not self._states:
            return []
        static = self._settle()
        if self._program is None or self._steps >= self._program_end:
            self._program = self._choose_program(static)
        self._program.replay()
        self._steps += 1
        if self._steps - self._last_poll < self._pool.limits.steps_between_polls(len(self._states)):
            return []
        self._last_poll = self._steps
        previous = self._poll
        flags = self._executor.fetch(static.search.finished)
        self._poll = FinishedPoll(flags, [(state, state.slot) for state in self._states])
        return self._report(previous) if previous else []

    @torch.inference_mode()
    def results(self, indices: Sequence[int]) -> list[list[Hypothesis]]:
        if not indices:
            return []
        static = self._settle()
        with self._executor.aside():
            return static.search.results([self._states[index].slot for index in indices])

    @torch.inference_mode()
    def select(self, indices: Sequence[int]) -> None:
        if self._pending:
            self._settle()
        self._states = [self._states[index] for index in indices]
        self._constraints.select(torch.tensor(indices, dtype=torch.int64))
        self._program = None
        if not self._states and self._static is not None:
            self._pool.give_back(self._static)
            self._static = None

    @torch.inference_mode()
    def extend(self, other: Self) -> None:
        assert self._kind == other._kind, "sentences are grouped by their kind"
        static = other._static
        if static is not None:
            static = other._settle()
            slots = self._send([state.slot for state in other._states])
            self._pending.append(PendingSequences(other._states, static.search, static.memory, slots, static))
        else:
            self._pending += other._pending
        for state in other._states:
            state.first_step += self._steps - other._steps
        self._states = self._states + other._states
        self._constraints.extend(other._constraints)
        self._program = None
        other._states, other._pending, other._static = [], [], None
        if static is not None:  # `other` borrowed this static batch and still exists
            self._settle()

    def _settle(self) -> StaticBatch:
        """Copy pending sentences into slots and return a static batch that fits all sentences."""
        static = self._static
        if static is not None and self._program is not None:  # no sentence joined or left
            return static
        needed = self._needed()
        fits = static is not None and _contains(static.shape, needed) and 4 * needed.slots > static.shape.slots
        if static is not None and fits and not self._pending:
            return static
        pending, joining = self._pending, {state for group in self._pending for state in group.states}
        staying = [state for state in self._states if state not in joining]
        if static is None or not fits:
            if static is not None:
                slots = self._send([state.slot for state in staying])
                pending = [PendingSequences(staying, static.search, static.memory, slots, static), *pending]
            static, staying = self._pool.lend(self, needed, self._kind.beams), []
        self._pending, self._static, self._program = [], static, None
        taken = {state.slot for state in staying}
        free = (slot for slot in range(static.shape.slots) if slot not in taken)
        for group in pending:
            for state, slot in zip(group.states, free):  # noqa: B905 -- there may be more free slots than sentences
                state.slot = slot
            slots = self._send([state.slot for state in group.states])
            copy_slots(group.search, group.slots, static.search, slots, self._executor)
            copy_slots(group.memory, group.slots, static.memory, slots, self._executor)
            if group.static is not None:
                self._pool.give_back(group.static)
        self._executor.fence()
        return static

    def _needed(self) -> Shape:
        """Return the bucketed shape that fits the present sentences."""
        widths = [group.memory.source.shape[1] for group in self._pending]
        width = max([*widths, self._static.shape.width] if self._static else widths)
        columns = max(state.last for state in self._states) + 2  # finished sentences write to the last column
        slots = bucket(len(self._states), MIN_SLOTS) if len(self._states) > 1 else 1
        return Shape(slots, self._kind.rows, bucket(columns, MIN_COLUMNS), bucket(width, MIN_WIDTH))

    def _choose_program(self, static: StaticBatch) -> Program:
        """Return the program for the options of the present sentences and for the columns that they may use."""
        used = max(min(self._steps - state.first_step, state.last + 1) for state in self._states)
        columns = min(bucket(used + 1, MIN_COLUMNS), static.shape.columns)
        options = [state.options for state in self._states]
        filters = Filters(
            sample=any(sentence.sample for sentence in options),
            top_k=any(sentence.top_k > 0 for sentence in options),
            top_p=any(sentence.top_p < 1 for sentence in options),
        )
        self._program_end = self._steps + columns - used
        return self._pool.program(static, self._constraints.features, filters, columns)

    def _report(self, poll: FinishedPoll) -> list[int]:
        """Return the indices of the sentences that a poll shows as finished and that were not reported before."""
        flags = poll.flags.read()
        finished = {id(state) for state, slot in poll.occupants if flags[slot]}
        indices = [index for index, state in enumerate(self._states) if id(state) in finished and not state.reported]
        for index in indices:
            self._states[index].reported = True
        return indices

    def _send(self, numbers: Sequence[int]) -> Tensor:
        return self._executor.send(torch.tensor(numbers, dtype=torch.int64))


def _contains(shape: Shape, needed: Shape) -> bool:
    return needed.slots <= shape.slots and needed.columns <= shape.columns and needed.width <= shape.width


def load_backend(models: Sequence[LoadedModel], device_name: str, dtype: Dtype, shortlist: bool) -> Backend:
    """Return the CUDA backend of one model. It uses no shortlist.

    Raises:
        ModelError: The device or the dtype is not supported, or there are several models.
    """
    device = torch.device(device_name)
    if device.type != "cuda":
        raise ModelError(f"device is {device}; accepted: cuda")
    if len(models) > 1:
        raise ModelError(f"the ensemble has {len(models)} models; accepted: 1")
    if dtype is Dtype.INT8:
        raise ModelError("dtype is int8; accepted: auto, float32, bfloat16")
    model = models[0].model
    if dtype is Dtype.AUTO:
        dtype = Dtype.BFLOAT16 if has_bfloat16(device) else Dtype.FLOAT32
    if dtype is Dtype.BFLOAT16:
        model.bfloat16()
    limits = device_limits([model], device)
    return Backend(GraphDecoder(model, SpecialIds(), device), dtype, limits, threads=GPU_THREADS)
