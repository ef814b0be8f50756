"""Many machines at one file: a process for each GPU of a Ray cluster, or for some cores, each with the whole model.

They are given chunks of lines, and what comes back is put in order. Each chunk is taken from one of them once: if a
process dies, or its machine, what it had is given to another one, and the process starts again where there is room.
"""

import argparse
import logging
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from platform import node
from types import TracebackType
from typing import Any, Protocol, Self

from mt.data.corpus import Fault
from mt.errors import DataError, ModelError, MTError, RequestError, problems
from mt.text.terms import Terms

from .lines import Job, Line

try:
    import ray
    from ray.exceptions import ObjectLostError, RayActorError, RayTaskError
except ModuleNotFoundError:  # an optional dependency: `Crew` says so
    ray = None

CHUNK = 1000  # lines: enough that the last sentences of a chunk, which fill no batch, cost little
AT_A_TIME = 2  # chunks that a worker is given: the next is there when one is done
HELD = 8  # times as many chunks as workers may wait for one that comes before them
DEATHS = 3  # of workers that a chunk is given to

Ref = Any  # stands for what will be there


class WorkerDied(Exception):
    """What it was given has to be done again."""


@dataclass(frozen=True)
class Chunk:
    """Lines that follow each other; the number of the first one counts from 1."""

    first: int
    lines: tuple[str | Fault, ...]


class Worker(Protocol):
    """Neither waits."""

    def begin(self, chunk: Chunk) -> Ref:
        """What becomes of the chunk: a list of lines."""

    def there(self) -> Ref:
        """That the worker lives, or lives again."""


class Arrivals(Protocol):
    """What has been begun somewhere."""

    def next(self, refs: Sequence[Ref]) -> Ref:
        """The first of these that is there."""

    def take(self, ref: Ref) -> list[Line]:
        """What is there. Raises WorkerDied."""


def chunks(lines: Iterable[str | Fault], first: int, size: int = CHUNK) -> Iterator[Chunk]:
    """Raises DataError where the input cannot be read further, after all that could be."""
    held: list[str | Fault] = []
    problem = ""
    for line in lines:
        if isinstance(line, Fault) and line.fatal:
            problem = line.text
            break
        held.append(line)
        if len(held) == size:
            yield Chunk(first, tuple(held))
            first, held = first + size, []
    if held:
        yield Chunk(first, tuple(held))
    if problem:
        raise DataError(problem)


class Dispatch:
    """Who has which chunk. A worker is given some once it is known to be there, and again when it is there again."""

    def __init__(self, given: Iterator[Chunk], workers: Sequence[Worker], arrivals: Arrivals) -> None:
        self._given = given
        self._arrivals = arrivals
        self._most = HELD * len(workers)
        self._free: deque[Worker] = deque()
        self._busy: dict[Ref, tuple[Worker, int, Chunk | None]] = {
            worker.there(): (worker, 0, None) for _ in range(AT_A_TIME) for worker in workers
        }
        self._begun = self._passed = 0  # chunks, counted in the order of the input
        self._again: deque[tuple[int, Chunk]] = deque()
        self._deaths: Counter[int] = Counter()
        self._done: dict[int, list[Line]] = {}
        self._problem: DataError | None = None  # where the input ends, perhaps

    def lines(self) -> Iterator[Line]:
        """Of all chunks, in order. Raises DataError."""
        while True:
            while self._free and (found := self._next()):
                number, chunk = found
                worker = self._free.popleft()
                self._busy[worker.begin(chunk)] = worker, number, chunk
            if self._free and all(chunk is None for _, _, chunk in self._busy.values()):
                break
            self._settle(self._arrivals.next(list(self._busy)))
            while self._passed in self._done:
                yield from self._done.pop(self._passed)
                self._passed += 1
        if self._problem:
            raise self._problem

    def _next(self) -> tuple[int, Chunk] | None:
        """A chunk that somebody is to have, if there may be one."""
        if self._again:
            return self._again.popleft()
        if self._problem or self._begun - self._passed >= self._most:
            return None
        try:
            chunk = next(self._given, None)
        except DataError as error:
            self._problem = error
            return None
        if chunk is None:
            return None
        self._begun += 1
        return self._begun - 1, chunk

    def _settle(self, ref: Ref) -> None:
        worker, number, chunk = self._busy.pop(ref)
        try:
            found = self._arrivals.take(ref)
        except WorkerDied:
            self._busy[worker.there()] = worker, 0, None
            if chunk is not None:
                self._deaths[number] += 1
                if self._deaths[number] > DEATHS:
                    last = chunk.first + len(chunk.lines) - 1
                    raise DataError(
                        f"lines {chunk.first:,} to {last:,}: {self._deaths[number]} workers that were given them died; "
                        "accepted: lines that can be translated; what comes before them is done"
                    ) from None
                self._again.append((number, chunk))
            return
        self._free.append(worker)
        if chunk is not None:
            self._done[number] = found


