"""When a process that ended is started again: a back-off without clock or process, so that it is tested by itself.

Source: reference, runtime processes (back-off from 1 s to 60 s).
"""

from __future__ import annotations

from dataclasses import dataclass

FIRST_DELAY_S = 1.0
LONGEST_DELAY_S = 60.0
STEADY_S = 30.0


@dataclass(slots=True)
class Restarts:
    """Delays before restarts: none at first, then 1 s doubling to 60 s, and from the start again after steady service.

    Service was steady when the process had been ready for `steady_s` seconds. Tell it `ready` and `exited` with a
    monotonic `now`.
    """

    first_s: float = FIRST_DELAY_S
    longest_s: float = LONGEST_DELAY_S
    steady_s: float = STEADY_S
    count: int = 0
    _failures: int = 0
    _ready_at: float | None = None

    def ready(self, now: float) -> None:
        """The process has begun to answer."""
        if self._ready_at is None:
            self._ready_at = now

    def exited(self, now: float) -> float:
        """The process has ended, or could not be started: seconds to wait before the next start."""
        if self._ready_at is not None and now - self._ready_at >= self.steady_s:
            self._failures = 0
        self._ready_at = None
        self.count += 1
        delay = 0.0 if self._failures == 0 else min(self.first_s * 2.0 ** (self._failures - 1), self.longest_s)
        # Past the cap the exponent need not grow: 2.0 ** n would overflow one day.
        self._failures = min(self._failures + 1, 64)
        return delay
