"""Gauges and counters of the fleet, for logs and metrics."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from service.workers.messages import WorkCounts


@dataclass(frozen=True)
class ModelStats:
    """Statistics of the version of a model that is served now."""

    loaded: bool
    loads: int  # loads into memory, including the first one
    finished: int  # texts with a translation


@dataclass(frozen=True)
class FleetStats:
    """Statistics of the fleet: present numbers (requests, queued, running, workers, workers_ready) and counters.

    The counters begin at the start of the service.
    """

    requests: int  # requests that are accepted and not yet answered
    queued: int  # texts that have not been given to a worker
    running: int  # texts that have been given to a worker and are not answered
    finished: int  # texts with a translation
    failed: int  # texts that could not be translated
    cancelled: int  # requests whose client disconnected
    expired: int  # requests whose deadline passed
    refused: int  # requests that were refused because the queue was full
    restarts: int  # restarts of workers
    reloads: int  # models that were loaded by a reload
    refused_reloads: int  # reloads that were refused because a model could not be used
    work: WorkCounts  # sum of the counters of all workers
    workers: int  # workers that should run
    workers_ready: int  # workers that are ready
    models: Mapping[str, ModelStats] = field(default_factory=dict)  # by name
