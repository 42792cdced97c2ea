"""glibc's allocator, told to give memory back.

Left to itself it raises the size from which blocks are mapped one by one up to 32 MiB, and keeps a heap of up to 64 MiB
for each thread; tensors of random sizes then fragment those heaps and the process grows for hours. (Measured:
docs/benchmarks.md, "soak".)
"""

from __future__ import annotations

import ctypes

_M_MMAP_THRESHOLD, _M_ARENA_MAX = -3, -8
_MAPPED_FROM = 1 << 20
_HEAPS = 2


def give_memory_back() -> bool:
    """Map large blocks one by one, and share two heaps; False where libc cannot. Call before threads start."""
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):
        return False
    return bool(mallopt(_M_MMAP_THRESHOLD, _MAPPED_FROM)) and bool(mallopt(_M_ARENA_MAX, _HEAPS))