class Hand:
    """A worker's side: it loads the model when it is first asked something, and so again when it starts again."""

    def __init__(self, options: argparse.Namespace, terms: Terms) -> None:
        self._options = options
        self._terms = terms

    def fingerprint(self) -> dict[str, Any] | MTError:
        try:
            return self._fingerprint
        except MTError as error:
            return error

    def there(self) -> list[Line]:
        return []

    def lines(self, chunk: Chunk, expected: Mapping[str, Any]) -> list[Line]:
        """Raises ModelError if its fingerprint is not the expected one: each machine reads a model of its own."""
        _refuse_another(self._fingerprint, expected)
        return list(self._job.lines(iter(chunk.lines), chunk.first, typed=False))

    @cached_property
    def _fingerprint(self) -> dict[str, Any]:
        return self._job.fingerprint()

    @cached_property
    def _job(self) -> Job:
        return Job.load(self._options, self._terms)


def _refuse_another(found: Mapping[str, Any], expected: Mapping[str, Any]) -> None:
    others = [
        f"{name} is {found.get(name)}; accepted: {expected.get(name)}, as where the first worker is"
        for name in {**expected, **found}
        if found.get(name) != expected.get(name)
    ]
    if others:
        raise ModelError(problems(f"machine {node()} would translate otherwise than the first one", others))


@dataclass(frozen=True)
class Remote:
    """A Hand, as this process sees it."""

    actor: Any
    fingerprint: Mapping[str, Any]  # that it is to have, even when it starts again

    def begin(self, chunk: Chunk) -> Ref:
        return self.actor.lines.remote(chunk, self.fingerprint)

    def there(self) -> Ref:
        return self.actor.there.options(max_task_retries=-1).remote()


class Crew:
    """All workers that a cluster has room for, as long as it is entered; a Job to those who ask it."""

    def __init__(self, options: argparse.Namespace, terms: Terms) -> None:
        """`options.ray` is the address of the cluster."""
        self._options = options
        self._terms = terms
        self._hands: list[Any] = []

    def __enter__(self) -> Self:
        """Raises RequestError."""
        if ray is None:
            raise RequestError("ray is not installed; accepted: pip install 'mt-service[ray]'")
        address = self._options.ray
        try:
            ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
        except (ConnectionError, RuntimeError, ValueError) as error:
            told = "accepted: auto, or HOST:PORT; `ray start --head` makes one"
            raise RequestError(f"--ray {address}: no cluster there: {error}; {told}") from error
        self._hands = self._hired(ray.cluster_resources())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        ray.shutdown()  # which ends the workers

    def fingerprint(self) -> dict[str, Any]:
        """As the first worker that is there has it, and all are to have it. Raises MTError."""
        return self._fingerprint

    @cached_property
    def _fingerprint(self) -> dict[str, Any]:
        asked = [hand.fingerprint.options(max_task_retries=-1).remote() for hand in self._hands]
        found: dict[str, Any] | MTError = ray.get(self.next(asked))
        if isinstance(found, MTError):
            raise found
        return found

    def lines(self, given: Iterator[str | Fault], first: int, typed: bool) -> Iterator[Line]:
        """Those that are typed wait until there are enough for a chunk, or no more."""
        workers = [Remote(hand, self._fingerprint) for hand in self._hands]
        return Dispatch(chunks(given, first), workers, self).lines()

    def next(self, refs: Sequence[Ref]) -> Ref:
        (found,), _ = ray.wait(list(refs), num_returns=1)
        return found

    def take(self, ref: Ref) -> list[Line]:
        try:
            found: list[Line] = ray.get(ref)
        except (RayActorError, ObjectLostError) as error:  # large results stay on the worker's machine until fetched
            raise WorkerDied from error
        except RayTaskError as error:
            raise error.cause from None
        return found

    def _hired(self, there: Mapping[str, float]) -> list[Any]:
        """One for each GPU if there are some, or else for so many cores as one is to have. Raises RequestError."""
        device, cores = self._options.device, self._options.threads or 1
        if device not in ("auto", "cpu", "cuda"):
            raise RequestError(f"--device is {device!r}; accepted with --ray: auto, cpu or cuda")
        gpus = int(there.get("GPU", 0)) if device != "cpu" else 0
        if device == "cuda" and not gpus:
            raise RequestError("--device is 'cuda', and there is no GPU in the cluster; accepted: auto or cpu")
        options = argparse.Namespace(**vars(self._options))
        options.device, options.threads = ("cuda" if gpus else "cpu"), cores
        actor = ray.remote(Hand).options(num_cpus=cores, num_gpus=int(gpus > 0), max_restarts=-1)
        return [actor.remote(options, self._terms) for _ in range(gpus or max(1, int(there.get("CPU", 0)) // cores))]
