"""Executors run work over static memory: directly, or as a CUDA graph that is captured once and then replayed.

Work is a function without arguments or result that reads and writes tensors with fixed addresses, allocates only
temporary memory, and never waits for the device. `Eager` calls the function and is the reference. `CudaGraphs` launches
a whole decoder step in about 10 microseconds; separate launches of its kernels take about 1 millisecond of host time.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Protocol

import torch
from torch import Tensor

Work = Callable[[], object]
Program = Callable[[], object]
"""Function that runs work, as often as it is called. On a GPU, it only queues the work."""

Fetched = Callable[[], Tensor]
"""Function that waits for a copy on the host, and not for work that was queued later, and returns the copy."""


class Executor(Protocol):
    """Executor of work on a device, which transfers data while the device works."""

    device: torch.device

    def program(self, work: Work) -> Program:
        """Return a program that runs `work`."""

    def fetch(self, tensor: Tensor) -> Fetched:
        """Start the copying of `tensor`, which must be contiguous, to the host. Its present values are copied."""

    def send(self, tensor: Tensor, into: Tensor | None = None) -> Tensor:
        """Queue the copying of a host tensor to the device. Return the device tensor: `into`, or a new one."""

    def fence(self) -> None:
        """Make later calls of `select` wait for the work that is queued now."""

    def select(self, table: Tensor, entries: Sequence[int]) -> Tensor:
        """Copy table[entries] to the host and return the copy. `table` is on the device.

        Wait only for work queued before the last `fence`.
        """

    def finish(self) -> None:
        """Wait for all queued work."""

    def release(self) -> None:
        """Return the memory that torch has cached, and does not use, to the device."""


class Eager:
    """Executor that calls the work directly, on CPUs and as the reference for other executors."""

    def __init__(self, device: torch.device) -> None:
        self.device = device

    def program(self, work: Work) -> Program:
        return work

    def fetch(self, tensor: Tensor) -> Fetched:
        copy = tensor.clone()
        return lambda: copy

    def send(self, tensor: Tensor, into: Tensor | None = None) -> Tensor:
        return tensor.to(self.device) if into is None else into.copy_(tensor)

    def fence(self) -> None:
        return

    def select(self, table: Tensor, entries: Sequence[int]) -> Tensor:
        return table[torch.tensor(entries)]

    def finish(self) -> None:
        return

    def release(self) -> None:
        return


class CudaGraphs:
    """Executor that runs work directly the first time, and captures it as a CUDA graph the second time.

    The first run is a normal run and also the warm-up that a capture needs: libraries load, and cuBLAS allocates its
    workspace. Work that runs only once is not captured, because a capture takes milliseconds.

    All graphs share one memory pool. This is safe because they run one after another on one stream, and data that must
    last is in static memory outside of the pool. An empty graph keeps the pool alive: a pool must not be used again
    after its last graph is gone. Only one thread of a process captures at a time.
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

    def fetch(self, tensor: Tensor) -> Fetched:
        host = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)
        host.copy_(tensor, non_blocking=True)
        arrived = torch.cuda.Event()
        arrived.record(torch.cuda.current_stream(self.device))

        def read() -> Tensor:
            arrived.synchronize()
            return host

        return read

    def send(self, tensor: Tensor, into: Tensor | None = None) -> Tensor:
        # Pinned, because a copy from pageable memory would wait for all queued work.
        pinned = tensor.pin_memory()
        return pinned.to(self.device, non_blocking=True) if into is None else into.copy_(pinned, non_blocking=True)

    def fence(self) -> None:
        self._aside.wait_stream(torch.cuda.current_stream(self.device))

    def select(self, table: Tensor, entries: Sequence[int]) -> Tensor:
        with torch.cuda.stream(self._aside):
            fetched = self.fetch(table.index_select(0, self.send(torch.tensor(entries))))
        return fetched()

    def finish(self) -> None:
        torch.cuda.current_stream(self.device).synchronize()

    def release(self) -> None:
        torch.cuda.empty_cache()

    def warm_up(self, work: Work) -> None:
        """Run work directly, on the stream that will capture it later."""
        current = torch.cuda.current_stream(self.device)
        self._stream.wait_stream(current)
        try:
            with torch.cuda.stream(self._stream):
                work()
        finally:  # if `work` fails, later work must still wait for the part of it that was queued
            current.wait_stream(self._stream)

    def capture(self, work: Work) -> torch.cuda.CUDAGraph:
        """Record work without running it.

        Unlike `torch.cuda.graph`, this method does not wait for the device and does not empty torch's caches.
        """
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.stream(self._stream):
            # cuBLAS has one handle for each thread and cannot create it during a capture. The warm-up may have run in
            # another thread.
            torch.cuda.current_blas_handle()
            graph.capture_begin(pool=self._pool, capture_error_mode="thread_local")
            try:
                work()
            except BaseException:
                with suppress(RuntimeError):  # says only that an earlier operation failed
                    graph.capture_end()
                raise
            graph.capture_end()
        return graph


class _GraphProgram:
    def __init__(self, owner: CudaGraphs, work: Work) -> None:
        self._owner = owner
        self._work = work
        self._warm = False
        self._graph: torch.cuda.CUDAGraph | None = None

    def __call__(self) -> None:
        if not self._warm:
            self._owner.warm_up(self._work)
            self._warm = True
            return
        if self._graph is None:
            self._graph = self._owner.capture(self._work)
        self._graph.replay()
