"""Each contender at its best: a short pass over its settings, before anything is compared."""

from dataclasses import dataclass
from itertools import product
from pathlib import Path

from .contender import Contender, ContenderError, Launch
from .harness import Batching, Job
from .measure import percentile
from .peers import Entry, Metric


@dataclass(frozen=True)
class Variant:
    """One way to run a contender."""

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
    """One variant's short pass: seconds (the median latency for a single sentence), or a problem."""

    entry: str
    metric: str
    variant: str
    seconds: float | None
    problem: str = ""


def known_variant(entry: Entry, label: str | None) -> Variant | None:
    """The variant of that label, if there is one."""
    variants = (Variant(launch, batching) for launch, batching in product(entry.launches, entry.batchings))
    return next((variant for variant in variants if variant.label == label), None)


def best_variant(entry: Entry, metric: Metric, sentences: int, log: Path) -> tuple[Variant, list[Trial]]:
    """The fastest variant by a short pass. The first launch tries all batchings, the others its two best.

    Raises ContenderError if no variant runs.
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
        raise ContenderError(f"{entry.name}: no setting runs; the first: {trials[0].problem}")
    return min(times, key=lambda variant: times[variant]), trials


def _short_pass(contender: Contender, metric: Metric, batching: Batching, sentences: int) -> float:
    """The better of two, after a warm-up."""
    count = min(sentences, 40) if metric.single else sentences
    contender.run(Job(metric.beam_size, min(count, 32), metric.single, batching=batching))
    found = []
    for _ in range(2):
        answer = contender.run(Job(metric.beam_size, count, metric.single, batching=batching))
        found.append(percentile(answer.latencies, 50) if metric.single else answer.seconds)
    return min(found)
