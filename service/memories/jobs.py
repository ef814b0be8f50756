"""Jobs that import and export translation memories, by DeepL's contract.

A job lives in memory, for an hour: it names a file to upload or to download, and keeps the outcome of an import.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from uuid import uuid4

from cachetools import TTLCache

from service.errors import NotFound, shorten

SECONDS = 3600.0  # lifetime of a job
MAX_JOBS, MAX_JOBS_PER_CALLER = 1000, 20  # beyond them, jobs are forgotten


class JobStatus(StrEnum):
    """Status of a job. An export is completed at once: its file is written while it is downloaded."""

    AWAITING_INPUT = "awaiting_input"
    PROCESSING = "processing"
    COMPLETED = "completed"
    FAILED = "failed"


@dataclass
class MemoryJob:
    """An import of the file `name`, of `size` bytes, or an export of the memory `memory` (`name` is "").

    Who knows the id of a job may upload or download its file. Times are seconds since 1970.
    """

    owner: str
    name: str = ""
    size: int = 0
    content_type: str = "application/xml"
    status: JobStatus = JobStatus.AWAITING_INPUT
    memory: str = ""  # id of the memory, once there is one
    skipped: int = 0  # units that an import has left out
    error: str = ""
    uploading: asyncio.Lock = field(default_factory=asyncio.Lock)  # held while an upload is imported
    id: str = field(default_factory=lambda: str(uuid4()))
    created: float = field(default_factory=time.time)
    updated: float = field(default_factory=time.time)

    @property
    def is_import(self) -> bool:
        return bool(self.name)

    @property
    def expires(self) -> float:
        return self.created + SECONDS

    def set(self, status: JobStatus) -> None:
        self.status, self.updated = status, time.time()


class MemoryJobs:
    """The jobs of all callers."""

    def __init__(self) -> None:
        self._jobs: TTLCache[str, MemoryJob] = TTLCache(MAX_JOBS, SECONDS)

    def add(self, job: MemoryJob) -> MemoryJob:
        """Add a job. If its owner has too many, forget the oldest; if there are too many, that of who has the most."""
        if len(self._jobs) >= MAX_JOBS:
            [(owner, _)] = Counter(one.owner for one in list(self._jobs.values())).most_common(1)
            self._jobs.pop(self._of(owner)[0].id, None)
        owned = self._of(job.owner)
        for oldest in owned[: max(0, len(owned) + 1 - MAX_JOBS_PER_CALLER)]:
            self._jobs.pop(oldest.id, None)
        self._jobs[job.id] = job
        return job

    def file(self, id: str, is_import: bool) -> MemoryJob:
        """Return the job whose file is uploaded (`is_import`) or downloaded. Raises: NotFound if there is none."""
        return self._find(id, lambda job: job.is_import == is_import)

    def owned(self, owner: str, id: str) -> MemoryJob:
        """Return a job of the caller `owner`. Raises: NotFound if it does not exist, or belongs to another caller."""
        return self._find(id, lambda job: job.owner == owner)

    def export(self, owner: str, memory: str) -> MemoryJob | None:
        """Return the job that exports a memory for the caller `owner`, if there is one."""
        return next((job for job in self._of(owner) if not job.is_import and job.memory == memory), None)

    def _find(self, id: str, accept: Callable[[MemoryJob], bool]) -> MemoryJob:
        job: MemoryJob | None = self._jobs.get(id)
        if job is None or not accept(job):
            raise NotFound(f"There is no job {shorten(id)}; jobs are deleted after an hour")
        return job

    def _of(self, owner: str) -> list[MemoryJob]:
        """Return the jobs of a caller, the oldest first."""
        return [job for id in list(self._jobs) if (job := self._jobs.get(id)) and job.owner == owner]
