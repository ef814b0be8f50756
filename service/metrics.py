"""Prometheus metrics. Labels are route templates, statuses and phases, so their number is bounded."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.registry import Collector

from service.logs import RequestRecord
from service.parsers.pool import ParserCounts
from service.translation.cache import TranslationCache
from service.workers.fleet import FleetStats

T = TypeVar("T")
AnyCache = TranslationCache[Any, Any]

CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4
METRIC_PREFIX = "mt_"
SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


@dataclass(frozen=True)
class MetricInfo:
    """Description of a metric for Prometheus. `kind` is counter, gauge or histogram."""

    kind: str
    name: str  # without METRIC_PREFIX, and without the _total of a counter
    help: str
    labels: tuple[str, ...] = field(default=(), kw_only=True)


@dataclass(frozen=True)
class SampledMetric(MetricInfo, Generic[T]):
    """A metric whose value is read from an object of type T whenever the metrics are requested.

    `value` returns the number to report. If the metric has a label, `value` returns a mapping from label to number.
    """

    value: Callable[[T], float | Mapping[str, float]]


REQUESTS = MetricInfo("counter", "requests", "Answered requests.", labels=("route", "method", "status"))
CHARACTERS = MetricInfo("counter", "characters", "Characters that were sent for translation.")
REQUEST_SECONDS = MetricInfo(
    "histogram", "request_seconds", "Time from a request to the end of its answer.", labels=("route",)
)
PHASE_SECONDS = MetricInfo(
    "histogram",
    "phase_seconds",
    "Time of a translation in a phase: queue (until a worker begins) or translate.",
    labels=("phase",),
)
REQUEST_METRICS = (REQUESTS, CHARACTERS, REQUEST_SECONDS, PHASE_SECONDS)


def _gauge(name: str, help: str, value: Callable[[T], float]) -> SampledMetric[T]:
    return SampledMetric("gauge", name, help, value)


def _counter(name: str, help: str, value: Callable[[T], float]) -> SampledMetric[T]:
    return SampledMetric("counter", name, help, value)


FLEET_METRICS: tuple[SampledMetric[FleetStats], ...] = (
    _gauge("pending_requests", "Accepted requests without an answer yet.", lambda stats: stats.requests),
    _gauge("queued_texts", "Texts that wait for a worker.", lambda stats: stats.queued),
    _gauge("running_texts", "Texts that workers are translating.", lambda stats: stats.running),
    _gauge("workers", "Workers of all models.", lambda stats: stats.workers),
    _gauge("workers_ready", "Workers that have loaded their model.", lambda stats: stats.workers_ready),
    _counter("texts_finished", "Translated texts.", lambda stats: stats.finished),
    _counter("texts_failed", "Texts that a model could not translate.", lambda stats: stats.failed),
    _counter("requests_cancelled", "Requests whose client disconnected.", lambda stats: stats.cancelled),
    _counter("requests_expired", "Requests whose deadline passed.", lambda stats: stats.expired),
    _counter("requests_refused", "Requests refused because the queue was full.", lambda stats: stats.refused),
    _counter("worker_restarts", "Restarts of workers.", lambda stats: stats.restarts),
    _counter("reloads", "Replacements of a model by a new version.", lambda stats: stats.reloads),
    _counter(
        "reloads_refused", "Reloads that failed; the old models stayed in use.", lambda stats: stats.refused_reloads
    ),
    _counter("decoder_steps", "Decoder steps.", lambda stats: stats.work.steps),
    _counter(
        "decoder_rows", "Rows of all decoder steps; rows per step is the batch size.", lambda stats: stats.work.rows
    ),
    _counter("source_tokens", "Tokens of the translated texts.", lambda stats: stats.work.source_tokens),
    _counter("target_tokens", "Tokens of the translations.", lambda stats: stats.work.target_tokens),
    SampledMetric(
        "gauge",
        "model_loaded",
        "1 for a model in memory, otherwise 0.",
        lambda stats: {pool.name: float(pool.loaded) for pool in stats.pools},
        labels=("model",),
    ),
    SampledMetric(
        "counter",
        "model_loads",
        "Loads of a model into memory.",
        lambda stats: {pool.name: pool.loads for pool in stats.pools},
        labels=("model",),
    ),
    SampledMetric(
        "counter",
        "model_texts",
        "Texts that a model has translated.",
        lambda stats: {pool.name: pool.translated for pool in stats.pools},
        labels=("model",),
    ),
)


CACHE_METRICS: tuple[SampledMetric[AnyCache], ...] = (
    _counter("cache_hits", "Texts answered from the cache.", lambda counts: counts.hits),
    _counter(
        "cache_joined", "Texts answered by the translation of an equal text in progress.", lambda counts: counts.joined
    ),
    _counter("cache_misses", "Texts that had to be translated.", lambda counts: counts.misses),
)

PARSER_METRICS: tuple[SampledMetric[ParserCounts], ...] = (
    _counter(
        "parser_operations",
        "Documents and long marked-up texts that were read or written.",
        lambda counts: counts.operations,
    ),
    _counter("parser_limits_exceeded", "Parser operations that exceeded a limit.", lambda counts: counts.exceeded),
    _counter("parser_failures", "Parser operations that failed because of a defect.", lambda counts: counts.failed),
    _counter("parser_starts", "Parser processes that were started.", lambda counts: counts.started),
)

ALL_METRICS = (*REQUEST_METRICS, *FLEET_METRICS, *CACHE_METRICS, *PARSER_METRICS)
"""Descriptions of all metrics, for the reference page."""


class Metrics:
    """Metrics of one application, with their own Prometheus registry."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._requests, self._characters = map(self._new_counter, (REQUESTS, CHARACTERS))
        self._seconds, self._phases = map(self._new_histogram, (REQUEST_SECONDS, PHASE_SECONDS))

    def count_request(self, route: str, method: str, status: int, seconds: float, record: RequestRecord) -> None:
        """Count an answered request. `route` is a template such as /v2/glossaries/{id}, or "" if no route matched."""
        self._requests.labels(route or "none", method if method in METHODS else "other", str(status)).inc()
        self._seconds.labels(route or "none").observe(seconds)
        self._characters.inc(record.characters)
        for phase, duration in record.phases.items():
            self._phases.labels(phase.value).observe(duration)

    def sample(self, metrics: Sequence[SampledMetric[T]], read: Callable[[], T]) -> None:
        """Register `metrics`. Each request for metrics calls `read`, and takes all values from the returned object."""
        self._registry.register(_SampledCollector(metrics, read))

    def text(self) -> bytes:
        return generate_latest(self._registry)

    def _new_counter(self, info: MetricInfo) -> Counter:
        return Counter(METRIC_PREFIX + info.name, info.help, info.labels, registry=self._registry)

    def _new_histogram(self, info: MetricInfo) -> Histogram:
        return Histogram(METRIC_PREFIX + info.name, info.help, info.labels, registry=self._registry, buckets=SECONDS)


class _SampledCollector(Collector, Generic[T]):
    def __init__(self, metrics: Sequence[SampledMetric[T]], read: Callable[[], T]) -> None:
        self._metrics = metrics
        self._read = read

    def describe(self) -> list[Metric]:
        """Return the metrics without values: at registration, the values cannot be read yet."""
        return [_family(metric) for metric in self._metrics]

    def collect(self) -> Iterator[Metric]:
        sampled = self._read()
        for metric in self._metrics:
            family = _family(metric)
            value = metric.value(sampled)
            if isinstance(value, Mapping):
                for label, item in value.items():
                    family.add_metric([label], item)
            else:
                family.add_metric([], value)
            yield family


def _family(info: MetricInfo) -> CounterMetricFamily | GaugeMetricFamily:
    kind = CounterMetricFamily if info.kind == "counter" else GaugeMetricFamily
    return kind(METRIC_PREFIX + info.name, info.help, labels=info.labels)
