"""Execution of the stages of a build on a Ray cluster. All machines share the folders of the build and of the corpora.

A stage needs as many cores, or GPUs, as its training has processes. If a machine dies, Ray starts its stages on other
machines, where they resume.
"""

import os
import subprocess
from collections.abc import Mapping
from typing import Any, Self

from mt.build.execution import StageCommand
from mt.cli.ray_cluster import connect, disconnect
from mt.errors import RequestError
from mt.processes import end_with_parent

try:
    import ray
except ModuleNotFoundError:  # an optional dependency; `connect` reports that it is missing
    ray = None

MAX_RESTARTS = 9  # of a stage, after machines died


def execute(command: StageCommand) -> int:
    """Run a program in this process of the cluster, and return its exit status."""
    parent = os.getpid()
    with command.log.open("ab") as log, command.output.open("wb") as output:
        return subprocess.run(
            command.argv,
            check=False,
            cwd=command.folder,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=log,
            preexec_fn=lambda: end_with_parent(parent),
        ).returncode


class ClusterExecution:
    """A program that a task of the cluster runs. `task` is the reference to its exit status."""

    def __init__(self, task: Any) -> None:
        self._task = task

    def wait(self, seconds: float) -> int | None:
        finished, _ = ray.wait([self._task], timeout=seconds)
        return int(ray.get(self._task)) if finished else None

    def stop(self) -> None:
        ray.cancel(self._task, force=True)


class ClusterExecutor:
    """Context manager that executes programs on the machines of a Ray cluster."""

    def __init__(self, address: str, device: str, processes: int | None) -> None:
        """Store the address of the cluster, the device of the stages, and the processes of a training.

        `device` is auto, cpu or cuda. With auto, stages use GPUs if the cluster has any.
        """
        self._address = address
        self._requested = device
        self.processes = processes or 1
        self.device = "cpu"
        self.slots = 1

    def __enter__(self) -> Self:
        """Connect to the cluster. Raises: RequestError if no cluster answers, or it lacks the device."""
        connect(self._address)
        resources: Mapping[str, float] = ray.cluster_resources()
        gpus, cores = (int(resources.get(name, 0)) for name in ("GPU", "CPU"))
        if self._requested not in ("auto", "cpu", "cuda"):
            raise RequestError(f"--device is {self._requested!r}; accepted with --ray: auto, cpu or cuda")
        self.device = "cuda" if self._requested == "cuda" or (self._requested == "auto" and gpus) else "cpu"
        units = gpus if self.device == "cuda" else cores
        if units < self.processes:
            name = "GPUs" if self.device == "cuda" else "cores"
            raise RequestError(f"--processes is {self.processes}; accepted: at most {units}, the {name} of the cluster")
        self.slots = units // self.processes
        return self

    def __exit__(self, *error: object) -> None:
        disconnect()

    def start(self, command: StageCommand) -> ClusterExecution:
        resource = {"num_gpus" if self.device == "cuda" else "num_cpus": self.processes}
        return ClusterExecution(ray.remote(execute).options(max_retries=MAX_RESTARTS, **resource).remote(command))
