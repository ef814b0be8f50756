"""Work over static memory: run as it stands, or captured once as a CUDA graph and then replayed.

Work is a function without arguments that reads and writes tensors which stay where they are, allocates only what it
drops again, and never asks the host; nobody wants its result. `Eager` runs it and is the reference; `CudaGraphs` sends
a whole decoder step, some 160 kernels for base, to the device in one launch of about ten microseconds, where the
kernels one by one take a millisecond of the host's time.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol

import torch
from torch import Tensor

Work = Callable[[], object]


class Program(Protocol):
    """Work that is done again and again."""

    def replay(self) -> None:
        """Do the work once more, in place; on an accelerator it is only queued."""


class Flags(Protocol):
    """Booleans on their way to the host."""

    def read(self) -> list[bool]:
        """As they were when they were asked for; waits only if the device has not come that far yet."""


class Executor(Protocol):
    """How work runs on a device, and how the host talks to it without holding it up."""

    device: torch.device

    def program(self, work: Work) -> Program:
        """Work that is to be repeated."""

    def fetch(self, flags: Tensor) -> Flags:
        """Begin to bring bool [B] to the host."""

    def send(self, tensor: Tensor) -> Tensor:
        """A tensor of the host on the device, where what follows finds it."""

    def fence(self) -> None:
        """What is queued so far must be done before anything is read `aside`."""

    def aside(self) -> AbstractContextManager[object]:
        """In this context the host reads, without waiting for what is queued since the last fence."""

    def finish(self) -> None:
        """Wait for all that is queued."""

    @property
    def workspace(self) -> int:
        """Bytes held for what programs allocate while they run."""


class Eager:
    """Work is run as it stands: on a CPU, and where graphs are not wanted."""

    def __init__(self, device: torch.device) -> None:
        self.device = device

    def program(self, work: Work) -> Program:
        return _Plain(work)

    def fetch(self, flags: Tensor) -> Flags:
        return _Copied(flags.clone())

    def send(self, tensor: Tensor) -> Tensor:
        return tensor.to(self.device)

    def fence(self) -> None:
        return

    def aside(self) -> AbstractContextManager[object]:
        return nullcontext()

    def finish(self) -> None:
        return

    @property
    def workspace(self) -> int:
        return 0


class _Plain:
    def __init__(self, work: Work) -> None:
        self._work = work

    def replay(self) -> None:
        self._work()


class _Copied:
    def __init__(self, flags: Tensor) -> None:
        self._flags = flags

    def read(self) -> list[bool]:
        found: list[bool] = self._flags.tolist()
        return found


class CudaGraphs:
    """Work is captured when it is asked for a second time; the first time it runs as it stands.

    That first run is the warm-up that a capture needs (libraries load, cuBLAS takes its workspace), and it is not
    thrown away: work changes its state in place, so that a run for nothing would be a step too many. Work that is
    done once costs no capture, which takes tens of milliseconds.

    All graphs share one memory pool. That is sound because they run one after another on one stream, and nothing in
    the pool is read by a later replay: what lasts is static memory, allocated outside of it. An empty graph holds the
    pool, which must not be used again once its last graph is gone. One thread captures at a time in a process.
    """

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.workspace = 0
        self._pool = torch.cuda.graph_pool_handle()
        # Warm-up and capture share a stream, and by that cuBLAS's workspace.
        self._stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        self._aside = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        self._anchored = torch.zeros(1, device=device)
        self._anchor = self.capture(self._anchored.zero_)

    def program(self, work: Work) -> Program:
        return _Captured(self, work)

    def fetch(self, flags: Tensor) -> Flags:
        return _Fetched(flags)

    def send(self, tensor: Tensor) -> Tensor:
        # From pageable memory the host would wait until the device has done all that is queued.
        return tensor if tensor.is_cuda else tensor.pin_memory().to(self.device, non_blocking=True)

    def fence(self) -> None:
        self._aside.wait_stream(torch.cuda.current_stream(self.device))

    def aside(self) -> AbstractContextManager[object]:
        return torch.cuda.stream(self._aside)

    def finish(self) -> None:
        torch.cuda.current_stream(self.device).synchronize()

    def warm_up(self, work: Work) -> None:
        """Run work as it stands on the stream on which it will be captured."""
        here = torch.cuda.current_stream(self.device)
        self._stream.wait_stream(here)
        with torch.cuda.stream(self._stream):
            work()
        here.wait_stream(self._stream)

    def capture(self, work: Work) -> torch.cuda.CUDAGraph:
        """Record work without doing it."""
        graph = torch.cuda.CUDAGraph()
        torch.cuda.synchronize(self.device)
        torch.cuda.empty_cache()  # as torch.cuda.graph does too: what is reserved from here on is the pool's
        before = torch.cuda.memory_reserved(self.device)
        with torch.cuda.graph(graph, pool=self._pool, stream=self._stream, capture_error_mode="thread_local"):
            work()
        self.workspace += torch.cuda.memory_reserved(self.device) - before
        return graph


class _Captured:
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


class _Fetched:
    def __init__(self, flags: Tensor) -> None:
        self._host = torch.empty(flags.shape, dtype=flags.dtype, pin_memory=True)
        self._host.copy_(flags, non_blocking=True)
        self._arrived = torch.cuda.Event()  # type: ignore[no-untyped-call]
        self._arrived.record(torch.cuda.current_stream(flags.device))

    def read(self) -> list[bool]:
        self._arrived.synchronize()
        found: list[bool] = self._host.tolist()
        return found
