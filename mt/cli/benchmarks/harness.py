"""The process of a contender: it loads one translator and runs timed jobs, one JSON line each.

This module imports only the standard library, and modules of `mt` that need nothing else. Memory and start-up time are
therefore the memory and start-up time of the contender's library. Between jobs, the process waits on stdin. Output of
libraries goes to stderr, which is the log.
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
class PeerSetup:
    """Model and settings that a contender loads.

    `lengths` holds the exact number of target tokens of each line, or is empty. `workers` batches are translated at a
    time, with `threads` threads each.
    """

    model: str
    source: str  # a file with one sentence a line
    dtype: str = "float32"
    workers: int = 1
    threads: int = 1
    lengths: tuple[int, ...] = ()
    device: str = "cpu"  # or cuda


@dataclass(frozen=True)
class Batching:
    """Maximum size of the batches of a peer. Size 0: the peer chooses, or it translates single sentences."""

    size: int = 0
    unit: str = "examples"  # unit of CTranslate2's batch size: examples or tokens


@dataclass(frozen=True)
class PeerJob:
    """Job that translates the first `sentences` lines: one at a time if `single`; as text if `text`, else as ids."""

    beam_size: int
    sentences: int
    single: bool = False
    text: bool = False
    batching: Batching = Batching()
    keep_lines: bool = False


@dataclass(frozen=True)
class PeerResult:
    """Result of a job. `tokens` is the number of target tokens with EOS; `latencies` has seconds per sentence."""

    seconds: float
    cpu_seconds: float
    tokens: int
    peak_bytes: int
    latencies: tuple[float, ...] = ()
    lines: tuple[str, ...] = ()


@dataclass(frozen=True)
class PeerSearch:
    """The search of every contender: n-best 1, scores divided by length, at most 2 x source + 10 tokens.

    `forced` is the required length of each translation, or empty.
    """

    beam_size: int
    batching: Batching = Batching()
    forced: tuple[int, ...] = ()

    def longest(self, source_tokens: int) -> int:
        return 2 * source_tokens + 10

    def groups(self, count: int) -> Iterator[tuple[int, list[int]]]:
        """Yield (forced length, indices of its sentences), the longest first. Length 0 means that none is forced."""
        lengths = self.forced or (0,) * count
        for length in sorted(set(lengths), reverse=True):
            yield length, [place for place in range(count) if lengths[place] == length]


class Peer(Protocol):
    """A library with a loaded model."""

    def encode(self, line: str) -> list[Any]:
        """Return the source tokens of a line, in the library's format."""

    def translate(self, sources: Sequence[list[Any]], search: PeerSearch) -> list[list[Any]]:
        """Return the target tokens of each source, without EOS, in the order of the sources."""

    def translate_text(self, lines: Sequence[str], search: PeerSearch) -> list[str]:
        """Return the translations of `lines`, with the library's usual steps from text to text."""

    def decode(self, tokens: list[Any]) -> str:
        """Return the text of target tokens."""


@dataclass
class PeerRunner:
    """Runner of timed jobs with a peer."""

    peer: Peer
    setup: PeerSetup
    lines: list[str]
    sources: list[list[Any]] = field(default_factory=list)

    def run(self, job: PeerJob) -> PeerResult:
        """Run a job. The measured time begins before the first source and ends after the last translation."""
        lines, sources = self.lines[: job.sentences], self.sources[: job.sentences]
        search = PeerSearch(job.beam_size, job.batching, self.setup.lengths[: job.sentences])
        cpu, begun = cpu_seconds(), time.perf_counter()
        if job.text:
            texts, latencies = self._texts(lines, search, job.single)
            seconds, cpu = time.perf_counter() - begun, cpu_seconds() - cpu
            return PeerResult(seconds, cpu, 0, peak_bytes(), latencies, tuple(texts) if job.keep_lines else ())
        targets, latencies = self._ids(sources, search, job.single)
        seconds, cpu = time.perf_counter() - begun, cpu_seconds() - cpu
        kept = tuple(map(self.peer.decode, targets)) if job.keep_lines else ()
        tokens = sum(search.forced) if search.forced else sum(len(target) + 1 for target in targets)
        return PeerResult(seconds, cpu, tokens, peak_bytes(), latencies, kept)

    def _ids(
        self, sources: Sequence[list[Any]], search: PeerSearch, single: bool
    ) -> tuple[list[list[Any]], tuple[float, ...]]:
        if not single:
            return self.peer.translate(sources, search), ()
        targets, latencies = [], []
        for place, source in enumerate(sources):
            alone = one(search, place)
            begun = time.perf_counter()
            targets += self.peer.translate([source], alone)
            latencies.append(time.perf_counter() - begun)
        return targets, tuple(latencies)

    def _texts(self, lines: Sequence[str], search: PeerSearch, single: bool) -> tuple[list[str], tuple[float, ...]]:
        if not single:
            return self.peer.translate_text(lines, search), ()
        texts, latencies = [], []
        for place, line in enumerate(lines):
            alone = one(search, place)
            begun = time.perf_counter()
            texts += self.peer.translate_text([line], alone)
            latencies.append(time.perf_counter() - begun)
        return texts, tuple(latencies)


def one(search: PeerSearch, place: int) -> PeerSearch:
    """Return the search for the sentence with index `place` alone."""
    return PeerSearch(search.beam_size, search.batching, search.forced[place : place + 1])


def sorted_batches(sources: Sequence[list[Any]], places: Sequence[int], batching: Batching) -> Iterator[list[int]]:
    """Yield batches of indices, longest sentences first; `batching` limits the sentences or the padded tokens."""
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
    """Return the processor time of this process in seconds, all threads."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def peak_bytes() -> int:
    """Return the peak memory of this process.

    On Linux it is VmHWM, because ru_maxrss starts from the peak of the parent process.
    """
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def to_job(values: dict[str, Any]) -> PeerJob:
    return PeerJob(**{**values, "batching": Batching(**values["batching"])})


def to_setup(values: dict[str, Any]) -> PeerSetup:
    return PeerSetup(**{**values, "lengths": tuple(values["lengths"])})


def attend(load: Callable[[PeerSetup], Peer]) -> None:
    """Read the setup and then jobs from stdin until it ends; print results and errors as JSON."""
    answers = _take_stdout()
    try:
        setup = to_setup(json.loads(sys.stdin.readline()))
        bench = _prepared(load, setup)
        _write_line(answers, {"ready": setup.dtype})
    except Exception:
        _write_line(answers, {"error": traceback.format_exc()})
        return
    for line in sys.stdin:
        try:
            _write_line(answers, asdict(bench.run(to_job(json.loads(line)))))
        except Exception:
            _write_line(answers, {"error": traceback.format_exc()})


def _prepared(load: Callable[[PeerSetup], Peer], setup: PeerSetup) -> PeerRunner:
    """Load the peer and translate one sentence; both count as start-up time."""
    lines = Path(setup.source).read_text(encoding="utf-8").splitlines()
    peer = load(setup)
    bench = PeerRunner(peer, setup, lines)
    peer.translate([peer.encode(lines[0])], PeerSearch(1, forced=setup.lengths[:1]))
    bench.sources = [peer.encode(line) for line in lines]
    return bench


def _take_stdout() -> TextIO:
    """Return the pipe to the parent and redirect stdout to stderr."""
    sys.stdout.flush()
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return answers


def _write_line(answers: TextIO, message: dict[str, Any]) -> None:
    answers.write(json.dumps(message) + "\n")
    answers.flush()
