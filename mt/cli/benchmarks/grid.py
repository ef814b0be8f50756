"""Selection of the fastest setting of each contender, by short runs before the comparison."""

from dataclasses import dataclass
from pathlib import Path

from .contender import Contender, ContenderError, Launch
from .harness import Batching, PeerJob
from .measure import percentile
from .peers import Metric, PeerEntry


@dataclass(frozen=True)
class Variant:
    """A setting of a contender: how to start its process, and how it forms batches."""

    launch: Launch
    batching: Batching

    @property
    def label(self) -> str:
        setup = self.launch.setup
        more = "".join(f" {value}" for _, value in self.launch.environment)
        batching = f" {self.batching.size} {self.batching.unit}" if self.batching.size else ""
        return f"{setup.dtype} {setup.workers}x{setup.threads}{more}{batching}"


@dataclass(frozen=True)
class Trial:
    """Result of a short run with one setting. The fields are texts for the report.

    `seconds` is the duration in bulk, or the median latency of single sentences. If the run failed, it is None, and
    `problem` is the error.
    """

    entry: str
    metric: str
    variant: str
    seconds: float | None
    problem: str = ""


def best_variant(entry: PeerEntry, metric: Metric, sentences: int, log: Path) -> tuple[Variant, list[Trial]]:
    """Try the settings of a contender in short runs. Return the fastest setting, and the results of all runs.

    The first of `entry.launches` is tried with all of `entry.batchings`, all others with the two batchings that are the
    fastest so far. If there is only one setting, it is returned without a run. Raises: ContenderError if all runs fail.
    """
    if len(entry.launches) * len(entry.batchings) == 1:
        return Variant(entry.launches[0], entry.batchings[0]), []
    times: dict[Variant, float] = {}
    trials: list[Trial] = []
    for launch in entry.launches:
        ranked = sorted(times, key=lambda variant: times[variant])
        batchings = list(dict.fromkeys(variant.batching for variant in ranked))[:2] or list(entry.batchings)
        variants = [Variant(launch, batching) for batching in batchings]
        try:
            with Contender(entry.name, launch, log) as contender:
                for variant in variants:
                    times[variant] = _short_pass(contender, metric, variant.batching, sentences)
                    trials.append(Trial(entry.name, metric.label, variant.label, times[variant]))
        except ContenderError as error:
            trials.append(Trial(entry.name, metric.label, variants[0].label, None, str(error).splitlines()[0]))
    if not times:
        raise ContenderError(f"{entry.name}: every setting failed; the problem of the first: {trials[0].problem}")
    return min(times, key=lambda variant: times[variant]), trials


def _short_pass(contender: Contender, metric: Metric, batching: Batching, sentences: int) -> float:
    """Return the seconds of the faster of two runs after a warm-up. For single sentences, return the median latency."""
    count = min(sentences, 40) if metric.single else sentences
    contender.run(PeerJob(metric.beam_size, min(count, 32), metric.single, batching=batching))
    costs = []
    for _ in range(2):
        answer = contender.run(PeerJob(metric.beam_size, count, metric.single, batching=batching))
        costs.append(percentile(answer.latencies, 50) if metric.single else answer.seconds)
    return min(costs)
