"""Figures for Prometheus. Labels are bounded: templates of routes, statuses and phases, never what a client sent."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.registry import Collector

from service.logs import Record
from service.workers.fleet import FleetStats

T = TypeVar("T")

CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4
SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


@dataclass(frozen=True)
class Figure(Generic[T]):
    """A number that somebody else counts, and how Prometheus knows it."""

    name: str
    help: str
    value: Callable[[T], float]
    grows: bool = True  # and never shrinks


FLEET: tuple[Figure[FleetStats], ...] = (
    Figure("pending_requests", "Requests accepted and not yet answered", lambda found: found.requests, grows=False),
    Figure("queued_texts", "Texts that no worker has yet", lambda found: found.queued, grows=False),
    Figure("running_texts", "Texts that workers have", lambda found: found.running, grows=False),
    Figure("workers", "Workers", lambda found: len(found.workers), grows=False),
    Figure(
        "workers_ready", "Workers with a model", lambda found: sum(each.ready for each in found.workers), grows=False
    ),
    Figure("texts_finished", "Texts translated", lambda found: found.finished),
    Figure("texts_failed", "Texts on which a model failed", lambda found: found.failed),
    Figure("requests_cancelled", "Requests whose client left", lambda found: found.cancelled),
    Figure("requests_expired", "Requests whose deadline passed", lambda found: found.expired),
    Figure("requests_shed", "Requests refused because the queue was full", lambda found: found.shed),
    Figure("worker_restarts", "Workers started again", lambda found: found.restarts),
    Figure("reloads", "Models exchanged", lambda found: found.reloads),
    Figure("reloads_refused", "Reloads that left a model as it was", lambda found: found.refused_reloads),
    Figure("decoder_steps", "Decoder steps", lambda found: found.steps),
    Figure("decoder_rows", "Rows of all decoder steps: by steps, how full the batches are", lambda found: found.rows),
    Figure(
        "source_tokens", "Tokens of texts translated: their rate is tokens a second", lambda found: found.source_tokens
    ),
    Figure("target_tokens", "Tokens of translations", lambda found: found.target_tokens),
)


class Asked(Protocol):
    """service.cache.SharedWork, as far as it counts."""

    kept: int
    joined: int
    begun: int


CACHE: tuple[Figure[Asked], ...] = (
    Figure("cache_hits", "Texts answered from the cache", lambda found: found.kept),
    Figure("cache_joined", "Texts answered by work that another request had begun", lambda found: found.joined),
    Figure("cache_misses", "Texts that had to be translated", lambda found: found.begun),
)


class Metrics:
    """Counters with a registry of their own: two applications in one process do not meet."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._requests = self._counter("requests", "Requests answered", "route", "method", "status")
        self._characters = self._counter("characters", "Characters asked for")
        self._seconds = self._histogram("request_seconds", "From a request to the end of its answer", "route")
        self._phases = self._histogram("phase_seconds", "What the time of a translation goes to", "phase")

    def request(self, route: str, method: str, status: int, seconds: float, record: Record) -> None:
        """A request has been answered. `route` is a template such as /v2/glossaries/{id}, or empty."""
        known = method if method in METHODS else "other"
        self._requests.labels(route or "none", known, str(status)).inc()
        self._seconds.labels(route or "none").observe(seconds)
        self._characters.inc(record.characters)
        for phase, taken in record.phases.items():
            self._phases.labels(phase.value).observe(taken)

    def watch(self, figures: Sequence[Figure[T]], read: Callable[[], T]) -> None:
        """Report these of what `read` finds whenever the metrics are asked for."""
        self._registry.register(_Watched(figures, read))

    def text(self) -> bytes:
        """In Prometheus's text format."""
        return generate_latest(self._registry)

    def _counter(self, name: str, help: str, *labels: str) -> Counter:
        return Counter(f"mt_{name}", help, labels, registry=self._registry)

    def _histogram(self, name: str, help: str, *labels: str) -> Histogram:
        return Histogram(f"mt_{name}", help, labels, registry=self._registry, buckets=SECONDS)


class _Watched(Collector, Generic[T]):
    def __init__(self, figures: Sequence[Figure[T]], read: Callable[[], T]) -> None:
        self._figures = figures
        self._read = read

    def describe(self) -> list[Metric]:
        """Names alone: nothing is to be read when this is registered."""
        return [_family(figure) for figure in self._figures]

    def collect(self) -> Iterator[Metric]:
        found = self._read()
        for figure in self._figures:
            family = _family(figure)
            family.add_metric([], figure.value(found))
            yield family


def _family(figure: Figure[T]) -> CounterMetricFamily | GaugeMetricFamily:
    kind = CounterMetricFamily if figure.grows else GaugeMetricFamily
    return kind(f"mt_{figure.name}", figure.help)
