"""CUDA backend: one CUDA graph over static memory runs a whole decoder step, from embedding to finished flags.

Static memory consists of tensors with fixed addresses, as a graph needs them. A slot is a place for one sentence in
this memory. A program is the graph of a step for some number of slots. Shapes are those of
mt/kernels/cuda/static_decoder.py.
"""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from mt.checkpoint import LoadedModel
from mt.decoding.beam import BeamSearch
from mt.decoding.constraints import Constraints
from mt.decoding.greedy import GreedySearch
from mt.decoding.hypothesis import Hypothesis
from mt.decoding.options import SearchOptions, SpecialIds
from mt.decoding.scorer import ModelScorer
from mt.engine.backends.memory import device_limits
from mt.engine.backends.protocol import GPU_THREADS, Backend, Batch, Dtype
from mt.engine.backends.static_batch import (
    READ,
    SLOTS,
    GraphLimits,
    ProgramKey,
    StaticBatch,
    StaticPool,
    bucket,
    power_of_two,
    program_slots,
)
from mt.engine.backends.torch import SearchDecoder
from mt.engine.devices import has_bfloat16
from mt.engine.engine import Engine
from mt.engine.memory import LEAST, target_columns
from mt.engine.requests import Request
from mt.engine.scheduler import BatchKind
from mt.errors import ModelError
from mt.kernels.cuda.graphs import CudaGraphs, Eager, Executor, Fetched, Program
from mt.kernels.cuda.static_decoder import Shape, StaticDecoder
from mt.model.transformer import Transformer

USUAL_COLUMNS = (32, 64)
USUAL_WIDTHS = (32, 64)
"""Numbers of target columns and of source tokens for which programs are captured before the first request."""

REFERENCE_COST = 8
"""Estimated time of one step of one row in `SearchBatch`, relative to a step in a CUDA graph."""

FEW_SLOTS = 8
"""With at most this many slots, the host needs less time than a step, and the next sentence would wait for more steps.
"""


@dataclass(eq=False)
class SlotState:
    """One sentence of a batch, with the slot that it occupies."""

    options: SearchOptions
    last: int  # maximum number of tokens of its translation, without EOS
    width: int  # number of source tokens
    static: StaticBatch | None = None
    slot: int = -1  # in `static`
    first_step: int = 0  # the step of the batch at which the sentence began
    steps: int = 0  # number of steps of a finished sentence; 0 until `advance` has reported it


@dataclass(frozen=True)
class NewSentences:
    """Sentences that have no slots yet, with the search that begins them (on the CPU).

    `cross` are the cross-attention keys and values of the sources.
    """

    states: list[SlotState]
    search: BeamSearch | GreedySearch
    cross: Tensor


@dataclass(frozen=True)
class Poll:
    """Progress of all slots after one step, and the sentences that occupied the slots in this step."""

    progress: Fetched
    occupants: Mapping[int, SlotState]

    def finished(self) -> Iterator[SlotState]:
        """Yield the sentences that have finished and were not reported before, and set their `steps`."""
        steps, running = self.progress().unbind(1)
        for slot in (running == 0).nonzero().flatten().tolist():
            state = self.occupants.get(slot)
            if state is not None and not state.steps:
                state.steps = int(steps[slot])
                yield state


