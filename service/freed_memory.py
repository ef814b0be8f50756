"""Return of freed memory to the system."""

import asyncio
import ctypes
import gc
import sys

MMAP_THRESHOLD = -3  # M_MMAP_THRESHOLD of mallopt(3)
BLOCK_BYTES = 1 << 18  # a block of this size is returned to the system when it is freed
COLLECT_BYTES = 8_000_000  # bodies after which garbage is collected
COLLECT_SECONDS = 1.0  # from the end of a request to the collection, when its answer has been sent


def return_large_blocks() -> None:
    """Let glibc return each large block to the system when it is freed.

    By default, glibc puts blocks of up to 32 MB on its heap after the first such block has been freed. Small objects
    behind a large block, such as the body of an upload, then keep it from being returned.
    """
    if sys.platform == "linux" and hasattr(libc := ctypes.CDLL(None), "mallopt"):
        libc.mallopt(MMAP_THRESHOLD, BLOCK_BYTES)


def return_freed_memory() -> None:
    """Return the free memory of all heaps to the system."""
    if sys.platform == "linux" and hasattr(libc := ctypes.CDLL(None), "malloc_trim"):
        libc.malloc_trim(0)


class RequestGarbage:
    """Collects the garbage of large requests, for which the rare full collections of pauses.py are too late.

    A refused upload stays in memory by a reference cycle of its exception, whose traceback has the body.
    """

    def __init__(self) -> None:
        self._bytes = 0

    def add(self, size: int) -> None:
        """Count the body of a request that ends."""
        self._bytes += size
        if self._bytes >= COLLECT_BYTES:
            self._bytes = 0
            asyncio.get_running_loop().call_later(COLLECT_SECONDS, self._collect)

    def _collect(self) -> None:
        gc.collect()
        return_freed_memory()
