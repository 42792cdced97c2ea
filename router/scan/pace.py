"""How fast windows are read: by one scan, and by a deployment.

A scan's own pace says whether it is behind. The deployment's says what larger windows would save, which is only what a
call costs besides its text. That is told apart from the text's share by windows of different sizes; while all sizes
are alike nothing is claimed.

Time is that of the deployment's work: windows in flight together share it evenly, so that the times of all of them
add up to the time that passed.

Sources: "Long inputs" (a scan that falls behind), "When the decision model is overloaded" (learn no pace from the
wait), `rulings.md` 12.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

_KEPT: Final = 0.99
"""What an earlier window still counts for when the next one has been read."""
_LEAST_WEIGHT: Final = 4.0
_LEAST_SPREAD: Final = 0.05
"""Sizes must differ by this share of their mean before a cost per call is read from them."""


class Cost(NamedTuple):
    """Seconds of a deployment's work: for a call, and for each byte in it."""

    call: float
    byte: float

    def of(self, calls: int, size: int) -> float:
        """What `calls` calls with `size` bytes among them take."""
        return calls * self.call + size * self.byte


class DeploymentPace:
    """What windows have cost at one deployment, recent ones most. Shared by the requests of a process."""

    __slots__ = ("_size", "_size_size", "_size_time", "_time", "_weight")

    def __init__(self) -> None:
        self._weight = self._size = self._time = self._size_size = self._size_time = 0.0

    def learn(self, size: int, seconds: float) -> None:
        """A window of `size` bytes took `seconds` of work, in a scan that has never waited."""
        self._weight = self._weight * _KEPT + 1
        self._size = self._size * _KEPT + size
        self._time = self._time * _KEPT + seconds
        self._size_size = self._size_size * _KEPT + size * size
        self._size_time = self._size_time * _KEPT + size * seconds

    @property
    def cost(self) -> Cost | None:
        """None while not enough is known to tell a call's own cost."""
        if self._weight < _LEAST_WEIGHT:
            return None
        mean, time = self._size / self._weight, self._time / self._weight
        spread = self._size_size / self._weight - mean * mean
        if mean <= 0 or spread < (_LEAST_SPREAD * mean) ** 2:
            return None
        byte = (self._size_time / self._weight - mean * time) / spread
        if byte <= 0:
            return None
        return Cost(max(time - byte * mean, 0.0), byte)


class ScanPace:
    """Bytes that one scan has read since it began, or since the model answered again."""

    __slots__ = ("_read", "_seconds", "_since", "windows")

    def __init__(self) -> None:
        self._since: float | None = None
        self._read = 0
        self._seconds = 0.0
        self.windows = 0

    def begin(self, now: float) -> None:
        """A window is sent."""
        if self._since is None:
            self._since = now

    def restart(self, now: float) -> None:
        """The model answers again: what was before says nothing."""
        self._since, self._read, self._seconds, self.windows = now, 0, 0.0, 0

    def read(self, size: int, sent: float, now: float) -> None:
        """A window that was sent at `sent` was answered."""
        self._read += size
        self._seconds += now - max(sent, self._since or 0.0)
        self.windows += 1

    def finish(self, left: int, flying: Iterable[tuple[int, float]], now: float) -> float | None:
        """When `left` bytes and those in flight would have been read; None while nothing has been.

        `flying` are the windows in flight: bytes, and when they were sent. Windows that are read side by side end
        together, so what these have had of the usual time counts as read.
        """
        if self._since is None or self._read == 0:
            return None
        read: float = self._read
        rest: float = left
        for size, sent in flying:
            usual = self._seconds / self._read * size
            had = now - max(sent, self._since)
            share = min(had / usual, 1.0) if usual > 0 else 1.0
            read += share * size
            rest += (1 - share) * size
        return now + rest * max(now - self._since, 0.0) / read


class Shared:
    """The time that passes, divided among those in flight."""

    __slots__ = ("_at", "_in_flight", "_time")

    def __init__(self) -> None:
        self._time = self._at = 0.0
        self._in_flight = 0

    def change(self, by: int, now: float) -> float:
        """One more or one less in flight. What each of those in flight from the start would have had of the time."""
        if self._in_flight:
            self._time += max(now - self._at, 0.0) / self._in_flight
        self._at = now
        self._in_flight += by
        return self._time
