"""Translation of a file on a Ray cluster, by several processes: one for each GPU or for each group of cores.

Each process loads the model and translates chunks of lines. The result of each line is written once, in the order of
the lines. If a process or its machine dies, other processes translate its chunks, and Ray starts a new process on a
machine with free resources.
"""

import argparse
import logging
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from platform import node
from typing import Any, Protocol, Self

from mt.cli.translation_job import OutputLine, TranslationJob
from mt.data.corpus import Fault
from mt.errors import DataError, ModelError, MTError, RequestError, problems
from mt.text.terms import Terms

try:
    import ray
    from ray.exceptions import ObjectLostError, RayActorError, RayTaskError
except ModuleNotFoundError:  # an optional dependency; RayCluster reports that it is missing
    ray = None

CHUNK_LINES = 1000  # large enough that the last, incomplete batches of a chunk cost little
CHUNKS_A_WORKER = 2  # number of chunks sent to a worker in advance, so that it need not wait between two chunks
MAX_OPEN_CHUNKS = 8  # per worker: maximum number of chunks that were read but not yet written
MAX_DEATHS = 3  # number of workers that may die while they translate the same chunk

Ref = Any  # ray.ObjectRef: a reference to a future result


class ChunkLostError(Exception):
    """Raised if a worker process died before the result of its chunk was fetched."""


@dataclass(frozen=True)
class Chunk:
    """Consecutive lines of the input. `first` is the number of the first of them, counted from 1."""

    first: int
    lines: tuple[str | Fault, ...]


class ChunkWorkers(Protocol):
    """Worker processes that translate chunks. They are numbered from 0. Only the method `wait` blocks."""

    @property
    def size(self) -> int:
        """Return the number of workers."""

    def start(self, worker: int, chunk: Chunk) -> Ref:
        """Let a worker translate a chunk. Return a reference to the result, a list of output lines."""

    def ping(self, worker: int) -> Ref:
        """Ask a worker for an empty result, which arrives as soon as its process runs. Return a reference to it."""

    def wait(self, refs: Sequence[Ref]) -> Ref:
        """Wait until one of the results `refs` arrives, and return its reference."""

    def result(self, ref: Ref) -> list[OutputLine]:
        """Fetch and return a result that has arrived.

        Raises: ChunkLostError if the worker died before the result was fetched.
        """


def read_chunks(lines: Iterable[str | Fault], first: int, size: int = CHUNK_LINES) -> Iterator[Chunk]:
    """Yield `lines` in chunks of `size` lines. `first` is the number of the first line.

    Raises: DataError at a fatal Fault, after all lines before it have been yielded.
    """
    pending: list[str | Fault] = []
    problem = ""
    for line in lines:
        if isinstance(line, Fault) and line.fatal:
            problem = line.text
            break
        pending.append(line)
        if len(pending) == size:
            yield Chunk(first, tuple(pending))
            first, pending = first + size, []
    if pending:
        yield Chunk(first, tuple(pending))
    if problem:
        raise DataError(problem)


