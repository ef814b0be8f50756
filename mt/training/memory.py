"""Settings of the C library's memory allocator."""

import ctypes
import sys

M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_MAX = -1, -2, -4  # malloc.h of glibc
TOP_PAD = 64 << 20  # bytes


def keep_freed_memory() -> bool:
    """Let the C library keep freed memory for the next training step. Return False if it has no such setting.

    Only glibc has this setting. By default, it returns freed memory to the kernel, which must clear the memory before
    it can be used in the next step. The setting does not raise the peak memory of the process.
    """
    if not sys.platform.startswith("linux"):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    return all([mallopt(M_MMAP_MAX, 0), mallopt(M_TRIM_THRESHOLD, -1), mallopt(M_TOP_PAD, TOP_PAD)])
