"""Executors of work over static memory: eagerly, or as a CUDA graph that is captured once and replayed.

Work is a function without arguments or result that reads and writes tensors with fixed addresses, allocates only
temporary memory, and never waits for the device. `Eager` calls the function and is the reference. `CudaGraphs` launches
a whole decoder step, about 160 kernels for a base model, in about 10 microseconds; separate launches take about 1
millisecond of host time.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol

import torch
from torch import Tensor

Work = Callable[[], object]


class Program(Protocol):
    """Repeatable work."""

    def replay(self) -> None:
        """Run the work in place. An accelerator only queues the work."""


class Flags(Protocol):
    """Flags of which a copy to the host was started."""

    def read(self) -> list[bool]:
        """Return the flags at the time of `fetch`. Waits if the copy is not complete."""


class Executor(Protocol):
    """Runs work on a device and transfers data while the device works."""

    device: torch.device

    def program(self, work: Work) -> Program:
        """Return a program that repeats the work."""

    def fetch(self, flags: Tensor) -> Flags:
        """Start a copy of bool flags [B] to the host."""

    def send(self, tensor: Tensor) -> Tensor:
        """Queue a copy of a host tensor to the device, after the work queued so far."""

    def fence(self) -> None:
        """Make later reads in `aside` wait for the work that is queued now."""

    def aside(self) -> AbstractContextManager[object]:
        """Return a context in which reads by the host wait only for work queued before the last `fence`."""

    def finish(self) -> None:
        """Wait for all queued work."""


class Eager:
    """Executor that calls the work directly. It is used on CPUs and is the reference."""

    def __init__(self, device: torch.device) -> None:
        self.device = device

    def program(self, work: Work) -> Program:
        return _EagerProgram(work)

    def fetch(self, flags: Tensor) -> Flags:
        return _CopiedFlags(flags.clone())

    def send(self, tensor: Tensor) -> Tensor:
        return tensor.to(self.device)

    def fence(self) -> None:
        return

    def aside(self) -> AbstractContextManager[object]:
        return nullcontext()

    def finish(self) -> None:
        return


class _EagerProgram:
    def __init__(self, work: Work) -> None:
        self._work = work

    def replay(self) -> None:
        self._work()


class _CopiedFlags:
    def __init__(self, flags: Tensor) -> None:
        self._flags = flags

    def read(self) -> list[bool]:
        flags: list[bool] = self._flags.tolist()
        return flags


class CudaGraphs:
    """Executor that runs work eagerly the first time and captures the work as a CUDA graph the second time.

    The first run is the warm-up that a capture needs: libraries load, and cuBLAS allocates its workspace. The first run
    also takes effect as a normal run. Work that runs only once is not captured, since a capture takes tens of
    milliseconds.

    All graphs share one memory pool. This is safe because they run one after another on one stream, and lasting data is
    in static memory outside of the pool. An empty graph keeps the pool alive: a pool must not be used again after its
    last graph is gone. Only one thread of a process captures at a time.
    """

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self._pool = torch.cuda.graph_pool_handle()
        # Warm-up and capture use the same stream, so that they share cuBLAS's workspace.
        self._stream = torch.cuda.Stream(device)
        self._aside = torch.cuda.Stream(device)
        self._anchored = torch.zeros(1, device=device)
        self._anchor = self.capture(self._anchored.zero_)

    def program(self, work: Work) -> Program:
        return _GraphProgram(self, work)

    def fetch(self, flags: Tensor) -> Flags:
        return _AsyncFlags(flags)

    def send(self, tensor: Tensor) -> Tensor:
        # Pinned, because a copy from pageable memory would wait for all queued work.
        return tensor if tensor.is_cuda else tensor.pin_memory().to(self.device, non_blocking=True)

    def fence(self) -> None:
        self._aside.wait_stream(torch.cuda.current_stream(self.device))

    def aside(self) -> AbstractContextManager[object]:
        return torch.cuda.stream(self._aside)

    def finish(self) -> None:
        torch.cuda.current_stream(self.device).synchronize()

    def warm_up(self, work: Work) -> None:
        """Run work eagerly on the stream of the later capture."""
        current = torch.cuda.current_stream(self.device)
        self._stream.wait_stream(current)
        try:
            with torch.cuda.stream(self._stream):
                work()
        finally:  # later work must not overtake the part of failed work that was queued
            current.wait_stream(self._stream)

    def capture(self, work: Work) -> torch.cuda.CUDAGraph:
        """Record work without running it."""
        graph = torch.cuda.CUDAGraph()
        torch.cuda.synchronize(self.device)
        with torch.cuda.graph(graph, pool=self._pool, stream=self._stream, capture_error_mode="thread_local"):
            work()
        return graph


class _GraphProgram:
    def __init__(self, owner: CudaGraphs, work: Work) -> None:
        self._owner = owner
        self._work = work
        self._warm = False
        self._graph: torch.cuda.CUDAGraph | None = None

    def replay(self) -> None:
        if not self._warm:
            self._owner.warm_up(self._work)
            self._warm = True
            return
        if self._graph is None:
            self._graph = self._owner.capture(self._work)
        self._graph.replay()


class _AsyncFlags:
    def __init__(self, flags: Tensor) -> None:
        self._host = torch.empty(flags.shape, dtype=flags.dtype, pin_memory=True)
        self._host.copy_(flags, non_blocking=True)
        self._arrived = torch.cuda.Event()
        self._arrived.record(torch.cuda.current_stream(flags.device))

    def read(self) -> list[bool]:
        self._arrived.synchronize()
        flags: list[bool] = self._host.tolist()
        return flags
