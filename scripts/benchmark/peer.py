"""Jobs of the benchmark `decode`, and the part of a contender that is the same for all libraries.

Like `processes`, this module imports only the standard library. The module of each library imports the library. Tokens
are those of our tokenizer: ids, or pieces for a library that has its own ids.
"""

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from .processes import answer_jobs, peak_bytes


@dataclass(frozen=True)
class PeerSetup:
    """Model that a contender loads, and settings of the library.

    `workers` batches are translated at the same time, with `threads` threads each. `lengths` has the exact number of
    target tokens, with EOS, for each source; if it is empty, the lengths are free.
    """

    model: str
    sources: str  # a JSON file with the source tokens of each sentence
    dtype: str = "float32"
    workers: int = 1
    threads: int = 1
    lengths: Sequence[int] = ()
    device: str = "cpu"  # or cuda


@dataclass(frozen=True)
class PeerJob:
    """Job for a contender: translate the first `sentences` sources. Scores are divided by length.

    If `single` is true, sources are translated one at a time, otherwise in batches of at most `batch` examples or, if
    `batch_unit` is "tokens", source tokens. With 0, the library chooses the size. If `keep` is true, the target tokens
    are returned.
    """

    beam_size: int
    sentences: int
    single: bool = False
    batch: int = 0
    batch_unit: str = "examples"
    keep: bool = False


@dataclass(frozen=True)
class PeerResult:
    """Result of a job.

    `tokens` is the number of target tokens with EOS. `latencies` has the seconds of each sentence if the job is
    `single`. `targets` are the target tokens of each source if the job is to keep them.
    """

    seconds: float
    peak_bytes: int
    tokens: int
    latencies: Sequence[float] = ()
    targets: Sequence[Sequence[Any]] = ()


TranslateTokens = Callable[[Sequence[list[Any]], PeerJob, Sequence[int]], list[list[Any]]]
"""Function of a library with a loaded model: source tokens of sentences, job and lengths -> target tokens without EOS.

`lengths` are those of PeerSetup for these sentences.
"""


def longest(source_tokens: int) -> int:
    """Return the maximum number of target tokens for a source of `source_tokens` tokens with EOS."""
    return 2 * source_tokens + 10


def by_length(lengths: Sequence[int], count: int) -> dict[int, list[int]]:
    """Return the indices of `count` sentences by their required length, the longest first.

    If `lengths` is empty, all have the key 0.
    """
    groups: dict[int, list[int]] = {}
    for index, length in enumerate(lengths or (0,) * count):
        groups.setdefault(length, []).append(index)
    return dict(sorted(groups.items(), reverse=True))


def run_peer(load: Callable[[PeerSetup], TranslateTokens]) -> None:
    """Be a contender of the benchmark `decode`. `load` loads the library for a setup."""

    def prepare(values: dict[str, Any]) -> Callable[[Any], dict[str, Any]]:
        setup = PeerSetup(**values)
        translate = load(setup)
        sources = json.loads(Path(setup.sources).read_text(encoding="utf-8"))

        def run(values: dict[str, Any]) -> dict[str, Any]:
            job = PeerJob(**values)
            chosen, lengths = sources[: job.sentences], setup.lengths[: job.sentences]
            return asdict(run_job(translate, job, chosen, lengths))

        run(asdict(PeerJob(1, 1)))
        return run

    answer_jobs(prepare)


def run_job(
    translate: TranslateTokens, job: PeerJob, sources: Sequence[list[Any]], lengths: Sequence[int]
) -> PeerResult:
    """Translate `sources`. The time is from before the first source to after the last translation."""
    targets: list[list[Any]] = []
    latencies = []
    begun = time.perf_counter()
    if job.single:
        for index, source in enumerate(sources):
            started = time.perf_counter()
            targets += translate([source], job, lengths[index : index + 1])
            latencies.append(time.perf_counter() - started)
    else:
        targets = translate(sources, job, lengths)
    seconds = time.perf_counter() - begun
    tokens = sum(lengths) if lengths else sum(len(target) + 1 for target in targets)
    return PeerResult(seconds, peak_bytes(), tokens, latencies, targets if job.keep else ())
