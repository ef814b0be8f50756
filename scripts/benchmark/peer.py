"""Jobs of the benchmark `decode`, and the part of a contender that is the same for all libraries.

Like `processes`, this module imports only the standard library. The module of each library imports the library.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol

from .processes import Stopwatch, answer_jobs, cpu_seconds


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
    lengths: Sequence[int] = ()
    device: str = "cpu"  # or cuda
    direction: str = ""


@dataclass(frozen=True)
class PeerJob:
    """Job for a contender: translate the tokens of the first `sentences` lines of the source file.

    If `single` is true, lines are translated one at a time, otherwise in batches of at most `batch` examples or, if
    `batch_unit` is "tokens", source tokens. With 0, the library chooses the size. If `keep_lines` is true, the
    translations are returned.
    """

    beam_size: int
    sentences: int
    single: bool = False
    batch: int = 0
    batch_unit: str = "examples"
    keep_lines: bool = False


@dataclass(frozen=True)
class PeerResult:
    """Result of a job.

    `tokens` is the number of target tokens with EOS. `latencies` has the seconds of each sentence if the job is
    `single`. `lines` are the translations if the job is to keep them.
    """

    seconds: float
    cpu_seconds: float
    peak_bytes: int
    tokens: int
    latencies: Sequence[float] = ()
    lines: Sequence[str] = ()


@dataclass(frozen=True)
class PeerSearch:
    """Search of all contenders: one translation, scores divided by length, at most 2 x source + 10 tokens.

    `forced` has the required number of target tokens of each translation; if it is empty, the lengths are free.
    """

    beam_size: int
    batch: int = 0
    batch_unit: str = "examples"
    forced: Sequence[int] = ()

    def longest(self, source_tokens: int) -> int:
        return 2 * source_tokens + 10

    def groups(self, count: int) -> Iterator[tuple[int, list[int]]]:
        """Group `count` sentences by required length. Yield (length, indices of the sentences), the longest first.

        If lengths are free, yield a single group with length 0.
        """
        lengths = self.forced or (0,) * count
        for length in sorted(set(lengths), reverse=True):
            yield length, [index for index in range(count) if lengths[index] == length]

    def batches(self, sources: Sequence[list[Any]], indices: Sequence[int]) -> Iterator[list[int]]:
        """Divide the sentences with the indices `indices` into batches of indices, the longest sentences first.

        A batch has at most `batch` sentences, or source tokens with padding.
        """
        batch: list[int] = []
        for index in sorted(indices, key=lambda index: -len(sources[index])):
            grown = len(batch) + 1
            if batch and grown * (len(sources[batch[0]]) if self.batch_unit == "tokens" else 1) > max(self.batch, 1):
                yield batch
                batch = []
            batch.append(index)
        if batch:
            yield batch


class Peer(Protocol):
    """A translation library with a loaded model."""

    def encode(self, line: str) -> list[Any]:
        """Return the source tokens of a line, in the format of the library."""

    def translate(self, sources: Sequence[list[Any]], search: PeerSearch) -> list[list[Any]]:
        """Return the target tokens of each source, without EOS, in the order of the sources."""

    def decode(self, tokens: list[Any]) -> str:
        """Return the text of target tokens."""


@dataclass
class PeerRunner:
    """Runner of timed jobs with a peer. `sources` are the tokens of all lines of the source file."""

    peer: Peer
    lengths: Sequence[int]
    sources: list[list[Any]] = field(default_factory=list)

    def run(self, values: dict[str, Any]) -> dict[str, Any]:
        """Run a job, and return the result. Its time is from before the first source to after the last translation."""
        job = PeerJob(**values)
        sources, forced = self.sources[: job.sentences], self.lengths[: job.sentences]
        search = PeerSearch(job.beam_size, job.batch, job.batch_unit, forced)
        watch, latencies = Stopwatch(cpu_seconds), []
        if job.single:
            targets = []
            for index, source in enumerate(sources):
                single = PeerSearch(job.beam_size, forced=forced[index : index + 1])
                begun = time.perf_counter()
                targets += self.peer.translate([source], single)
                latencies.append(time.perf_counter() - begun)
        else:
            targets = self.peer.translate(sources, search)
        costs = watch.costs()
        lines = [self.peer.decode(target) for target in targets] if job.keep_lines else []
        tokens = sum(forced) if forced else sum(len(target) + 1 for target in targets)
        return asdict(PeerResult(**asdict(costs), tokens=tokens, latencies=latencies, lines=lines))


def run_peer(load: Callable[[PeerSetup], Peer]) -> None:
    """Be a contender of the benchmark `decode`. `load` loads the library for a setup."""

    def prepare(values: dict[str, Any]) -> Callable[[Any], dict[str, Any]]:
        setup = PeerSetup(**values)
        lines = Path(setup.source).read_text(encoding="utf-8").splitlines()
        runner = PeerRunner(load(setup), setup.lengths)
        runner.sources = [runner.peer.encode(line) for line in lines]
        runner.run(asdict(PeerJob(1, 1)))
        return runner.run

    answer_jobs(prepare)
