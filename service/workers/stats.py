"""Counters of the fleet, for logs and metrics."""

from dataclasses import dataclass, field

from service.workers.messages import WorkCounts


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
