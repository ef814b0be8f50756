"""Static memory of the CUDA backend: tensors with fixed addresses, and programs that run decoder steps on them.

A slot is a place for one sentence. Shapes are those of mt/kernels/cuda/static_decoder.py: B slots, S source tokens, L
layers, A vectors [d_k] of keys and values.
"""

import gc
import logging
import math
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Self
from weakref import ReferenceType, ref

import torch
from torch import Tensor

from mt.decoding.beam import BeamSearch
from mt.decoding.constraints import Features
from mt.decoding.greedy import GreedySearch
from mt.decoding.hypothesis import Hypothesis
from mt.decoding.options import SearchOptions, SpecialIds
from mt.decoding.scorer import padded, token_mask
from mt.engine.backends.static_search import StaticBeam, StaticGreedy, tables_of, with_tables
from mt.kernels.cuda.beam_step import beam_step
from mt.kernels.cuda.graphs import Executor, Program
from mt.kernels.cuda.packed_tables import PackedTables, common_part
from mt.kernels.cuda.static_decoder import DecoderMemory, Shape, StaticDecoder

logger = logging.getLogger(__name__)

SLOTS = (1, 8, 32, 64)  # then twice as many; few numbers of slots, because each needs programs of its own
FEWEST_SLOTS = 4  # of a static batch that is no larger than necessary
READ = 32  # least number of columns and width that a program reads
GRAPH_TOKENS = 2048  # padded source tokens up to which the encoder's kernels take less time than their launches
MAX_ENCODERS = 16


def program_slots(count: int) -> int:
    """Return the number of slots of the smallest program that can decode `count` sentences."""
    return next((slots for slots in SLOTS if slots >= count), power_of_two(count))


def power_of_two(size: int, least: int = 1) -> int:
    """Return the smallest power of 2 that is at least `size` and `least`."""
    return max(least, 1 << (size - 1).bit_length())


def bucket(size: int, least: int) -> int:
    """Return the smallest number that is at least `size`, among `least` times 1, 2, 3, 4, 6, 8, 12, 16, ..."""
    above = power_of_two(size, least)
    between = 3 * above // 4
    return between if between >= size and between % least == 0 else above


