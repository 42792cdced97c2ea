"""Large pages for what is loaded and stays: the weights, above all.

A forward pass walks through all weights. In pages of 4 KiB that is more than a core has address translations for, so
each pass looks most of them up anew and drives out everybody else's, of the code around the model too. In pages of
2 MiB they fit: a question about 128 tokens, 32 ms of forward pass, came 1 ms sooner.

Memory is asked for nowhere: blocks that are in use already are moved together (`MADV_COLLAPSE`, Linux 6.1). What is
allocated later keeps its small pages, so that memory still goes back as it did.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

_MADV_COLLAPSE = 25
_PAGE = 2 << 20
_FULL = 0.9
"""How much of a block must be in use already: moving together would fill up the rest."""


def collapse() -> int:
    """Move this process's large blocks together; takes some milliseconds a megabyte. Returns how many bytes now are.

    0 where the kernel cannot or will not, which changes nothing.
    """
    try:
        madvise = ctypes.CDLL(None).madvise
        lines = Path("/proc/self/smaps").read_text("ascii", "replace").splitlines()
    except (AttributeError, OSError):
        return 0
    madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    return move(blocks(lines), lambda start, size: madvise(start, size, _MADV_COLLAPSE) == 0)


def move(found: Iterable[tuple[int, int]], advise: Callable[[int, int], bool]) -> int:
    """Have `advise` (start, size) move blocks together; the sizes of those that it could."""
    return sum(size for start, size in found if advise(start, size))


def blocks(smaps: Iterable[str]) -> Iterator[tuple[int, int]]:
    """Start and size of the whole large pages in private memory that is in use, from the lines of `/proc/PID/smaps`.

    Not of stacks and such, which the kernel gives names to, and not of files.
    """
    start = end = 0
    for line in smaps:
        words = line.split()
        if words[0] == "Rss:":
            if int(words[1]) * 1024 >= _FULL * (end - start):
                first, last = -(-start // _PAGE) * _PAGE, end // _PAGE * _PAGE
                if first < last:
                    yield first, last - first
            start = end = 0
        elif "-" in words[0] and not words[0].endswith(":"):
            named = len(words) > 5 and words[5] != "[heap]"
            start, end = (0, 0) if named or words[1] != "rw-p" else (int(at, 16) for at in words[0].split("-"))
