"""The inside of a contender: a process that loads one translator, then answers timed jobs, a JSON line each.

It imports neither `mt` nor torch, so that a contender's memory and start-up time are those of its own library.
Between jobs it is blocked on stdin. What libraries print goes to stderr, which the parent keeps as a log.
"""

import json
import os
import resource
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol, TextIO


@dataclass(frozen=True)
class Setup:
    """What a contender loads. `lengths`, if given, are the target tokens that each line must have, no more, no fewer.

    `workers` sentences' batches are translated at a time, each by `threads` threads.
    """

    model: str
    source: str  # a file, a sentence a line
    dtype: str = "float32"
    workers: int = 1
    threads: int = 1
    lengths: tuple[int, ...] = ()
    device: str = "cpu"  # or cuda


@dataclass(frozen=True)
class Batching:
    """How a peer is told to cut batches; size 0 where it is not told: ours, or single sentences."""

    size: int = 0
    unit: str = "examples"  # or tokens: CTranslate2's names


@dataclass(frozen=True)
class Job:
    """The first `sentences` lines; one at a time if `single`; from text to text if `text`, else from ids to ids."""

    beam_size: int
    sentences: int
    single: bool = False
    text: bool = False
    batching: Batching = Batching()
    keep_lines: bool = False


@dataclass(frozen=True)
class Answer:
    """`tokens` are target tokens with the end; `latencies` are seconds, one a sentence, where they ran singly."""

    seconds: float
    cpu_seconds: float
    tokens: int
    peak_bytes: int
    latencies: tuple[float, ...] = ()
    lines: tuple[str, ...] = ()


@dataclass(frozen=True)
class Search:
    """What every contender searches for: n-best 1, scores divided by length, 2 x source + 10 tokens at most.

    `forced` has the length that each translation must have, or nothing.
    """

    beam_size: int
    batching: Batching = Batching()
    forced: tuple[int, ...] = ()

    def longest(self, source_tokens: int) -> int:
        return 2 * source_tokens + 10

    def groups(self, count: int) -> Iterator[tuple[int, list[int]]]:
        """For those who force one length a batch: each length and the places that want it, longest first.

        Without forced lengths there is one group, whose length is 0.
        """
        lengths = self.forced or (0,) * count
        for length in sorted(set(lengths), reverse=True):
            yield length, [place for place in range(count) if lengths[place] == length]


class Peer(Protocol):
    """One library with one model."""

    def encode(self, line: str) -> list[Any]:
        """The source tokens of a line, in the library's own form."""

    def translate(self, sources: Sequence[list[Any]], search: Search) -> list[list[Any]]:
        """Target tokens of each source, without the end, in the order of the sources."""

    def translate_text(self, lines: Sequence[str], search: Search) -> list[str]:
        """The same from text to text, as a user of the library would do it."""

    def decode(self, tokens: list[Any]) -> str:
        """Text of target tokens."""


@dataclass
class Bench:
    """A peer, its lines, and the clock."""

    peer: Peer
    setup: Setup
    lines: list[str]
    sources: list[list[Any]] = field(default_factory=list)

    def run(self, job: Job) -> Answer:
        """The clock runs from the first source in to the last translation out."""
        lines, sources = self.lines[: job.sentences], self.sources[: job.sentences]
        search = Search(job.beam_size, job.batching, self.setup.lengths[: job.sentences])
        cpu, begun = cpu_seconds(), time.perf_counter()
        if job.text:
            texts, latencies = self._texts(lines, search, job.single)
            seconds, cpu = time.perf_counter() - begun, cpu_seconds() - cpu
            return Answer(seconds, cpu, 0, peak_bytes(), latencies, tuple(texts) if job.keep_lines else ())
        targets, latencies = self._ids(sources, search, job.single)
        seconds, cpu = time.perf_counter() - begun, cpu_seconds() - cpu
        kept = tuple(map(self.peer.decode, targets)) if job.keep_lines else ()
        tokens = sum(search.forced) if search.forced else sum(len(target) + 1 for target in targets)
        return Answer(seconds, cpu, tokens, peak_bytes(), latencies, kept)

    def _ids(
        self, sources: Sequence[list[Any]], search: Search, single: bool
    ) -> tuple[list[list[Any]], tuple[float, ...]]:
        if not single:
            return self.peer.translate(sources, search), ()
        found, latencies = [], []
        for place, source in enumerate(sources):
            alone = one(search, place)
            begun = time.perf_counter()
            found += self.peer.translate([source], alone)
            latencies.append(time.perf_counter() - begun)
        return found, tuple(latencies)

    def _texts(self, lines: Sequence[str], search: Search, single: bool) -> tuple[list[str], tuple[float, ...]]:
        if not single:
            return self.peer.translate_text(lines, search), ()
        found, latencies = [], []
        for place, line in enumerate(lines):
            alone = one(search, place)
            begun = time.perf_counter()
            found += self.peer.translate_text([line], alone)
            latencies.append(time.perf_counter() - begun)
        return found, tuple(latencies)


def one(search: Search, place: int) -> Search:
    """The search of one sentence of many."""
    return Search(search.beam_size, search.batching, search.forced[place : place + 1])


def sorted_batches(sources: Sequence[list[Any]], places: Sequence[int], batching: Batching) -> Iterator[list[int]]:
    """Places in batches of at most `size` sentences, or of padded source tokens; longest first."""
    batch: list[int] = []
    for place in sorted(places, key=lambda place: -len(sources[place])):
        grown = len(batch) + 1
        if batch and grown * (len(sources[batch[0]]) if batching.unit == "tokens" else 1) > batching.size:
            yield batch
            batch = []
        batch.append(place)
    if batch:
        yield batch


def cpu_seconds() -> float:
    """Processor time of this process so far, all threads."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def peak_bytes() -> int:
    """The most memory that this process has held.

    Linux's VmHWM, since ru_maxrss starts from the peak of the process that started this one.
    """
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def to_job(values: dict[str, Any]) -> Job:
    return Job(**{**values, "batching": Batching(**values["batching"])})


def to_setup(values: dict[str, Any]) -> Setup:
    return Setup(**{**values, "lengths": tuple(values["lengths"])})


def attend(load: Callable[[Setup], Peer]) -> None:
    """The life of a contender: the setup comes on stdin, then jobs until stdin ends. An error is an answer, too."""
    answers = _own_stdout()
    try:
        setup = to_setup(json.loads(sys.stdin.readline()))
        bench = _prepared(load, setup)
        _say(answers, {"ready": setup.dtype})
    except Exception:
        _say(answers, {"error": traceback.format_exc()})
        return
    for line in sys.stdin:
        try:
            _say(answers, asdict(bench.run(to_job(json.loads(line)))))
        except Exception:
            _say(answers, {"error": traceback.format_exc()})


def _prepared(load: Callable[[Setup], Peer], setup: Setup) -> Bench:
    """Loaded, and one sentence translated: then a user's first answer would have come."""
    lines = Path(setup.source).read_text(encoding="utf-8").splitlines()
    peer = load(setup)
    bench = Bench(peer, setup, lines)
    peer.translate([peer.encode(lines[0])], Search(1, forced=setup.lengths[:1]))
    bench.sources = [peer.encode(line) for line in lines]
    return bench


def _own_stdout() -> TextIO:
    """The pipe to the parent, for answers only; from now on, what anybody prints goes to stderr."""
    sys.stdout.flush()
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return answers


def _say(answers: TextIO, message: dict[str, Any]) -> None:
    answers.write(json.dumps(message) + "\n")
    answers.flush()