@dataclass(frozen=True)
class GraphLimits:
    """Limits of a `StaticPool`.

    `bytes` limits the memory of idle static batches. A new static batch is made larger than necessary if it and the
    lent ones together stay below this limit, so that sentences can join without a move. `rows` is the number of decoder
    rows that usually run together. `programs` is the maximum number of programs in the cache.
    """

    bytes: int = 1 << 30
    rows: int = 1024
    programs: int = 256

    @classmethod
    def of(cls, device: torch.device) -> Self:
        """Return limits that allow idle static batches a quarter of the GPU's free memory."""
        return cls() if device.type == "cpu" else cls(torch.cuda.mem_get_info(device)[0] // 4)


@dataclass(frozen=True)
class ProgramKey:
    """Properties in which the programs of one static batch differ.

    `slots`, `columns` and `width` are the numbers of slots, target columns and source tokens that a step reads.
    """

    slots: int
    columns: int
    width: int
    features: Features


class StaticBatch:
    """Static memory for sentences of one kind, and the operations of a decoder step on it.

    The ProgramKey of a program states how many slots it decodes, and how many columns and source tokens it reads. These
    are always the first ones. A slot without a sentence is decoded too, with initial values or with the values of an
    earlier sentence. Its search ends at the latest when its tables are full, and its results are not read.
    """

    def __init__(
        self, decoder: StaticDecoder, shape: Shape, beams: bool, special: SpecialIds, executor: Executor
    ) -> None:
        self.shape = shape
        self.beams = beams
        self.decoder = decoder
        self.executor = executor
        self._memory = decoder.memory(shape)
        self._constants = decoder.constants(shape)
        self._search = _empty_search(shape, beams, special)
        self._search.prepare_continuations(decoder.vocabulary)
        tables = tables_of(self._search)
        record = {name: tables.pop(name) for name in self._search.RECORD}
        scratch = {name: tables.pop(name) for name in self._search.SCRATCH}
        separate = {name: tables.pop(name) for name in self._search.SEPARATE}
        self._record_layout, self._layout = PackedTables(record), PackedTables(tables)
        # Copied to the device for a sentence: its slot, packed tables, and tables whose views would not be contiguous.
        source = torch.zeros(1, shape.width, dtype=self._memory.source.dtype)
        sent = {"slot": torch.zeros(1, dtype=torch.int64), **tables, **separate, "source": source}
        self._sent = PackedTables(sent)
        rows = executor.send(self._sent.pack(sent))
        views = self._sent.views(rows)
        self._packed = rows[:, 1 : 1 + self._layout.words].repeat(shape.slots, 1)
        self._record = self._packed.new_zeros(shape.slots, self._record_layout.words)
        self._separate = {name: views[name].repeat(shape.slots, *[1] * (views[name].dim() - 1)) for name in separate}
        self._scratch = {name: rows.new_zeros(shape.slots, *table.shape[1:]) for name, table in scratch.items()}
        self._search.never = executor.send(self._search.never)

    @property
    def bytes(self) -> int:
        tensors = [
            *self._separate.values(),
            *self._scratch.values(),
            self._packed,
            self._record,
            *vars(self._memory).values(),
        ]
        return sum(tensor.nbytes for tensor in tensors)

    @property
    def progress(self) -> Tensor:
        """State of each slot, [B, 2]: the number of steps, and 1 if the sentence is running or 0 if it is finished."""
        return self._separate["progress"]

    def step(self, key: ProgramKey) -> Callable[[], None]:
        """Return a function that decodes one token of each row in the slots that `key` selects."""
        memory = DecoderMemory(**{name: table[: key.slots] for name, table in vars(self._memory).items()})
        memory.cross, memory.source = memory.cross[:, : key.width], memory.source[:, : key.width]
        search = with_tables(self._search, self._tables(key.slots))
        search.prepare_continuations(self.decoder.vocabulary)
        search.constraints.features = key.features
        if isinstance(search, StaticBeam):
            search.kernel = beam_step(self.shape.rows, search.special, self.executor.device)

        def work() -> None:
            steps = search.progress[:, 0]
            logits = self.decoder.step(memory, search.latest, steps, key.columns, self._constants)
            rows = search.advance(logits)
            if rows is not None:
                memory.reorder(rows, key.columns)

        return work

    def join(
        self, search: BeamSearch | GreedySearch, cross: Tensor, lengths: Sequence[int], slots: Sequence[int]
    ) -> None:
        """Begin to decode sentences in these slots.

        `cross` [B, S, L, A, d_k] are the cross-attention keys and values of the sources. `lengths` are the numbers of
        tokens of the sources.
        """
        static = StaticBeam.of(search) if isinstance(search, BeamSearch) else StaticGreedy.of(search)
        source = torch.zeros(len(slots), self.shape.width, dtype=self._memory.source.dtype)
        source.masked_fill_(torch.arange(self.shape.width) >= torch.tensor(lengths)[:, None], -math.inf)
        sent = self._sent.pack({"slot": torch.tensor(slots), "source": source, **tables_of(static)})
        rows = self.executor.send(sent)
        views, at = self._sent.views(rows), rows[:, 0]
        self._memory.clear(at)
        self._packed.index_copy_(0, at, rows[:, 1 : 1 + self._layout.words])
        for name, table in self._separate.items():
            table.index_copy_(0, at, views[name])
        self._memory.source.index_copy_(0, at, views["source"])
        self._memory.cross[:, : cross.shape[1]].index_copy_(0, at, cross)

    def move(self, other: Self, old: Sequence[int], new: Sequence[int]) -> None:
        """Copy the sentences in the slots `old` of `other` to the free slots `new` of this batch.

        Both may be the same batch.
        """
        source, target = self.executor.send(torch.tensor([old, new])).unbind(0)
        self._memory.clear(target)
        pairs = [(table, getattr(self._memory, name)) for name, table in vars(other._memory).items()]
        tables = self._tables(self.shape.slots)
        pairs += [(table, tables[name]) for name, table in other._tables(other.shape.slots).items()]
        for table, into in pairs:
            part = common_part(table, into)
            into[part].index_copy_(0, target, table[part].index_select(0, source))

    def results(
        self, slots: Sequence[int], steps: Sequence[int], last: Sequence[int], options: Sequence[SearchOptions]
    ) -> list[list[Hypothesis]]:
        """Return the hypotheses of the finished sentences in these slots, best first.

        `steps` are the steps after which the sentences finished, and `last` the steps at which they had to end.
        """
        record = self._record_layout.views(self.executor.select(self._record, slots))
        return self._search.hypotheses(record, steps, last, options)

    def _tables(self, slots: int) -> dict[str, Tensor]:
        """Return the tensors of the search, by name, for the first `slots` slots."""
        record = self._record_layout.views(self._record[:slots])
        separate = {name: table[:slots] for name, table in {**self._separate, **self._scratch}.items()}
        return {**self._layout.views(self._packed[:slots]), **record, **separate}


def _empty_search(shape: Shape, beams: bool, special: SpecialIds) -> StaticBeam | StaticGreedy:
    """Return a search on the CPU with one slot, whose tensors are large enough for every sentence that fits `shape`."""
    length = shape.columns - 1
    common = SearchOptions(max_length=length, max_length_offset=length, max_length_factor=0.0, no_repeat_ngram=1)
    prefix = (special.unk,) * (length - 1)
    host = torch.device("cpu")
    if beams:
        options = replace(common, beam_size=shape.rows)
        return StaticBeam.of(BeamSearch.start([1], [options], [prefix], special, host))
    options = replace(common, beam_size=1)
    return StaticGreedy.of(GreedySearch.start([1], [options], [prefix], special, host))


class StaticEncoder:
    """Static memory for `batch` sources of `width` tokens, with a program that encodes them."""

    def __init__(self, decoder: StaticDecoder, batch: int, width: int, executor: Executor) -> None:
        inputs = torch.zeros(2, batch, width, dtype=torch.int64, device=executor.device)
        encoded = decoder.memory(Shape(batch, 1, 0, width)).cross
        # The work must not refer to `self`: in a reference cycle, memory would wait for the garbage collector.
        self._program = executor.program(lambda: encoded.copy_(decoder.encode(inputs[0], inputs[1].bool())))
        self._executor, self._inputs, self._encoded = executor, inputs, encoded

    def __call__(self, inputs: Tensor, count: int) -> Tensor:
        """Return the keys and values [count, S, L, A, d_k] of the first `count` sources.

        `inputs` [2, B, S] is on the CPU. inputs[0] are the ids, and inputs[1] is 1 on tokens and 0 on padding.
        """
        self._executor.send(inputs, into=self._inputs)
        self._program()
        return self._encoded[:count].clone()


class StaticPool:
    """Pool of static batches, encoders and their programs for reuse. One thread owns it.

    The pool has weak references to the borrowers of static batches. If a borrower no longer exists, for example because
    a step raised an exception, the pool takes its static batch back.
    """

    def __init__(self, decoder: StaticDecoder, special: SpecialIds, executor: Executor, limits: GraphLimits) -> None:
        self.decoder = decoder
        self.special = special
        self.executor = executor
        self.limits = limits
        self.programs: OrderedDict[tuple[StaticBatch, ProgramKey], Program] = OrderedDict()
        self.idle: list[StaticBatch] = []  # least recently used first
        self.lent: list[tuple[ReferenceType[object], StaticBatch]] = []
        self._encoders: OrderedDict[tuple[int, int], StaticEncoder] = OrderedDict()
        self._short = False  # a step failed for lack of memory since the last call of `reclaim`

    @property
    def idle_bytes(self) -> int:
        return sum(static.bytes for static in self.idle)

    def lend(self, borrower: object, needed: Shape, beams: bool) -> StaticBatch:
        """Return a static batch that can hold sentences of the shape `needed`.

        The pool reclaims it when `borrower` is gone. A new static batch has slots for all rows that usually run
        together, if memory suffices.
        """
        self.reclaim()
        fitting = [static for static in self.idle if static.beams == beams and static.shape.contains(needed)]
        if fitting:
            static = fitting[-1]
            self.idle.remove(static)
        else:
            static = self._create(needed, beams)
        self.lent.append((ref(borrower), static))
        return static

    def give_back(self, static: StaticBatch) -> None:
        """Take back a lent static batch."""
        self.lent = [(borrower, lent) for borrower, lent in self.lent if lent is not static]
        self.idle.append(static)
        self._evict(self.limits.bytes)

    def shrink(self) -> None:
        """Take less memory from now on, after a step of a lent static batch failed for lack of memory.

        Static batches then take half of what they take now, so that the failed one is dropped when it comes back.
        """
        lent = sum(static.bytes for _, static in self.lent)
        self.limits = replace(self.limits, bytes=min(self.limits.bytes, lent // 2))
        self._short = True
        logger.warning("the GPU is out of memory: static batches may take %d MB from now on", self.limits.bytes >> 20)

    def program(self, static: StaticBatch, key: ProgramKey) -> Program:
        """Return the program for a step of `static`, from the cache if possible."""
        if (static, key) not in self.programs:
            if len(self.programs) >= self.limits.programs:
                self.executor.finish()
                self.programs.popitem(last=False)
            self.programs[static, key] = self.executor.program(static.step(key))
        self.programs.move_to_end((static, key))
        return self.programs[static, key]

    def encode(self, sources: Sequence[Sequence[int]]) -> Tensor:
        """Return the cross-attention keys and values [B, S', L, A, d_k] of B sources.

        S' is at least the longest source length.
        """
        count, width = program_slots(len(sources)), power_of_two(max(map(len, sources)), READ)
        graph = count * width <= GRAPH_TOKENS
        inputs = torch.full((2, count if graph else len(sources), width), self.special.pad)
        inputs[1] = torch.arange(width) == 0  # attention over no token would give NaN
        host, longest = torch.device("cpu"), max(map(len, sources))
        inputs[0, : len(sources), :longest] = padded(sources, self.special.pad, host)
        inputs[1, : len(sources), :longest] = token_mask(sources, host)
        if not graph:
            sent = self.executor.send(inputs)
            return self.decoder.encode(sent[0], sent[1].bool())
        if (count, width) not in self._encoders:
            if len(self._encoders) >= MAX_ENCODERS:
                self.executor.finish()
                self._encoders.popitem(last=False)
            self._encoders[count, width] = StaticEncoder(self.decoder, count, width, self.executor)
        self._encoders.move_to_end((count, width))
        return self._encoders[count, width](inputs, len(sources))

    def _create(self, needed: Shape, beams: bool) -> StaticBatch:
        """Return a new static batch of the largest shape for which the device has memory.

        `GraphLimits.bytes` follows from the memory that was free when the model was loaded. Other programs may have
        taken it since then.

        Raises:
            OutOfMemoryError: The device has no memory for the shape `needed`.
        """
        for shape in self._shapes(needed):
            self._evict(self.limits.bytes - self.decoder.bytes(shape))
            with suppress(torch.OutOfMemoryError):
                return StaticBatch(self.decoder, shape, beams, self.special, self.executor)
            self._evict(0)
            self.executor.release()
        return StaticBatch(self.decoder, needed, beams, self.special, self.executor)

    def _shapes(self, needed: Shape) -> list[Shape]:
        """Return shapes of a new static batch with more slots than `needed`, in the order in which they are tried.

        The first choice is slots for all rows that usually run together, the second is program_slots(needed.slots)
        slots. These are possible if lent batches, with the new one, stay below `GraphLimits.bytes`. The last choice has
        one of few numbers of slots, so that the next batch, of another size, finds its programs.
        """
        lent = sum(static.bytes for _, static in self.lent)
        minimum = program_slots(needed.slots)
        slots = (max(minimum, program_slots(self.limits.rows // needed.rows)), minimum)
        shapes = [replace(needed, slots=count) for count in slots]
        shapes = [shape for shape in shapes if lent + self.decoder.bytes(shape) <= self.limits.bytes]
        return list(dict.fromkeys([*shapes, replace(needed, slots=bucket(needed.slots, FEWEST_SLOTS))]))

    def reclaim(self) -> None:
        """Take back the static batches of borrowers that no longer exist."""
        for borrower, static in list(self.lent):
            if borrower() is None:
                self.give_back(static)
        if self._short:
            self._evict(0)
            gc.collect()  # the frames of the exception may be in a reference cycle with the tensors of the failed step
            self.executor.release()
            self._short = False

    def _evict(self, idle_bytes: int) -> None:
        """Drop the least recently used idle static batches until the remaining idle ones take at most `idle_bytes`.

        The programs of a dropped static batch are dropped too.
        """
        while self.idle and self.idle_bytes > max(0, idle_bytes):
            self.executor.finish()
            dropped = self.idle.pop(0)
            for key in [key for key in self.programs if key[0] is dropped]:
                del self.programs[key]
