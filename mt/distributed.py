"""Processes that train together: started here or by torchrun; who we are, and sums over all of us.

Nothing else in the project knows of ranks.
"""

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

SILENCE = timedelta(minutes=30)  # within an update; a process, or machine, that is heard nothing of for so long is lost
SEPARATE_STORES = "TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1"
MEETING = {"TORCHELASTIC_USE_AGENT_STORE": "True"}  # rank 0, too, meets the others in a store that is there
PATIENCE = timedelta(hours=24)  # while one process prepares the data or validates, the others wait for it


@dataclass(frozen=True)
class World:
    """This process among `size`; a single process is rank 0 of 1."""

    rank: int = 0
    size: int = 1
    local_rank: int = 0
    patient: dist.ProcessGroup | None = None  # of all processes, in which one may keep the others waiting

    @property
    def leads(self) -> bool:
        """Whether this process writes files and shows progress."""
        return self.rank == 0


@contextmanager
def accompanied(command: Sequence[str], processes: int) -> Iterator[None]:
    """Start `command` as ranks 1, 2, ... on this machine and make this process rank 0, as torchrun would.

    They are ended if this process fails. What they say is what rank 0 says, so it is shown only if they failed first.
    """
    if processes == 1:
        yield
        return
    here = "127.0.0.1"
    store = TCPStore(here, 0, processes, is_master=True, wait_for_workers=False)  # a port that is ours already
    shared = {"MASTER_ADDR": here, "MASTER_PORT": str(store.port), "WORLD_SIZE": str(processes), **MEETING}
    with tempfile.TemporaryFile() as said:
        helpers = []
        for rank in map(str, range(1, processes)):
            environment = {**os.environ, **shared, "RANK": rank, "LOCAL_RANK": rank}
            helpers.append(subprocess.Popen(command, env=environment, stdout=said, stderr=said))
        os.environ.update(shared, RANK="0", LOCAL_RANK="0")
        try:
            yield
        except BaseException as error:
            if isinstance(error, RuntimeError) and any(helper.poll() for helper in helpers):
                said.seek(0)
                sys.stderr.write(said.read().decode(errors="replace"))
            for helper in helpers:
                helper.terminate()
            raise
        finally:
            for helper in helpers:
                helper.wait()
            for name in (*shared, "RANK", "LOCAL_RANK"):
                del os.environ[name]


@contextmanager
def joined(device_type: str) -> Iterator[World]:
    """Join the processes that torchrun started, if it did: nccl between GPUs, gloo between CPUs."""
    if "RANK" not in os.environ:
        yield World()
        return
    dist.init_process_group("nccl" if device_type == "cuda" else "gloo", timeout=SILENCE)
    try:
        patient = dist.new_group(timeout=PATIENCE)
        yield World(dist.get_rank(), dist.get_world_size(), int(os.environ.get("LOCAL_RANK", "0")), patient)
    finally:
        dist.destroy_process_group()


def restarts() -> int:
    """How often torchrun starts its processes again when one of them fails."""
    return int(os.environ.get("TORCHELASTIC_MAX_RESTARTS", "0"))


def meets_the_dead() -> bool:
    """Whether torchrun's processes meet in a store that still has the addresses of those that were there before.

    They then wait for the dead, at random (pytorch/pytorch, issue 135712), unless SEPARATE_STORES is set for torchrun.
    """
    return os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"


def all_reduce(world: World, values: Tensor) -> Tensor:
    """The sum over all processes, in place."""
    if world.size > 1:
        dist.all_reduce(values)
    return values


def all_reduce_gradients(world: World, parameters: Iterable[torch.nn.Parameter], dtype: torch.dtype) -> None:
    """Sum gradients over all processes, in one message of `dtype`. A process without a batch counts as zeros."""
    if world.size == 1:
        return
    parameters = list(parameters)
    flat = torch.zeros(sum(p.numel() for p in parameters), dtype=dtype, device=parameters[0].device)
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
    """Every process's value, by rank, in every process."""
    if world.size == 1:
        return [value]
    gathered = [value] * world.size
    dist.all_gather_object(gathered, value)
    return gathered


def barrier(world: World) -> None:
    """Wait for all processes, however long one of them takes."""
    if world.size > 1:
        dist.barrier(world.patient)
