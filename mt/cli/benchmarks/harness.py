"""Main loop of a contender process: it loads one translator, reads jobs as JSON lines, and writes timed results.

A peer is the library of a contender with a loaded model. This module imports only the standard library, and modules of
`mt` that need nothing else, so that the measured memory and start-up time are those of the library. Between jobs, the
process waits on stdin. What the library prints goes to stderr, which is the log.
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
    """Model that a contender loads, and settings of the library.

    `lengths` has the exact number of target tokens for each line of `source`; if it is empty, the lengths are free.
    `workers` batches are translated at the same time, with `threads` threads each. `direction`, such as "en-de", is
    given for a model with several directions, whose sources begin with a language tag.
    """

    model: str
    source: str  # a file with one sentence a line
    dtype: str = "float32"
    workers: int = 1
    threads: int = 1
    lengths: tuple[int, ...] = ()
    device: str = "cpu"  # or cuda
    direction: str = ""


@dataclass(frozen=True)
class Batching:
    """Maximum size of the batches of a peer. With size 0, the peer chooses the size, or gets single sentences."""

    size: int = 0
    unit: str = "examples"  # unit of CTranslate2's batch size: examples or tokens


@dataclass(frozen=True)
class PeerJob:
    """Job for a contender: translate the first `sentences` lines of the source file.

    If `single` is true, lines are translated one at a time. If `text` is true, the time includes the conversion from
    text and to text, otherwise only the translation of tokens. If `keep_lines` is true, translations are returned.
    """

    beam_size: int
    sentences: int
    single: bool = False
    text: bool = False
    batching: Batching = Batching()
    keep_lines: bool = False


@dataclass(frozen=True)
class PeerResult:
    """Result of a job.

    `tokens` is the number of target tokens with EOS, or 0 if the job is to translate text. `latencies` has the seconds
    of each sentence if the job is `single`. `lines` are the translations if the job is to keep them.
    """

    seconds: float
    cpu_seconds: float
    tokens: int
    peak_bytes: int
    latencies: tuple[float, ...] = ()
    lines: tuple[str, ...] = ()


@dataclass(frozen=True)
class PeerSearch:
    """Search options for all contenders: one translation, scores divided by length, at most 2 x source + 10 tokens.

    `forced` has the required number of target tokens of each translation; if it is empty, the lengths are free.
    """

    beam_size: int
    batching: Batching = Batching()
    forced: tuple[int, ...] = ()

    def longest(self, source_tokens: int) -> int:
        return 2 * source_tokens + 10

    def groups(self, count: int) -> Iterator[tuple[int, list[int]]]:
        """Group `count` sentences by required length. Yield (length, indices of the sentences), the longest first.

        If lengths are free, yield a single group with length 0.
        """
        lengths = self.forced or (0,) * count
        for length in sorted(set(lengths), reverse=True):
            yield length, [index for index in range(count) if lengths[index] == length]


class Peer(Protocol):
    """A translation library with a loaded model."""

    def encode(self, line: str) -> list[Any]:
        """Return the source tokens of a line, in the format of the library."""

    def translate(self, sources: Sequence[list[Any]], search: PeerSearch) -> list[list[Any]]:
        """Return the target tokens of each source, without EOS, in the order of the sources."""

    def translate_text(self, lines: Sequence[str], search: PeerSearch) -> list[str]:
        """Return the translations of `lines`, with the steps that the library usually takes from text to text."""

    def decode(self, tokens: list[Any]) -> str:
        """Return the text of target tokens."""


@dataclass
class PeerRunner:
    """Runs timed jobs with a peer. `lines` are all lines of the source file, and `sources` their tokens."""

    peer: Peer
    setup: PeerSetup
    lines: list[str]
    sources: list[list[Any]] = field(default_factory=list)

    def run(self, job: PeerJob) -> PeerResult:
        """Run a job, and return the result. Its time is from before the first source to after the last translation."""
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
        for index, source in enumerate(sources):
            alone = one(search, index)
            begun = time.perf_counter()
            targets += self.peer.translate([source], alone)
            latencies.append(time.perf_counter() - begun)
        return targets, tuple(latencies)

    def _texts(self, lines: Sequence[str], search: PeerSearch, single: bool) -> tuple[list[str], tuple[float, ...]]:
        if not single:
            return self.peer.translate_text(lines, search), ()
        texts, latencies = [], []
        for index, line in enumerate(lines):
            alone = one(search, index)
            begun = time.perf_counter()
            texts += self.peer.translate_text([line], alone)
            latencies.append(time.perf_counter() - begun)
        return texts, tuple(latencies)


def one(search: PeerSearch, index: int) -> PeerSearch:
    """Return the search options for the single sentence with index `index`."""
    return PeerSearch(search.beam_size, search.batching, search.forced[index : index + 1])


def sorted_batches(sources: Sequence[list[Any]], indices: Sequence[int], batching: Batching) -> Iterator[list[int]]:
    """Divide the sentences with the indices `indices` into batches of indices, the longest sentences first.

    `batching` is the maximum number of sentences, or of source tokens with padding, in a batch.
    """
    batch: list[int] = []
    for index in sorted(indices, key=lambda index: -len(sources[index])):
        grown = len(batch) + 1
        if batch and grown * (len(sources[batch[0]]) if batching.unit == "tokens" else 1) > batching.size:
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch


def cpu_seconds() -> float:
    """Return the processor time in seconds of all threads of this process."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def peak_bytes() -> int:
    """Return the peak memory of this process in bytes.

    On Linux, VmHWM is used, because ru_maxrss begins with the peak of the parent process.
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


def run_contender(load: Callable[[PeerSetup], Peer]) -> None:
    """Run a contender: read the setup and then jobs from stdin until its end. Print results and errors as JSON."""
    answers = take_stdout()
    try:
        setup = to_setup(json.loads(sys.stdin.readline()))
        runner = _prepared(load, setup)
        write_line(answers, {"ready": setup.dtype})
    except Exception:
        write_line(answers, {"error": traceback.format_exc()})
        return
    for line in sys.stdin:
        try:
            write_line(answers, asdict(runner.run(to_job(json.loads(line)))))
        except Exception:
            write_line(answers, {"error": traceback.format_exc()})


def _prepared(load: Callable[[PeerSetup], Peer], setup: PeerSetup) -> PeerRunner:
    """Load the peer, let it translate one sentence, and return its runner. All this counts as start-up time."""
    lines = Path(setup.source).read_text(encoding="utf-8").splitlines()
    peer = load(setup)
    runner = PeerRunner(peer, setup, lines)
    peer.translate([peer.encode(lines[0])], PeerSearch(1, forced=setup.lengths[:1]))
    runner.sources = [peer.encode(line) for line in lines]
    return runner


def take_stdout() -> TextIO:
    """Return a file that writes to the current stdout, and redirect the stdout of this process to stderr."""
    sys.stdout.flush()
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return answers


def write_line(answers: TextIO, message: dict[str, Any]) -> None:
    answers.write(json.dumps(message) + "\n")
    answers.flush()