class ChunkDispatcher:
    """Distributes chunks among workers, and yields the results in the order of the chunks.

    A worker gets chunks only after it has answered a ping, that is, when its process runs.
    """

    def __init__(self, chunks: Iterator[Chunk], workers: ChunkWorkers) -> None:
        self._chunks = chunks
        self._workers = workers
        self._free: deque[int] = deque()
        self._busy: dict[Ref, tuple[int, int, Chunk | None]] = {  # worker, number of the chunk, chunk (None: a ping)
            workers.ping(worker): (worker, 0, None) for _ in range(CHUNKS_A_WORKER) for worker in range(workers.size)
        }
        self._read = self._yielded = 0  # number of chunks
        self._lost: deque[tuple[int, Chunk]] = deque()
        self._deaths: Counter[int] = Counter()  # worker deaths by number of the chunk
        self._finished: dict[int, list[OutputLine]] = {}
        self._problem: DataError | None = None  # raised after the last readable line

    def lines(self) -> Iterator[OutputLine]:
        """Yield the output lines of all chunks, in order.

        Raises:
            DataError: if reading the input fails, or more than MAX_DEATHS workers died on the same chunk.
        """
        while True:
            while self._free and (numbered := self._next_chunk()):
                number, chunk = numbered
                worker = self._free.popleft()
                self._busy[self._workers.start(worker, chunk)] = worker, number, chunk
            if self._free and all(chunk is None for _, _, chunk in self._busy.values()):
                break
            self._collect(self._workers.wait(list(self._busy)))
            while self._yielded in self._finished:
                yield from self._finished.pop(self._yielded)
                self._yielded += 1
        if self._problem:
            raise self._problem

    def _next_chunk(self) -> tuple[int, Chunk] | None:
        """Return (number, chunk) of the next chunk to translate. Return None if there is none.

        A chunk that a dead worker lost comes first. No new chunk is read while too many chunks are unfinished.
        """
        if self._lost:
            return self._lost.popleft()
        if self._problem or self._read - self._yielded >= MAX_OPEN_CHUNKS * self._workers.size:
            return None
        try:
            chunk = next(self._chunks, None)
        except DataError as error:
            self._problem = error
            return None
        if chunk is None:
            return None
        self._read += 1
        return self._read - 1, chunk

    def _collect(self, ref: Ref) -> None:
        worker, number, chunk = self._busy.pop(ref)
        try:
            lines = self._workers.result(ref)
        except ChunkLostError:
            self._busy[self._workers.ping(worker)] = worker, 0, None
            if chunk is not None:
                self._retry(number, chunk)
            return
        self._free.append(worker)
        if chunk is not None:
            self._finished[number] = lines

    def _retry(self, number: int, chunk: Chunk) -> None:
        self._deaths[number] += 1
        if self._deaths[number] > MAX_DEATHS:
            last = chunk.first + len(chunk.lines) - 1
            raise DataError(
                f"lines {chunk.first:,} to {last:,}: {self._deaths[number]} workers died while they translated these "
                "lines. The earlier lines are written. Remove the faulty line and run the command again"
            ) from None
        self._lost.append((number, chunk))


class ClusterWorker:
    """Worker process of the cluster. The model is loaded when it is first needed, also after a restart by Ray."""

    def __init__(self, options: argparse.Namespace, terms: Terms) -> None:
        self._options = options
        self._terms = terms

    def fingerprint(self) -> dict[str, Any] | MTError:
        """Return `TranslationJob.fingerprint()`, or the error if the model cannot be loaded."""
        try:
            return self._fingerprint
        except MTError as error:
            return error

    def ping(self) -> list[OutputLine]:
        return []

    def translate(self, chunk: Chunk, expected: Mapping[str, Any]) -> list[OutputLine]:
        """Return the output lines of a chunk.

        Raises:
            ModelError: if the fingerprint on this machine differs from `expected`, that of the first machine.
        """
        differences = [
            f"{name} is {self._fingerprint.get(name)}; accepted: {expected.get(name)}, the value on the first machine"
            for name in {**expected, **self._fingerprint}
            if self._fingerprint.get(name) != expected.get(name)
        ]
        if differences:
            raise ModelError(
                problems(f"machine {node()} would translate differently from the first machine", differences)
            )
        return list(self._job.translate(iter(chunk.lines), chunk.first, interactive=False))

    @cached_property
    def _fingerprint(self) -> dict[str, Any]:
        return self._job.fingerprint()

    @cached_property
    def _job(self) -> TranslationJob:
        return TranslationJob.load(self._options, self._terms)


def connect(address: str) -> None:
    """Connect to the cluster at `address`. Raises: RequestError if ray is not installed or no cluster answers."""
    if ray is None:
        raise RequestError("ray is not installed. Run pip install 'mt-service[ray]'")
    try:
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
    except (ConnectionError, RuntimeError, ValueError) as error:
        accepted = "accepted: auto or HOST:PORT. `ray start --head` starts a cluster"
        raise RequestError(f"--ray {address}: no cluster answers at this address: {error}; {accepted}") from error


