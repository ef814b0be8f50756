"""Distributed training: starting processes without torchrun, ranks of processes, and collective operations."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeVar

import torch
import torch.distributed as dist
from torch import Tensor
from torch._C._distributed_c10d import TCPStore

T = TypeVar("T")

UPDATE_TIMEOUT = timedelta(minutes=30)  # limit of a collective operation in an update, to notice lost processes
EXISTING_STORE = {"TORCHELASTIC_USE_AGENT_STORE": "True"}  # tells torch that rank 0 finds a running store
BARRIER_TIMEOUT = timedelta(hours=24)  # limit for processes that wait while rank 0 prepares the data or validates


@dataclass(frozen=True)
class World:
    """Rank of this process among all `size` processes.

    Without distributed training, the rank is 0 and the size is 1.
    """

    rank: int = 0
    size: int = 1
    local_rank: int = 0
    barrier_group: dist.ProcessGroup | None = None  # a group of all processes, with a long timeout

    @property
    def is_main(self) -> bool:
        """True if this is rank 0, which writes files and shows progress."""
        return self.rank == 0


@contextmanager
def spawn_ranks(command: Sequence[str], processes: int) -> Iterator[None]:
    """Start `command` as ranks 1, 2, ... on this machine, and make this process rank 0, as torchrun would.

    If this process fails, the other ranks are killed. The other ranks print the same as rank 0. Their output is
    therefore shown only if one of them failed before rank 0.
    """
    if processes == 1:
        yield
        return
    address = "127.0.0.1"
    store = TCPStore(address, 0, processes, is_master=True, wait_for_workers=False)  # binds a free port
    shared = {"MASTER_ADDR": address, "MASTER_PORT": str(store.port), "WORLD_SIZE": str(processes), **EXISTING_STORE}
    with tempfile.TemporaryFile() as output:
        ranks = []
        for rank in map(str, range(1, processes)):
            environment = {**os.environ, **shared, "RANK": rank, "LOCAL_RANK": rank}
            ranks.append(subprocess.Popen(command, env=environment, stdout=output, stderr=output))
        os.environ.update(shared, RANK="0", LOCAL_RANK="0")
        try:
            yield
        except BaseException as error:
            if isinstance(error, RuntimeError) and any(process.poll() for process in ranks):
                output.seek(0)
                sys.stderr.write(output.read().decode(errors="replace"))
            for process in ranks:
                process.kill()  # in a collective operation, which waits for this process, it acts on no other signal
            raise
        finally:
            for process in ranks:
                process.wait()
            for name in (*shared, "RANK", "LOCAL_RANK"):
                del os.environ[name]


@contextmanager
def join_process_group(device_type: str) -> Iterator[World]:
    """Join the process group that torchrun or `spawn_ranks` prepared, with the backend nccl on GPUs and gloo on CPUs.

    Yield the World. If this process was started by neither of the two, its size is 1.
    """
    if "RANK" not in os.environ:
        yield World()
        return
    dist.init_process_group("nccl" if device_type == "cuda" else "gloo", timeout=UPDATE_TIMEOUT)
    try:
        # NCCL connects at the first operation, and waits 30 minutes for the others, whatever the timeout is.
        barrier_group = dist.new_group(timeout=BARRIER_TIMEOUT, backend="gloo")
        yield World(dist.get_rank(), dist.get_world_size(), int(os.environ.get("LOCAL_RANK", "0")), barrier_group)
    finally:
        dist.destroy_process_group()


def local_rank() -> int | None:
    """Return the rank of this process among those of its machine; None if neither torchrun nor `spawn_ranks` ran."""
    return int(os.environ["LOCAL_RANK"]) if "RANK" in os.environ else None


def all_reduce(world: World, values: Tensor) -> Tensor:
    """Sum `values` over all processes in place. Return `values`."""
    if world.size > 1:
        dist.all_reduce(values)
    return values


def all_reduce_gradients(world: World, parameters: Iterable[torch.nn.Parameter]) -> None:
    """Sum the gradients of `parameters` over all processes in place, in float32. A missing gradient counts as zeros."""
    if world.size == 1:
        return
    parameters = list(parameters)
    flat = torch.zeros(sum(p.numel() for p in parameters), dtype=torch.float32, device=parameters[0].device)
    parts = [
        part.view_as(p) for part, p in zip(torch.split(flat, [p.numel() for p in parameters]), parameters, strict=True)
    ]
    for part, parameter in zip(parts, parameters, strict=True):
        if parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
        else:
            part.copy_(parameter.grad)
    dist.all_reduce(flat)
    for part, parameter in zip(parts, parameters, strict=True):
        assert parameter.grad is not None
        parameter.grad.copy_(part)


def gather_objects(world: World, value: T) -> list[T]:
    """Return the values of all processes, ordered by rank. Every process must call this and gets the same list."""
    if world.size == 1:
        return [value]
    gathered = [value] * world.size
    dist.all_gather_object(gathered, value)
    return gathered


def barrier(world: World) -> None:
    """Wait until all processes have called this function, but at most for `BARRIER_TIMEOUT`."""
    if world.size > 1:
        dist.barrier(world.barrier_group)
