"""A circuit breaker: a model that fails again and again is left alone for a while instead of waited for.

Sans-IO: events and a `now` in monotonic seconds go in, a permission comes out. Closed, every call may be made. After
`FAILURES` failures in a row it is open: no call is made until a pause has passed. Then it is half open: one call at a
time tries; its success closes the breaker, its failure opens it again for twice as long. A refusal of the model, an
overload say, is an answer: it proves that somebody is there.

Every call that may be made is an `Admission`, which is told how the call ended: so no failure is taken for that of the
call that tries, and none counts twice.
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


class Admission:
    """A call that may be made. Whoever makes it tells how it ended, at the latest by `abandoned`, which does no harm
    after another.

    Of several failures only the first counts. A success counts whenever it comes: a call that was late and is answered
    after all shows that somebody is there.
    """

    __slots__ = ("_breaker", "_told")

    def __init__(self, breaker: Breaker) -> None:
        self._breaker = breaker
        self._told = False

    def succeeded(self) -> None:
        """It was answered, be it with a refusal."""
        self._told = True
        self._breaker._succeeded()

    def failed(self, now: float) -> bool:
        """It found nobody, or no answer in its time. True when this opens the breaker that was closed."""
        return self._tell() and self._breaker._failed(self, now)

    def abandoned(self) -> None:
        """It has ended, or was given up, without having shown anything."""
        if self._tell():
            self._breaker._abandoned(self)

    def _tell(self) -> bool:
        untold, self._told = not self._told, True
        return untold


class Breaker:
    """The breaker of one deployment."""

    __slots__ = ("_failures", "_limit", "_open_until", "_pause_s", "_trying")

    def __init__(self, failures: int = FAILURES) -> None:
        self._limit = failures
        self._failures = 0
        self._pause_s = FIRST_PAUSE_S
        self._open_until: float | None = None
        self._trying: Admission | None = None

    def state(self, now: float) -> BreakerState:
        """What it is now."""
        if self._open_until is None:
            return BreakerState.CLOSED
        return BreakerState.HALF_OPEN if now >= self._open_until else BreakerState.OPEN

    def admit(self, now: float) -> Admission | None:
        """The call that may be made now, or None."""
        if self._open_until is None:
            return Admission(self)
        if now < self._open_until or self._trying is not None:
            return None
        self._trying = Admission(self)
        return self._trying

    def _succeeded(self) -> None:
        self._failures = 0
        self._pause_s = FIRST_PAUSE_S
        self._open_until = None
        self._trying = None

    def _failed(self, admission: Admission, now: float) -> bool:
        self._failures += 1
        if self._open_until is None:
            if self._failures < self._limit:
                return False
            self._open_until = now + self._pause_s
            return True
        if self._trying is admission:
            self._trying = None
            self._pause_s = min(self._pause_s * 2, LONGEST_PAUSE_S)
            self._open_until = now + self._pause_s
        return False

    def _abandoned(self, admission: Admission) -> None:
        if self._trying is admission:
            self._trying = None