def disconnect() -> None:
    """Disconnect from the cluster. This also ends its worker processes."""
    ray.shutdown()


class RayCluster:
    """Context manager that runs as many worker processes as the resources of the cluster allow."""

    def __init__(self, options: argparse.Namespace, terms: Terms) -> None:
        """Store the options of the command line. `options.ray` is the address of the cluster."""
        self._options = options
        self._terms = terms
        self._actors: list[Any] = []

    def __enter__(self) -> Self:
        """Connect to the cluster and start the workers.

        Raises: RequestError if ray is not installed, no cluster answers, or the cluster lacks the device of `--device`.
        """
        connect(self._options.ray)
        self._actors = self._start_actors(ray.cluster_resources())
        return self

    def __exit__(self, *error: object) -> None:
        disconnect()

    @property
    def size(self) -> int:
        return len(self._actors)

    def fingerprint(self) -> dict[str, Any]:
        """Return the fingerprint of the first worker that answers. All other workers must have the same fingerprint.

        Raises:
            MTError: if this worker cannot load the model.
        """
        return self._fingerprint

    @cached_property
    def _fingerprint(self) -> dict[str, Any]:
        refs = [actor.fingerprint.options(max_task_retries=-1).remote() for actor in self._actors]
        fingerprint: dict[str, Any] | MTError = ray.get(self.wait(refs))
        if isinstance(fingerprint, MTError):
            raise fingerprint
        return fingerprint

    def translate(self, lines: Iterator[str | Fault], first: int, interactive: bool) -> Iterator[OutputLine]:
        """Yield the output of each line, in order. `interactive` is ignored: all input is translated in chunks.

        Raises:
            DataError: as `ChunkDispatcher.lines` does.
        """
        return ChunkDispatcher(read_chunks(lines, first), self).lines()

    def start(self, worker: int, chunk: Chunk) -> Ref:
        return self._actors[worker].translate.remote(chunk, self._fingerprint)

    def ping(self, worker: int) -> Ref:
        return self._actors[worker].ping.options(max_task_retries=-1).remote()

    def wait(self, refs: Sequence[Ref]) -> Ref:
        (first,), _ = ray.wait(list(refs), num_returns=1)
        return first

    def result(self, ref: Ref) -> list[OutputLine]:
        try:
            lines: list[OutputLine] = ray.get(ref)
        except (RayActorError, ObjectLostError) as error:  # a large result stays on the worker's machine until fetched
            raise ChunkLostError from error
        except RayTaskError as error:
            raise error.cause from None
        return lines

    def _start_actors(self, resources: Mapping[str, float]) -> list[Any]:
        """Start one worker for each GPU or, if there is none, for every `--threads` cores. Return the workers.

        `resources` are the resources of the cluster, such as {"CPU": 16, "GPU": 2}.

        Raises:
            RequestError: if the cluster lacks the device of `--device`.
        """
        device, cores = self._options.device, self._options.threads or 1
        if device not in ("auto", "cpu", "cuda"):
            raise RequestError(f"--device is {device!r}; accepted with --ray: auto, cpu or cuda")
        gpus = int(resources.get("GPU", 0)) if device != "cpu" else 0
        if device == "cuda" and not gpus:
            raise RequestError("--device is 'cuda', but the cluster has no GPU; accepted: auto or cpu")
        options = argparse.Namespace(**vars(self._options))
        options.device, options.threads = ("cuda" if gpus else "cpu"), cores
        actor = ray.remote(ClusterWorker).options(num_cpus=cores, num_gpus=int(gpus > 0), max_restarts=-1)
        number = gpus or max(1, int(resources.get("CPU", 0)) // cores)
        return [actor.remote(options, self._terms) for _ in range(number)]
