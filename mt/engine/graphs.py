"""Batches whose steps are replayed: a whole decoder step, from embedding to finished flags, over static slots."""

from collections import OrderedDict
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from typing import Self
from weakref import ReferenceType, ref

import torch
from torch import Tensor

from mt.decoding.beam import BeamSearch
from mt.decoding.constraints import Constraints, Features
from mt.decoding.options import SearchOptions, SpecialIds
from mt.decoding.rows import Hypothesis
from mt.decoding.sampling import Filters, Sampling
from mt.decoding.scorer import ModelScorer, padded, real
from mt.engine.batches import Batch, SearchDecoder
from mt.engine.messages import Request
from mt.engine.scheduler import Kind
from mt.engine.stages import Encoder, Stage, Table
from mt.kernels.graphs import CudaGraphs, Eager, Executor, Flags, Program
from mt.kernels.static import DecoderMemory, Shape, StaticDecoder, bucket, copy_slots
from mt.model.transformer import Transformer

SLOTS = 4  # but for a lone sentence; fewer rows take a step no less time
COLUMNS = 32
WIDTHS = 16  # these three are the least of their buckets
ENCODED = 2048  # padded source tokens up to which the encoder's kernels are shorter than their launches
ENCODERS = 16


@dataclass(frozen=True)
class GraphLimits:
    """What a `GraphDecoder` keeps for the next request: bytes of static memory that nobody uses, and programs.

    The host looks at who is finished every `look_every` steps, more often while there are few sentences: what a late
    look wastes is steps, which a lone sentence pays for all by itself.
    """

    idle_bytes: int = 1 << 30
    programs: int = 64
    look_every: int = 8

    @classmethod
    def of(cls, device: torch.device) -> Self:
        """A quarter of a GPU's memory."""
        return cls() if device.type == "cpu" else cls(torch.cuda.get_device_properties(device).total_memory // 4)

    def looks(self, sentences: int) -> int:
        return min(self.look_every, max(2, sentences))


@dataclass(frozen=True)
class GraphMemory:
    """What a `GraphDecoder` holds: static memory, in use and idle, programs, and what these allocate as they run."""

    used_bytes: int
    idle_bytes: int
    workspace_bytes: int
    stages: int
    programs: int


@dataclass(eq=False)
class Seat:
    """A sentence in a batch."""

    options: SearchOptions
    last: int  # its longest translation has so many tokens without EOS
    slot: int = -1
    since: int = 0  # the step of the batch at which it began
    told: bool = False


@dataclass
class Arrivals:
    """Sentences that are to be seated: fresh ones, or some at `places` of a stage that is given back then."""

    seats: list[Seat]
    search: Table
    memory: DecoderMemory
    places: Tensor | None = None
    stage: Stage | None = None


@dataclass(frozen=True)
class Look:
    """Flags that were asked for, and who sat where at that time."""

    flags: Flags
    seated: list[tuple[Seat, int]]


class GraphDecoder:
    """Begins batches that run as graphs, and lends them static memory; owned by one thread.

    Memory and programs are keyed by bucket (slots, rows, columns, source width; then which wishes are in use and how
    many columns are looked at), so they serve one request after another. A CPU runs the same steps eagerly. The
    model's weights must not change under it. Results equal the plain path's up to the order of sums in attention.
    Searches with words of their own take the plain path.
    """

    def __init__(
        self,
        model: Transformer,
        special: SpecialIds,
        device: torch.device,
        executor: Executor | None = None,
        limits: GraphLimits | None = None,
    ) -> None:
        self.special = special
        self.limits = limits or GraphLimits.of(device)
        self.executor = executor or (CudaGraphs(device) if device.type == "cuda" else Eager(device))
        with torch.inference_mode():
            self.decoder = StaticDecoder(model)
        self._plain = SearchDecoder(ModelScorer(model, special, device))
        self._idle: list[Stage] = []  # least recently used first
        self._lent: list[tuple[ReferenceType[GraphBatch], Stage]] = []
        self._programs: OrderedDict[tuple[Stage, Features, Filters, int], Program] = OrderedDict()
        self._encoders: OrderedDict[tuple[int, int], Encoder] = OrderedDict()

    def kind(self, request: Request) -> Kind:
        """Requests of one kind can share a batch."""
        return Kind.of(request)

    @torch.inference_mode()
    def begin(self, requests: Sequence[Request]) -> Batch:
        """A batch of requests, all of one kind. Raises RequestError for a prefix that cannot be used."""
        kind = self.kind(requests[0])
        assert all(self.kind(request) == kind for request in requests)
        if kind.worded:
            return self._plain.begin(requests)
        sources = [request.source for request in requests]
        host = torch.device("cpu")  # built there and sent, because to build on the device is to wait for it
        search = (BeamSearch if kind.beams else Sampling).start(
            [len(source) for source in sources],
            [request.options for request in requests],
            [request.prefix for request in requests],
            self.special,
            host,
        )
        mask = self.executor.send(real(sources, host))
        memory = self.decoder.memory(Shape(len(sources), kind.rows, 0, 0))
        memory.cross = self._encode(self.executor.send(padded(sources, self.special.pad, host)), mask)
        memory.source = mask
        lasts = search.constraints.last.tolist()
        seats = [Seat(request.options, last) for request, last in zip(requests, lasts, strict=True)]
        return GraphBatch(self, kind, Arrivals(seats, search, memory))

    def memory(self) -> GraphMemory:
        """What is held now."""
        encoders = sum(e.source.nbytes + e.mask.nbytes + e.encoded.nbytes for e in self._encoders.values())
        return GraphMemory(
            used_bytes=encoders + sum(stage.bytes for _, stage in self._lent),
            idle_bytes=sum(stage.bytes for stage in self._idle),
            workspace_bytes=self.executor.workspace,
            stages=len(self._idle) + len(self._lent),
            programs=len(self._programs) + len(self._encoders),
        )

    def lend(self, batch: "GraphBatch", shape: Shape, beams: bool) -> Stage:
        """Static memory for a batch, without sentences in it; it comes back at the latest when the batch is gone."""
        self._reclaim()
        for stage in reversed(self._idle):
            if stage.shape == shape and stage.beams == beams:
                self._idle.remove(stage)
                break
        else:
            self._keep(self.limits.idle_bytes - self.decoder.bytes(shape))
            stage = Stage(self.decoder, shape, beams, self.special)
        self._lent.append((ref(batch), stage))
        return stage

    def give_back(self, stage: Stage) -> None:
        """A batch is done with a stage."""
        self._lent = [(batch, lent) for batch, lent in self._lent if lent is not stage]
        self._idle.append(stage)
        self._keep(self.limits.idle_bytes)

    def program(self, stage: Stage, features: Features, filters: Filters, columns: int) -> Program:
        """The step of a stage, from those that were used before if it is there."""
        key = (stage, features, filters, columns)
        if key not in self._programs:
            if len(self._programs) >= self.limits.programs:
                self.executor.finish()
                self._programs.popitem(last=False)
            self._programs[key] = self.executor.program(stage.step(features, filters, columns))
        self._programs.move_to_end(key)
        return self._programs[key]

    def _encode(self, source: Tensor, mask: Tensor) -> Tensor:
        batch = bucket(source.shape[0], SLOTS) if source.shape[0] > 1 else 1
        width = bucket(source.shape[1], WIDTHS)
        if batch * width > ENCODED:
            return self.decoder.encode(source, mask)
        if (batch, width) not in self._encoders:
            if len(self._encoders) >= ENCODERS:
                self.executor.finish()
                self._encoders.popitem(last=False)
            self._encoders[batch, width] = Encoder(self.decoder, batch, width, self.executor)
        self._encoders.move_to_end((batch, width))
        return self._encoders[batch, width](source, mask)

    def _reclaim(self) -> None:
        """Take back what was lent to batches that are gone, as one is whose step raised."""
        for batch, stage in list(self._lent):
            if batch() is None:
                self.give_back(stage)

    def _keep(self, idle_bytes: int) -> None:
        """Drop idle stages, and their programs, until no more than this is left."""
        held = sum(stage.bytes for stage in self._idle)
        while self._idle and held > max(0, idle_bytes):
            self.executor.finish()
            dropped = self._idle.pop(0)
            held -= dropped.bytes
            for key in [key for key in self._programs if key[0] is dropped]:
                del self._programs[key]


class GraphBatch:
    """Sentences in flight in the slots of a stage.

    One that leaves only frees its slot, and one that joins is copied into a free one. Where slots, columns or width
    no longer suffice, or three slots in four are free, all move to another stage, which is a copy each.
    """

    def __init__(self, decoder: GraphDecoder, kind: Kind, arrivals: Arrivals) -> None:
        self._decoder = decoder
        self._executor = decoder.executor
        self._kind = kind
        self._seats = list(arrivals.seats)
        self._arrivals = [arrivals]
        # As it came, on the host, where it tells which wishes are in use: nothing in it changes as decoding goes on.
        self._wishes: Constraints = copy(arrivals.search.constraints)
        self._stage: Stage | None = None
        self._program: Program | None = None  # None while it is open who sits where
        self._steps = 0  # so far
        self._until = 0  # the step at which the program's columns are full
        self._look: Look | None = None
        self._looked = 0  # the step of the last look

    @torch.inference_mode()
    def advance(self) -> list[int]:
        """Queue one step; the places of sentences found to be finished, as the look before the last one saw them."""
        if not self._seats:
            return []
        stage = self._settle()
        if self._program is None or self._steps >= self._until:
            self._choose(stage)
        assert self._program is not None
        self._program.replay()
        self._steps += 1
        if self._steps - self._looked < self._decoder.limits.looks(len(self._seats)):
            return []
        self._looked = self._steps
        before = self._look
        flags = self._executor.fetch(stage.search.finished)
        self._look = Look(flags, [(seat, seat.slot) for seat in self._seats])
        return self._found(before) if before else []

    @torch.inference_mode()
    def results(self, places: Sequence[int]) -> list[list[Hypothesis]]:
        """The hypotheses of finished sentences, each list best first; none where the scores were not numbers."""
        if not places:
            return []
        stage = self._settle()
        with self._executor.aside():
            return stage.search.results([self._seats[place].slot for place in places])

    @torch.inference_mode()
    def select(self, places: Sequence[int]) -> None:
        """Keep these sentences, in this order."""
        if self._arrivals:
            self._settle()
        self._seats = [self._seats[place] for place in places]
        self._wishes.select(torch.tensor(places, dtype=torch.int64))
        self._program = None
        if not self._seats and self._stage is not None:
            self._decoder.give_back(self._stage)
            self._stage = None

    @torch.inference_mode()
    def extend(self, other: Self) -> None:
        """Append another batch's sentences, which may be at other steps; `other` is used up."""
        assert self._kind == other._kind, "sentences are grouped by their kind"
        stage = other._stage
        if stage is not None:
            stage = other._settle()
            places = self._sent([seat.slot for seat in other._seats])
            self._arrivals.append(Arrivals(other._seats, stage.search, stage.memory, places, stage))
        else:
            self._arrivals += other._arrivals
        for seat in other._seats:
            seat.since += self._steps - other._steps
        self._seats = self._seats + other._seats
        self._wishes.extend(other._wishes)
        self._program = None
        other._seats, other._arrivals, other._stage = [], [], None
        if stage is not None:  # while `other`, to which its stage was lent, is there
            self._settle()

    def _settle(self) -> Stage:
        """Seat who has arrived, in a stage that fits."""
        stage = self._stage
        if stage is not None and self._program is not None:  # nobody came or went
            return stage
        needed = self._needed()
        fits = stage is not None and _within(needed, stage.shape) and 4 * needed.slots > stage.shape.slots
        if stage is not None and fits and not self._arrivals:
            return stage
        arrivals, coming = self._arrivals, {seat for group in self._arrivals for seat in group.seats}
        seated = [seat for seat in self._seats if seat not in coming]
        if stage is None or not fits:
            if stage is not None:
                places = self._sent([seat.slot for seat in seated])
                arrivals = [Arrivals(seated, stage.search, stage.memory, places, stage), *arrivals]
            stage, seated = self._decoder.lend(self, needed, self._kind.beams), []
        self._arrivals, self._stage, self._program = [], stage, None
        taken = {seat.slot for seat in seated}
        free = (slot for slot in range(stage.shape.slots) if slot not in taken)
        for group in arrivals:
            for seat, slot in zip(group.seats, free):  # noqa: B905 -- there may be more slots than seats
                seat.slot = slot
            slots = self._sent([seat.slot for seat in group.seats])
            copy_slots(group.search, group.places, stage.search, slots, self._executor)
            copy_slots(group.memory, group.places, stage.memory, slots, self._executor)
            if group.stage is not None:
                self._decoder.give_back(group.stage)
        self._executor.fence()
        return stage

    def _needed(self) -> Shape:
        """The bucket of what is here."""
        widths = [group.memory.source.shape[1] for group in self._arrivals]
        width = max([*widths, self._stage.shape.width] if self._stage else widths)
        columns = max(seat.last for seat in self._seats) + 2  # where a finished sentence writes is one of them
        slots = bucket(len(self._seats), SLOTS) if len(self._seats) > 1 else 1
        return Shape(slots, self._kind.rows, bucket(columns, COLUMNS), bucket(width, WIDTHS))

    def _choose(self, stage: Stage) -> None:
        """The program for the wishes that are here and the columns that may be in use."""
        most = max(min(self._steps - seat.since, seat.last + 1) for seat in self._seats)
        columns = min(bucket(most + 1, COLUMNS), stage.shape.columns)
        options = [seat.options for seat in self._seats]
        filters = Filters(
            sample=any(wanted.sample for wanted in options),
            top_k=any(wanted.top_k > 0 for wanted in options),
            top_p=any(wanted.top_p < 1 for wanted in options),
        )
        self._program = self._decoder.program(stage, self._wishes.features, filters, columns)
        self._until = self._steps + columns - most

    def _found(self, look: Look) -> list[int]:
        """Who was finished then and has not been told of."""
        flags = look.flags.read()
        over = {id(seat) for seat, slot in look.seated if flags[slot]}
        places = [place for place, seat in enumerate(self._seats) if id(seat) in over and not seat.told]
        for place in places:
            self._seats[place].told = True
        return places

    def _sent(self, numbers: Sequence[int]) -> Tensor:
        return self._executor.send(torch.tensor(numbers, dtype=torch.int64))


def _within(needed: Shape, there: Shape) -> bool:
    return needed.slots <= there.slots and needed.columns <= there.columns and needed.width <= there.width