class GraphDecoder:
    """Decoder that creates `GraphBatch` objects. Only one thread may use it, and the model's weights must not change.

    On a CPU, the same steps run without graphs. The results equal those of `SearchBatch`, except for rounding. Samples
    and requests with term constraints are decoded by a `SearchBatch`.
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
        return BatchKind.of(request)

    def cost(self, request: Request) -> int:
        return REFERENCE_COST if request.options.sample or request.constraints is not None else 1

    @torch.inference_mode()
    def begin(self, requests: Sequence[Request]) -> Batch:
        """Encode requests of one kind and return their batch.

        Raises:
            RequestError: A prefix is invalid (see `check_prefixes`).
        """
        kind = self.kind(requests[0])
        assert all(self.kind(request) == kind for request in requests)
        if kind.constrained or kind.sample:
            return self._reference.begin(requests)
        self.pool.reclaim()  # memory of a batch that failed, before the encoder needs some
        sources = [request.source for request in requests]
        search = (BeamSearch if kind.beams else GreedySearch).start(
            [len(source) for source in sources],
            [request.options for request in requests],
            [request.prefix for request in requests],
            self.pool.special,
            torch.device("cpu"),  # building tensors on the device would wait for queued work
        )
        last = search.constraints.last.tolist()
        states = [
            SlotState(request.options, steps, len(request.source))
            for request, steps in zip(requests, last, strict=True)
        ]
        return GraphBatch(self.pool, kind, NewSentences(states, search, self.pool.encode(sources)))

    @torch.inference_mode()
    def prepare(self, options: SearchOptions) -> None:
        """Capture the programs for sentences of usual lengths in advance, so that few requests wait for a capture."""
        kind, pool = BatchKind.of(Request(0, (), options)), self.pool
        static = pool.lend(self, Shape(1, kind.rows, LEAST, LEAST), kind.beams)
        features = Constraints.start([1], [options], [()], torch.device("cpu")).features
        for count in sorted({min(slots, static.shape.slots) for slots in (*SLOTS, static.shape.slots)}):
            for width in USUAL_WIDTHS:
                keys = [ProgramKey(count, columns, width, features) for columns in USUAL_COLUMNS]
                for _ in range(2):  # the first run warms up, the second captures
                    pool.encode([[pool.special.eos] * width] * count)
                    for key in keys:
                        pool.program(static, key)()
        pool.give_back(static)


class GraphBatch:
    """Batch whose sentences occupy the slots of a static batch.

    A sentence that ends frees its slot, and a sentence that joins is copied into a free slot. A step runs on the first
    slots, as few as the sentences need; sentences in later slots move there. If the static batch has too few slots,
    target columns or source columns, all sentences move to another static batch.
    """

    def __init__(self, pool: StaticPool, kind: BatchKind, new: NewSentences) -> None:
        self._pool = pool
        self._executor = pool.executor
        self._kind = kind
        self._states = list(new.states)
        self._waiting = [new]
        # Copy on the host that says which features are in use. Decoding does not change this copy.
        self._constraints: Constraints = copy(new.search.constraints)
        self._static: StaticBatch | None = None
        self._program: Program | None = None  # None after sentences have joined or left
        self._program_end = 0  # the step at which the program's columns are full
        self.slots = 0  # number of slots that the program decodes
        self._steps = 0
        self._occupants: dict[int, SlotState] = {}  # sentence in each slot
        self._polls: deque[Poll] = deque()  # of the steps whose progress has not been read, oldest first

    @property
    def steps(self) -> int:
        return self._steps

    @torch.inference_mode()
    def advance(self, steps: int = 1) -> list[int]:
        """Queue one step, whatever `steps` is. Return the indices of sentences that finished in earlier steps.

        The host reads the progress of a step only after it has queued one later step, or two if it decodes more than
        FEW_SLOTS slots. The device thus has work while the host reads results and lets sentences join.
        """
        if not self._states or (self._occupants and all(state.steps for state in self._states)):
            return []
        static = self._settle()
        if self._program is None or self._steps >= self._program_end:
            self._program = self._choose_program(static)
        try:
            self._program()
        except torch.OutOfMemoryError:  # the engine decodes each sentence again, alone
            self._pool.shrink()
            raise
        self._steps += 1
        self._polls.append(Poll(self._executor.fetch(static.progress[: self.slots]), self._occupants))
        finished: list[int] = []
        while len(self._polls) > (1 if self.slots <= FEW_SLOTS else 2):
            finished += self._report(self._polls.popleft())
        return finished

    @torch.inference_mode()
    def results(self, indices: Sequence[int]) -> list[list[Hypothesis]]:
        """Return the hypotheses of sentences that the last call of `advance` returned, best first."""
        if not indices:
            return []
        assert self._static is not None
        states = [self._states[index] for index in indices]
        return self._static.results(
            [state.slot for state in states],
            [state.steps for state in states],
            [state.last for state in states],
            [state.options for state in states],
        )

    @torch.inference_mode()
    def select(self, indices: Sequence[int]) -> None:
        if self._waiting:
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
        borrowed = None if other._static is None else other._settle()
        for state in other._states:
            state.first_step += self._steps - other._steps
        self._states = self._states + other._states
        self._waiting += other._waiting
        self._constraints.extend(other._constraints)
        self._program = None
        other._states, other._waiting, other._static = [], [], None
        if borrowed is not None:
            self._settle()
            self._pool.give_back(borrowed)

    def _settle(self) -> StaticBatch:
        """Move all sentences into the first slots of a static batch that is large enough. Return this static batch."""
        old = static = self._static
        if static is not None and self._program is not None:  # no sentence joined or left
            return static
        live = [state for state in self._states if not state.steps]
        needed = self._needed(live)
        if static is None or not static.shape.contains(needed):
            self._static = static = self._pool.lend(self, needed, self._kind.beams)
        self.slots = min(program_slots(len(live)), static.shape.slots)
        staying = [state for state in live if state.static is static and state.slot < self.slots]
        taken = {state.slot for state in staying}
        free = (slot for slot in range(self.slots) if slot not in taken)
        moving: dict[StaticBatch, list[SlotState]] = {}
        for state in live:
            if state.static is not None and (state.static is not static or state.slot >= self.slots):
                moving.setdefault(state.static, []).append(state)
        for source, states in moving.items():
            before = [state.slot for state in states]
            static.move(source, before, _place(states, static, free))
        for new in self._waiting:
            slots = _place(new.states, static, free)
            static.join(new.search, new.cross, [state.width for state in new.states], slots)
        self._waiting = []
        self._occupants = {state.slot: state for state in live}
        self._executor.fence()
        if old is not None and old is not static:
            self._pool.give_back(old)
        return static

    def _needed(self, live: Sequence[SlotState]) -> Shape:
        """Return the smallest shape of a static batch that is large enough for these sentences."""
        columns = max(target_columns(state.options, state.last + 1) for state in live)
        width = max(state.width for state in live)
        return Shape(len(live), self._kind.rows, columns, power_of_two(width, LEAST))

    def _choose_program(self, static: StaticBatch) -> Program:
        """Return the program for the constraints of the present sentences and for the columns that they fill."""
        live = list(self._occupants.values())
        used = max(min(self._steps - state.first_step, state.last + 1) for state in live)
        columns = min(bucket(used + 1, READ), static.shape.columns)
        width = min(power_of_two(max(state.width for state in live), READ), static.shape.width)
        self._program_end = self._steps + columns - used
        key = ProgramKey(self.slots, columns, width, self._constraints.features)
        return self._pool.program(static, key)

    def _report(self, poll: Poll) -> list[int]:
        """Return the indices of the sentences that finished according to `poll` and were not reported before."""
        finished = set(poll.finished())
        if not finished:
            return []
        live = sum(not state.steps for state in self._states)
        if program_slots(live) < self.slots:  # the remaining sentences move to fewer slots
            self._program = None
        return [index for index, state in enumerate(self._states) if state in finished]


def _place(states: Sequence[SlotState], static: StaticBatch, free: Iterator[int]) -> list[int]:
    """Assign the next slot from `free`, a slot of `static`, to each sentence. Return the assigned slots."""
    for state in states:
        state.static, state.slot = static, next(free)
    return [state.slot for state in states]


def load_engine(loaded: LoadedModel) -> Engine:
    """Return an engine on the GPU that decodes with the present weights of `loaded`, without changing their dtype.

    No program is captured in advance, because the texts of a validation need only few programs.
    """
    device = torch.device(loaded.device)
    torch.cuda.empty_cache()  # the limits follow from the free memory, to which torch's cache does not belong
    return Engine(GraphDecoder(loaded.model, SpecialIds(), device), device_limits([loaded.model], device))


def load_backend(models: Sequence[LoadedModel], device_name: str, dtype: Dtype) -> Backend:
    """Return the CUDA backend of one model. It does not use a shortlist.

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
    limits, decoding = device_limits([model], device), models[0].description.decoding
    decoder = GraphDecoder(model, SpecialIds(), device)
    decoder.prepare(SearchOptions(beam_size=decoding.beam_size, no_repeat_ngram=decoding.no_repeat_ngram))
    return Backend(decoder, dtype, limits, threads=GPU_THREADS)
