"""When ONNX Runtime's arena gives back what long passes took.

The arena keeps what the largest pass ever took unless a pass is told to give back, and fetching it anew for the next
one costs page faults: a tenth of a pass of 32,000 tokens through a small model. The windows of a scan are many long
passes in a row, so what they took is kept from one to the next: until the queue has been empty for a moment, until
short passes alone have come for a while, or until it is more than a limit. (Measured: docs/benchmarks.md, "runtime".)
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

LONG_TOKENS: Final = 1024
"""Passes of more tokens than this are long, padding included. What shorter ones take is never worth fetching anew."""
MOST_KEPT: Final = 256 << 20
"""Bytes by which long passes may make the process grow before the next pass gives back."""
SHORT_PASSES: Final = 64
"""After so many short passes without a long one, no long one is expected."""

_PAGE = os.sysconf("SC_PAGE_SIZE")


def resident_bytes(statm: Path = Path("/proc/self/statm")) -> int:
    """Resident memory of this process; 0 where the system does not tell, and then there is no limit."""
    try:
        return int(statm.read_text("ascii").split()[1]) * _PAGE
    except (OSError, IndexError, ValueError):
        return 0


class Keeping:
    """Follows the passes of one session. Tell it of each; not for several threads at once."""

    __slots__ = ("_least", "_long", "_resident", "_short", "_too_much")

    def __init__(self, resident: Callable[[], int] = resident_bytes) -> None:
        """`resident` tells the memory that the process has now, in bytes."""
        self._resident = resident
        self._least: int | None = None
        self._long = False
        self._short = 0
        self._too_much = False

    @property
    def owes(self) -> bool:
        """Whether a long pass has run since memory was given back."""
        return self._long

    def due(self, tokens: int) -> bool:
        """Whether the pass that comes next, of so many tokens, is to give back what is free at its end.

        The first long one is: the limit counts from what is left then.
        """
        first = tokens > LONG_TOKENS and self._least is None
        return first or self._too_much or (self._long and self._short >= SHORT_PASSES)

    def ran(self, tokens: int, *, gave_back: bool) -> None:
        """A pass of so many tokens has run."""
        if gave_back:
            self._least = self._resident()
            self._long = self._too_much = False
            self._short = 0
        elif tokens > LONG_TOKENS:
            self._long, self._short = True, 0
            self._too_much = self._resident() - (self._least or 0) > MOST_KEPT
        elif self._long:
            self._short += 1
