"""Prometheus metrics. Labels are route templates, statuses and phases, so their number is bounded."""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import chain
from operator import attrgetter
from types import SimpleNamespace
from typing import Any, cast

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

from service.logs import RequestRecord

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
    value: str = ""  # of a sampled metric: the attribute of the sampled object that is its value
    labels: tuple[str, ...] = field(default=(), kw_only=True)


REQUESTS = MetricInfo(
    "counter",
    "requests",
    "Requests by the status of their answer; 499: the client disconnected, 504: the deadline passed.",
    labels=("route", "method", "status"),
)
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

FLEET_METRICS = (
    MetricInfo("gauge", "pending_requests", "Accepted requests without an answer yet.", "requests"),
    MetricInfo("gauge", "queued_texts", "Texts that wait for a worker.", "queued"),
    MetricInfo("gauge", "running_texts", "Texts that workers are translating.", "running"),
    MetricInfo("gauge", "workers", "Workers of all models.", "workers"),
    MetricInfo("gauge", "workers_ready", "Workers that have loaded their model.", "workers_ready"),
    MetricInfo("counter", "texts_finished", "Translated texts.", "finished"),
    MetricInfo("counter", "texts_failed", "Texts that a model could not translate.", "failed"),
    MetricInfo("counter", "requests_refused", "Requests refused because the queue was full.", "refused"),
    MetricInfo("counter", "worker_restarts", "Restarts of workers.", "restarts"),
    MetricInfo("counter", "reloads", "Replacements of a model by a new version.", "reloads"),
    MetricInfo("counter", "reloads_refused", "Reloads that failed; the old models stayed in use.", "refused_reloads"),
    MetricInfo("counter", "decoder_steps", "Decoder steps.", "work.steps"),
    MetricInfo("counter", "decoder_rows", "Rows of all decoder steps; rows per step is the batch size.", "work.rows"),
    MetricInfo("counter", "source_tokens", "Tokens of the translated texts.", "work.source_tokens"),
    MetricInfo("counter", "target_tokens", "Tokens of the translations.", "work.target_tokens"),
)
"""Metrics of FleetStats."""

MODEL_METRICS = (
    MetricInfo("gauge", "model_loaded", "1 for a model in memory, otherwise 0.", "loaded", labels=("model",)),
    MetricInfo("counter", "model_loads", "Loads of a model into memory.", "loads", labels=("model",)),
    MetricInfo("counter", "model_texts", "Texts that a model has translated.", "translated", labels=("model",)),
)
"""Metrics of the WorkerPool of each model."""

CACHE_METRICS = (
    MetricInfo("counter", "cache_hits", "Texts answered from the cache.", "hits"),
    MetricInfo("counter", "cache_joined", "Texts answered by an equal request in progress.", "joined"),
    MetricInfo("counter", "cache_misses", "Texts that had to be translated.", "misses"),
)

PARSER_METRICS = (
    MetricInfo(
        "counter", "parser_operations", "Documents and long marked-up texts that were read or written.", "operations"
    ),
    MetricInfo("counter", "parser_limits_exceeded", "Parser operations that exceeded a limit.", "exceeded"),
    MetricInfo("counter", "parser_failures", "Parser operations that failed because of a defect.", "failed"),
    MetricInfo("counter", "parser_starts", "Parser processes that were started.", "started"),
)

ALL_METRICS = (*REQUEST_METRICS, *FLEET_METRICS, *MODEL_METRICS, *CACHE_METRICS, *PARSER_METRICS)
"""Descriptions of all metrics, for the reference page."""


class Metrics:
    """Metrics of one application, with their own Prometheus registry."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._samplers: list[tuple[Sequence[MetricInfo], Callable[[], object]]] = []
        self._characters = self._new_counter(CHARACTERS)
        # looking up the values of labels takes longer than counting; the cache is bounded as they are
        self._requests = cache(self._new_counter(REQUESTS).labels)
        self._seconds, self._phases = (
            cache(self._new_histogram(info).labels) for info in (REQUEST_SECONDS, PHASE_SECONDS)
        )

    def count_request(self, route: str, method: str, status: int, seconds: float, record: RequestRecord) -> None:
        """Count an answered request. `route` is a template such as /v2/glossaries/{id}, or "" if no route matched."""
        self._requests(route or "none", method if method in METHODS else "other", str(status)).inc()
        self._seconds(route or "none").observe(seconds)
        self._characters.inc(record.characters)
        for phase, duration in record.phases.items():
            self._phases(phase.value).observe(duration)

    def sample(self, metrics: Sequence[MetricInfo], read: Callable[[], object]) -> None:
        """Add `metrics`, whose values are read whenever the metrics are requested.

        `read` returns the object that has the values as its attributes, or such objects by the value of the label.
        """
        self._samplers.append((metrics, read))

    async def text(self) -> bytes:
        sampled = [family for metrics, read in self._samplers for family in _families(metrics, read())]
        # A thread reads and writes the others: some hundred series take 20 ms.
        registry = SimpleNamespace(collect=lambda: chain(self._registry.collect(), sampled))
        return await asyncio.to_thread(generate_latest, cast(Any, registry))

    def _new_counter(self, info: MetricInfo) -> Counter:
        return Counter(METRIC_PREFIX + info.name, info.help, info.labels, registry=self._registry)

    def _new_histogram(self, info: MetricInfo) -> Histogram:
        return Histogram(METRIC_PREFIX + info.name, info.help, info.labels, registry=self._registry, buckets=SECONDS)


def _families(metrics: Sequence[MetricInfo], sampled: object) -> Iterator[Metric]:
    labelled = {(name,): item for name, item in sampled.items()} if isinstance(sampled, Mapping) else {(): sampled}
    for metric in metrics:
        kind = CounterMetricFamily if metric.kind == "counter" else GaugeMetricFamily
        family = kind(METRIC_PREFIX + metric.name, metric.help, labels=metric.labels)
        for labels, item in labelled.items():
            family.add_metric(labels, attrgetter(metric.value)(item))
        yield family
