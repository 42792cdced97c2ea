"""Requests in the scheduler's queue, and which rows of them make the next batch."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from enum import StrEnum

from .bounds import Bounds
from .rows import Raw, Row

_NEVER_FAR = 8
"""Tokens of padding a row that are always worth a larger batch."""
_CHOICE = 4


class Dropped(StrEnum):
    """Why work left the queue without an answer."""

    DEADLINE = "deadline"
    CANCELLED = "cancelled"
    STOPPING = "stopping"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Computed:
    """Outputs of a request's rows in order, with how long they waited and were computed, in seconds.

    A row that had not started when the deadline passed has none: its `Raw` is empty.
    """

    raw: list[Raw]
    queue_s: float
    compute_s: float


@dataclass(slots=True, eq=False)
class Job:
    """A request in the queue. `next` are the places of rows that have not started, by length."""

    rows: Sequence[Row]
    deadline: float | None
    queued_at: float
    future: Future[Computed]
    waiting: int
    raw: list[Raw | None]
    tokens_left: int
    started_at: float | None = None
    compute_s: float = 0.0
    next: list[int] = field(default_factory=list)

    @classmethod
    def of(cls, rows: Sequence[Row], deadline: float | None, now: float) -> Job:
        """A request whose rows all wait."""
        waiting = sorted(range(len(rows)), key=lambda index: rows[index].tokens)
        tokens = sum(row.tokens for row in rows)
        return cls(rows, deadline, now, Future(), len(rows), [None] * len(rows), tokens, next=waiting)

    def due(self, tokens_per_s: float) -> float:
        """When it would finish if it were alone: short work goes first, and waiting makes up for length."""
        return self.queued_at + self.tokens_left / tokens_per_s

    def nearest(self, length: int, least: int, longest: int, most: int) -> list[int]:
        """Up to `most` waiting rows on either side of a length, none beyond the bounds: a batch needs no more."""

        def tokens(index: int) -> int:
            return self.rows[index].tokens

        place = bisect_left(self.next, length, key=tokens)
        first = bisect_left(self.next, least, hi=place, key=tokens)
        end = bisect_right(self.next, longest, lo=place, key=tokens)
        return self.next[max(first, place - most) : min(end, place + most)]

    def finish(self) -> None:
        """Hand the outputs over, unless nobody waits."""
        queued = (self.started_at or self.queued_at) - self.queued_at
        if self.future.set_running_or_notify_cancel():
            self.future.set_result(Computed([raw or {} for raw in self.raw], queued, self.compute_s))

    def cut_short(self, reason: Exception) -> None:
        """Hand over what there is, and say why nothing is if nothing is."""
        if self.waiting < len(self.rows):
            self.finish()
        else:
            self.fail(reason)

    def fail(self, reason: Exception) -> None:
        """Say why there are none."""
        if self.future.set_running_or_notify_cancel():
            self.future.set_exception(reason)


Batch = list[tuple[Job, int]]
"""Rows of jobs, by the job and the place in its rows."""


def take(jobs: Sequence[Job], bounds: Bounds, tokens_per_s: float) -> Batch:
    """Take the next batch out: the row of the job due first, and the rows nearest to it in length that fit beside it.

    Every job has a row that waits.
    """
    ordered = sorted(jobs, key=lambda job: job.due(tokens_per_s))
    start = ordered[0].next[0]
    rows = _near(ordered, ordered[0].rows[start].tokens, bounds)
    anchor = rows.index((ordered[0], start))
    low, high = _grow([job.rows[index].tokens for job, index in rows], anchor, bounds)
    batch = rows[low:high]
    for job, index in batch:
        job.next.remove(index)
    return batch


def _near(ordered: Sequence[Job], length: int, bounds: Bounds) -> Batch:
    """Rows that may share a batch with one of this length, by length; of equal ones those due first come first.

    Of a long queue only the part due first is looked at: a few times what fits.
    """
    most = bounds.rows_of(length)
    least = length - max(_NEVER_FAR, int(bounds.slack * length))
    longest = max(length + _NEVER_FAR, int(length / (1 - bounds.slack)))
    near: Batch = []
    for job in ordered:
        near += [(job, index) for index in job.nearest(length, least, longest, most)]
        if len(near) >= _CHOICE * most:
            break
    return sorted(near, key=lambda entry: entry[0].rows[entry[1]].tokens)


def _grow(lengths: Sequence[int], anchor: int, bounds: Bounds) -> tuple[int, int]:
    """The range around `anchor` that fits a batch, grown to whichever side is nearer in length.

    A longer row makes every other one longer: it is left for another pass when that costs less.
    """
    low, high = anchor, anchor + 1
    while high - low < bounds.batch_rows:
        shorter = lengths[low - 1] if low else None
        longer = lengths[high] if high < len(lengths) else None
        if longer is not None and (longer - lengths[high - 1]) * (high - low) > bounds.pass_tokens:
            longer = None
        if longer is not None and (shorter is None or longer - lengths[anchor] <= lengths[anchor] - shorter):
            grown = (low, high + 1)
        elif shorter is not None:
            grown = (low - 1, high)
        else:
            break
        if not _fits(lengths, *grown, bounds):
            break
        low, high = grown
    return low, high


def _fits(lengths: Sequence[int], low: int, high: int, bounds: Bounds) -> bool:
    longest = lengths[high - 1]
    near = longest - lengths[low] <= max(_NEVER_FAR, bounds.slack * longest)
    return near and longest * (high - low) <= bounds.batch_tokens
