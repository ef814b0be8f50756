"""Static memory of the CUDA backend: tensors with fixed addresses, and programs that run decoder steps on them."""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Self
from weakref import ReferenceType, ref

import torch
from torch import Tensor

from mt.decoding.beam import BeamSearch
from mt.decoding.constraints import Features
from mt.decoding.options import SearchOptions, SpecialIds
from mt.decoding.sampling import Filters, Sampling
from mt.kernels.cuda.graphs import Executor, Program
from mt.kernels.cuda.static_decoder import Shape, StaticDecoder, bucket, nbytes, reorder

MIN_SLOTS = 4  # for more than one sentence; fewer slots do not make a step faster
MIN_WIDTH = 16
GRAPH_TOKENS = 2048  # padded source tokens up to which the encoder's kernels take less time than their launches
MAX_ENCODERS = 16

StaticSearch = BeamSearch | Sampling


@dataclass(frozen=True)
class GraphLimits:
    """Limits of the idle memory and programs of a `StaticPool`, and the interval between polls of a `GraphBatch`.

    The host reads the finished flags every `poll_every` steps. With few sentences it reads them more often, because the
    additional steps after the end of a sentence delay its result.
    """

    idle_bytes: int = 1 << 30
    programs: int = 64
    poll_every: int = 8

    @classmethod
    def of(cls, device: torch.device) -> Self:
        """Return limits with idle memory of up to a quarter of a GPU's free memory."""
        return cls() if device.type == "cpu" else cls(torch.cuda.mem_get_info(device)[0] // 4)

    def steps_between_polls(self, sentences: int) -> int:
        return min(self.poll_every, max(2, sentences))


class StaticBatch:
    """Static memory for sentences of one kind, with the work of a decoder step.

    A slot without a sentence takes part in each step with initial values or the values of an earlier sentence. Its
    search ends at the end of its tables at the latest, and its results are not read.
    """

    def __init__(self, decoder: StaticDecoder, shape: Shape, beams: bool, special: SpecialIds) -> None:
        self.shape = shape
        self.beams = beams
        self.decoder = decoder
        self.memory = decoder.memory(shape)
        self.search = _empty_search(shape, beams, special, self.memory.source.device)

    @property
    def bytes(self) -> int:
        return nbytes(self.memory) + nbytes(self.search)

    def step(self, features: Features, filters: Filters, columns: int) -> Callable[[], None]:
        """Return the work that decodes one token for each row with these features, reading `columns` columns."""

        def work() -> None:
            # Set here, because features computed from the tables would include those of earlier sentences.
            self.search.constraints.features = features
            if isinstance(self.search, Sampling):
                self.search.filters = filters
            logits = self.decoder.step(self.memory, self.search.tokens, self.search.steps, columns)
            rows = self.search.advance(logits)
            if rows is not None:
                reorder(self.memory, rows)

        return work


def _empty_search(shape: Shape, beams: bool, special: SpecialIds, device: torch.device) -> StaticSearch:
    """Return a search without sentences. Its tables are as wide as the columns, which suffices for any options."""
    length = shape.columns - 1
    common = SearchOptions(max_length=length, max_length_offset=length, max_length_factor=0.0, repetition_penalty=2.0)
    one = replace(common, beam_size=shape.rows) if beams else replace(common, n_best=shape.rows, sample=True)
    prefixes = [(special.unk,) * (length - 1), *[()] * (shape.slots - 1)]
    start = BeamSearch.start if beams else Sampling.start
    search = start([1] * shape.slots, [one] * shape.slots, prefixes, special, device)
    assert search.history.shape[2] == shape.columns
    return search


class StaticEncoder:
    """Static memory for sources of one padded shape, with a program that encodes the sources."""

    def __init__(self, decoder: StaticDecoder, batch: int, width: int, executor: Executor) -> None:
        device = executor.device
        source = torch.zeros(batch, width, dtype=torch.int64, device=device)
        mask = torch.zeros(batch, width, dtype=torch.bool, device=device)
        mask[:, 0] = True  # attention over no token would give NaN
        encoded = decoder.memory(Shape(batch, 1, 0, width)).cross
        # The work must not refer to `self`: in a reference cycle, memory would wait for the garbage collector.
        self._program = executor.program(lambda: encoded.copy_(decoder.encode(source, mask)))
        self.source, self.mask, self.encoded = source, mask, encoded

    def __call__(self, source: Tensor, mask: Tensor) -> Tensor:
        """Return the keys and values [B', S', L, 2, H, d_k] of source and mask [B', S'], which fit the static shape."""
        batch, width = source.shape
        self.mask[:batch] = False
        self.source[:batch, :width] = source
        self.mask[:batch, :width] = mask
        self._program.replay()
        return self.encoded[:batch, :width].clone()


class StaticPool:
    """Pool of static batches, encoders and their programs, which are reused. Owned by one thread.

    Static batches are reused by their bucketed shape. Programs also depend on the features in use and on the columns
    that are read. The pool has weak references to borrowers: the static batch of a borrower that no longer exists, for
    example because its step raised an exception, is reclaimed.
    """

    def __init__(self, decoder: StaticDecoder, special: SpecialIds, executor: Executor, limits: GraphLimits) -> None:
        self.decoder = decoder
        self.special = special
        self.executor = executor
        self.limits = limits
        self.programs: OrderedDict[tuple[StaticBatch, Features, Filters, int], Program] = OrderedDict()
        self.idle: list[StaticBatch] = []  # least recently used first
        self.lent: list[tuple[ReferenceType[object], StaticBatch]] = []
        self._encoders: OrderedDict[tuple[int, int], StaticEncoder] = OrderedDict()

    @property
    def idle_bytes(self) -> int:
        return sum(static.bytes for static in self.idle)

    def lend(self, borrower: object, shape: Shape, beams: bool) -> StaticBatch:
        """Return a static batch without sentences. The pool reclaims it when the borrower no longer exists."""
        self._reclaim()
        for static in reversed(self.idle):
            if static.shape == shape and static.beams == beams:
                self.idle.remove(static)
                break
        else:
            self._evict(self.limits.idle_bytes - self.decoder.bytes(shape))
            static = StaticBatch(self.decoder, shape, beams, self.special)
        self.lent.append((ref(borrower), static))
        return static

    def give_back(self, static: StaticBatch) -> None:
        """Return a static batch to the pool."""
        self.lent = [(borrower, lent) for borrower, lent in self.lent if lent is not static]
        self.idle.append(static)
        self._evict(self.limits.idle_bytes)

    def program(self, static: StaticBatch, features: Features, filters: Filters, columns: int) -> Program:
        """Return the program of a step from the cache, or a new program."""
        key = (static, features, filters, columns)
        if key not in self.programs:
            if len(self.programs) >= self.limits.programs:
                self.executor.finish()
                self.programs.popitem(last=False)
            self.programs[key] = self.executor.program(static.step(features, filters, columns))
        self.programs.move_to_end(key)
        return self.programs[key]

    def encode(self, source: Tensor, mask: Tensor) -> Tensor:
        """Return the cross-attention keys and values [B, S, L, 2, H, d_k] of source and mask, each [B, S]."""
        batch = bucket(source.shape[0], MIN_SLOTS) if source.shape[0] > 1 else 1
        width = bucket(source.shape[1], MIN_WIDTH)
        if batch * width > GRAPH_TOKENS:
            return self.decoder.encode(source, mask)
        if (batch, width) not in self._encoders:
            if len(self._encoders) >= MAX_ENCODERS:
                self.executor.finish()
                self._encoders.popitem(last=False)
            self._encoders[batch, width] = StaticEncoder(self.decoder, batch, width, self.executor)
        self._encoders.move_to_end((batch, width))
        return self._encoders[batch, width](source, mask)

    def _reclaim(self) -> None:
        """Return the static batches of borrowers that no longer exist to the pool."""
        for borrower, static in list(self.lent):
            if borrower() is None:
                self.give_back(static)

    def _evict(self, idle_bytes: int) -> None:
        """Drop idle static batches and their programs, least recently used first, until `idle_bytes` are left."""
        while self.idle and self.idle_bytes > max(0, idle_bytes):
            self.executor.finish()
            dropped = self.idle.pop(0)
            for key in [key for key in self.programs if key[0] is dropped]:
                del self.programs[key]
