"""A circuit breaker: a model that fails again and again is left alone for a while instead of waited for.

Sans-IO: events and a `now` in monotonic seconds go in, a permission comes out. Closed, every call may be made. After
`FAILURES` failures in a row it is open: no call is made until a pause has passed. Then it is half open: one call at a
time tries; its success closes the breaker, its failure opens it again for twice as long. A refusal of the model, an
overload say, is an answer: it proves that somebody is there.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

FAILURES: Final = 5
FIRST_PAUSE_S: Final = 1.0
LONGEST_PAUSE_S: Final = 30.0


class BreakerState(StrEnum):
    """A closed set, because it becomes a metric label."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


class Breaker:
    """The breaker of one deployment."""

    __slots__ = ("_failures", "_limit", "_open_until", "_pause_s", "_trying")

    def __init__(self, failures: int = FAILURES) -> None:
        self._limit = failures
        self._failures = 0
        self._pause_s = FIRST_PAUSE_S
        self._open_until: float | None = None
        self._trying = False

    def state(self, now: float) -> BreakerState:
        """What it is now."""
        if self._open_until is None:
            return BreakerState.CLOSED
        return BreakerState.HALF_OPEN if now >= self._open_until else BreakerState.OPEN

    def admit(self, now: float) -> bool:
        """Whether a call may be made now. One that was admitted must be told of by exactly one of the other methods."""
        if self._open_until is None:
            return True
        if now < self._open_until or self._trying:
            return False
        self._trying = True
        return True

    def succeeded(self) -> None:
        """A call was answered, be it with a refusal."""
        self._failures = 0
        self._pause_s = FIRST_PAUSE_S
        self._open_until = None
        self._trying = False

    def failed(self, now: float) -> bool:
        """A call found nobody, or no answer in its time. True when this opens the breaker that was closed."""
        self._failures += 1
        if self._open_until is None:
            if self._failures < self._limit:
                return False
            self._open_until = now + self._pause_s
            return True
        if self._trying:
            self._trying = False
            self._pause_s = min(self._pause_s * 2, LONGEST_PAUSE_S)
            self._open_until = now + self._pause_s
        return False

    def abandoned(self) -> None:
        """A call was given up before it could show anything."""
        self._trying = False
