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


@dataclass(kw_only=True)
class FleetCounts:
    """Counters since the start of the service. All parts of a fleet share them, and count where something happens."""

    finished: int = 0  # texts with a translation
    failed: int = 0  # texts that could not be translated
    cancelled: int = 0  # requests whose client disconnected
    expired: int = 0  # requests whose deadline passed
    restarts: int = 0  # restarts of workers
    reloads: int = 0  # models that were loaded by a reload
    refused_reloads: int = 0  # reloads that were refused because a model could not be used
    work: WorkCounts = field(default_factory=WorkCounts)  # of all workers, as of their last heartbeats


@dataclass(kw_only=True)
class FleetStats(FleetCounts):
    """Statistics of the fleet: its counters, and present numbers."""

    requests: int  # requests that are accepted and not yet answered
    refused: int  # requests that were refused because the queue was full (a counter)
    queued: int  # texts that have not been given to a worker
    running: int  # texts that have been given to a worker and are not answered
    workers: int  # workers that should run
    workers_ready: int  # workers that are ready
    models: Mapping[str, ModelStats] = field(default_factory=dict)  # by name
