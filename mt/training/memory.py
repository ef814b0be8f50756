"""The C library's allocator, told to keep what a training step will need again."""

import ctypes
import sys

M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_MAX = -1, -2, -4  # malloc.h of glibc
PAD = 64 << 20  # bytes


def keep_freed_memory() -> bool:
    """Freed memory stays with this process, instead of going back to the kernel, which clears it for each step anew.

    glibc only; elsewhere nothing is changed, and False returned. The process never holds more than its peak.
    """
    if not sys.platform.startswith("linux"):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    return all([mallopt(M_MMAP_MAX, 0), mallopt(M_TRIM_THRESHOLD, -1), mallopt(M_TOP_PAD, PAD)])
