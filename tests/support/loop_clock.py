"""The part of an event loop that is its clock, moved by the test."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(eq=False)
class Call:
    callback: Callable[[], object]
    cancelled: bool = False

    def cancel(self) -> None:
        self.cancelled = True


class Loop:
    """See the module."""

    def __init__(self) -> None:
        self.now = 0.0
        self._count = itertools.count()
        self._calls: list[tuple[float, int, Call]] = []

    def time(self) -> float:
        return self.now

    def call_at(self, when: float, callback: Callable[[], object]) -> Call:
        call = Call(callback)
        heapq.heappush(self._calls, (when, next(self._count), call))
        return call

    def run(self, until: float = 1e9) -> None:
        while self._calls and self._calls[0][0] <= until:
            when, _, call = heapq.heappop(self._calls)
            if not call.cancelled:
                self.now = max(self.now, when)
                call.callback()
        self.now = max(self.now, min(until, 1e8))

    def run_next(self) -> None:
        """Move on to the next timer that still counts, and call it."""
        while self._calls and self._calls[0][2].cancelled:
            heapq.heappop(self._calls)
        if self._calls:
            self.run(self._calls[0][0])

    @property
    def timers(self) -> int:
        return sum(not call.cancelled for _, _, call in self._calls)
