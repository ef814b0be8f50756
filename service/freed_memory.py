"""Return of freed memory to the operating system."""

import asyncio
import ctypes
import re
import sys
from functools import cache
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Any, TypeVar

T = TypeVar("T")

MMAP_THRESHOLD = -3  # M_MMAP_THRESHOLD of mallopt(3)
BLOCK_BYTES = 1 << 18  # a block of this size is returned to the system when it is freed
PIECE = 100  # items that are freed in one step: sentences with alternatives and links take 1 ms
RETURN_BYTES = 8_000_000  # size of the bodies after which free memory is returned
RETURN_SECONDS = 1.0  # time between the end of a request and the return; the answer is sent meanwhile


def return_large_blocks() -> None:
    """Let glibc return each large block to the operating system when the block is freed.

    By default, glibc puts blocks of up to 32 MB on its heap after the first such block has been freed. It then cannot
    return a large block, such as the body of an upload, while small objects lie behind the block on the heap.
    """
    if sys.platform == "linux" and hasattr(libc := ctypes.CDLL(None), "mallopt"):
        libc.mallopt(MMAP_THRESHOLD, BLOCK_BYTES)


def memory_bytes(name: str) -> int:
    """Return the value `name`, such as VmHWM, from /proc/self/status in bytes; 0 if it is missing.

    getrusage would include the parent's peak.
    """
    status = Path("/proc/self/status")
    match = re.search(rf"^{name}:\s+(\d+) kB", status.read_text() if status.exists() else "", re.MULTILINE)
    return 1024 * int(match[1]) if match else 0


def return_freed_memory() -> None:
    """Return the free memory of all heaps of glibc to the operating system."""
    if sys.platform == "linux" and hasattr(libc := ctypes.CDLL(None), "malloc_trim"):
        libc.malloc_trim(0)


class LongList(list[T]):
    """List whose items a thread frees in pieces: the event loop works between the pieces.

    The items of a list are freed in one step that keeps the interpreter lock: 200,000 pairs of texts took 48 ms. A list
    of many short lists of this type takes little time, too.
    """

    __slots__ = ()

    def __del__(self) -> None:
        if len(self) > 1 and not sys.is_finalizing():  # a thread that is started then never begins
            _freed_lists().put(self)  # a copy would touch each item


@cache
def _freed_lists() -> "SimpleQueue[list[Any]]":
    """Return the queue of the thread that frees lists. A destructor may call its method `put` at any time."""
    lists: SimpleQueue[list[Any]] = SimpleQueue()

    def free() -> None:
        while items := lists.get():
            while items:
                del items[-PIECE:]

    Thread(target=free, daemon=True).start()
    return lists


class RequestMemory:
    """Return of the memory of large requests to the operating system, without a garbage collection.

    A collection stops the event loop: 5 ms with the objects of an idle service, 40 ms with those of a long document.
    """

    def __init__(self, seconds: float = RETURN_SECONDS) -> None:
        self._bytes, self._seconds = 0, seconds

    def add(self, size: int) -> None:
        """Count the body of a finished request; `size` is in bytes. After RETURN_BYTES, schedule the return."""
        self._bytes += size
        if self._bytes >= RETURN_BYTES:
            self._bytes = 0
            loop = asyncio.get_running_loop()
            loop.call_later(self._seconds, loop.run_in_executor, None, return_freed_memory)
