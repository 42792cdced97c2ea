"""One worker thread that runs rows in batches: bounded, deadline-aware, short work first.

Admission is immediate: a request that does not fit the queue is refused whole. While a batch runs, rows of other
requests gather and share the next one. When the worker is idle it starts at once, except that it waits a moment
(`window_s`) for requests that are known to be on their way (`expect`), so a lone request never pays for batching.
"""

from __future__ import annotations

import logging
import threading
import time
from bisect import bisect_left
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Protocol

from .errors import DeadlineExceeded, Overloaded, Unready
from .rows import Raw, Row

log = logging.getLogger("pointsman.runtime")

_TOKENS_PER_SECOND = 3000.0
"""Rough speed, only to order jobs by when they would finish: a wrong value changes fairness, not answers."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Sizes of queue and batches. `slack` bounds padding: how much shorter than the longest a row of a batch may be."""

    requests: int = 256
    queued_tokens: int = 4_194_304
    batch_rows: int = 8
    batch_tokens: int = 4096
    slack: float = 0.25
    window_s: float = 0.002


@dataclass(frozen=True, slots=True)
class Computed:
    """Outputs of a request's rows in order, with how long they waited and were computed, in seconds."""

    raw: list[Raw]
    queue_s: float
    compute_s: float


class Observer(Protocol):
    """What the scheduler tells the metrics."""

    def batch(self, rows: int, tokens: int, padding: int, seconds: float) -> None:
        """A batch was run: real tokens, and padding tokens on top."""
        ...


@dataclass(slots=True, eq=False)
class _Job:
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

    def due(self) -> float:
        """When it would finish if it were alone: short work goes first, and waiting makes up for length."""
        return self.queued_at + self.tokens_left / _TOKENS_PER_SECOND

    def nearest(self, length: int, most: int) -> list[int]:
        """Up to `most` waiting rows on either side of a length: no batch needs more of one job."""
        place = bisect_left(self.next, length, key=lambda index: self.rows[index].tokens)
        return self.next[max(0, place - most) : place + most]


class Scheduler:
    """Owns the worker thread. `submit` and `expect` may be called from any thread."""

    def __init__(
        self,
        run: Callable[[Sequence[Row]], list[Raw]],
        *,
        bounds: Bounds | None = None,
        observer: Observer | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Start the worker over `run`, which is only ever called from it."""
        self._run = run
        self._bounds = bounds or Bounds()
        self._observer = observer
        self._clock = clock
        self._changed = threading.Condition()
        self._jobs: list[_Job] = []
        self._queued_tokens = 0
        self._expected = 0
        self._stopping = False
        self._thread = threading.Thread(target=self._work, name="pointsman-inference", daemon=True)
        self._thread.start()

    @property
    def depth(self) -> int:
        """Requests that are queued or being computed."""
        return len(self._jobs)

    @property
    def full(self) -> bool:
        """Whether another request would be refused."""
        return len(self._jobs) >= self._bounds.requests

    def expect(self, change: int) -> None:
        """Tell that `change` requests (+1, later -1) are being prepared and will submit within moments."""
        with self._changed:
            self._expected += change
            if change < 0:
                self._changed.notify()

    def submit(self, rows: Sequence[Row], deadline: float | None = None) -> Future[Computed]:
        """Queue a request's rows. `deadline` is on the scheduler's clock, in seconds.

        Raises Overloaded at once when there is no room, Unready when stopping. The future fails with DeadlineExceeded
        when the deadline passed before all rows had started; cancelling it drops what has not started.
        """
        future: Future[Computed] = Future()
        if not rows:
            future.set_result(Computed([], 0.0, 0.0))
            return future
        tokens = sum(row.tokens for row in rows)
        job = _Job(rows, deadline, self._clock(), future, len(rows), [None] * len(rows), tokens)
        job.next = sorted(range(len(rows)), key=lambda index: rows[index].tokens)
        with self._changed:
            if self._stopping:
                raise Unready("the runtime is stopping")
            if self.full or (self._jobs and self._queued_tokens + tokens > self._bounds.queued_tokens):
                raise Overloaded("the queue is full")
            self._jobs.append(job)
            self._queued_tokens += tokens
            self._changed.notify()
        return future

    def close(self) -> None:
        """Stop after the batch that runs; what waits fails with Unready."""
        with self._changed:
            self._stopping = True
            self._changed.notify()
        self._thread.join()

    # -- worker --------------------------------------------------------------------------------------------------------

    def _work(self) -> None:
        while True:
            with self._changed:
                while not self._jobs and not self._stopping:
                    self._changed.wait()
                if not self._stopping:
                    self._gather()
                dropped = self._drop()
                batch = [] if self._stopping else self._take()
                stopping = self._stopping
            for job, reason in dropped:
                _fail(job.future, reason)
            if stopping:
                return
            if batch:
                self._compute(batch)

    def _gather(self) -> None:
        """Wait for requests being prepared, at most the window, unless a batch is full already."""
        until = self._clock() + self._bounds.window_s
        while self._expected > 0 and sum(len(job.next) for job in self._jobs) < self._bounds.batch_rows:
            left = until - self._clock()
            if left <= 0 or self._stopping:
                return
            self._changed.wait(left)

    def _drop(self) -> list[tuple[_Job, Exception | None]]:
        """Take out jobs that nobody waits for any more, before they cost anything."""
        now = self._clock()
        dropped: list[tuple[_Job, Exception | None]] = []
        for job in list(self._jobs):
            reason: Exception | None = None
            if self._stopping:
                reason = Unready("the runtime is stopping")
            elif job.deadline is not None and job.deadline <= now and job.next:
                reason = DeadlineExceeded("the deadline passed before the work started")
            elif not job.future.cancelled():
                continue
            self._remove(job)
            dropped.append((job, reason))
        return dropped

    def _remove(self, job: _Job) -> None:
        self._jobs.remove(job)
        self._queued_tokens -= job.tokens_left

    def _take(self) -> list[tuple[_Job, int]]:
        """The next batch: the row of the job due first, and the rows nearest to it in length that fit beside it."""
        if not self._jobs:
            return []
        first = min(self._jobs, key=_Job.due)
        start = first.next[0]
        length = first.rows[start].tokens
        near = [(job, index) for job in self._jobs for index in job.nearest(length, self._bounds.batch_rows)]
        rows = sorted(near, key=lambda entry: entry[0].rows[entry[1]].tokens)
        anchor = rows.index((first, start))
        lengths = [job.rows[index].tokens for job, index in rows]
        low, high = anchor, anchor + 1
        while high - low < self._bounds.batch_rows:
            shorter = lengths[low - 1] if low else None
            longer = lengths[high] if high < len(rows) else None
            if longer is not None and (shorter is None or longer - lengths[anchor] <= lengths[anchor] - shorter):
                grown = (low, high + 1)
            elif shorter is not None:
                grown = (low - 1, high)
            else:
                break
            if not self._fits(lengths, *grown):
                break
            low, high = grown
        batch = rows[low:high]
        for job, index in batch:
            job.next.remove(index)
        return batch

    def _fits(self, lengths: Sequence[int], low: int, high: int) -> bool:
        longest = lengths[high - 1]
        near = longest - lengths[low] <= max(8, self._bounds.slack * longest)
        return near and longest * (high - low) <= self._bounds.batch_tokens

    def _compute(self, batch: Sequence[tuple[_Job, int]]) -> None:
        start = self._clock()
        for job, _ in batch:
            job.started_at = start if job.started_at is None else job.started_at
        try:
            outputs = self._run([job.rows[index] for job, index in batch])
        except Exception as error:
            log.error("inference failed: %s", type(error).__name__)
            failed = {id(job): job for job, _ in batch}
            with self._changed:
                for job in failed.values():
                    self._remove(job)
            for job in failed.values():
                _fail(job.future, error)
            return
        seconds = self._clock() - start
        done: list[_Job] = []
        with self._changed:
            for (job, index), raw in zip(batch, outputs, strict=True):
                job.raw[index] = raw
                job.waiting -= 1
                job.tokens_left -= job.rows[index].tokens
                self._queued_tokens -= job.rows[index].tokens
                if job.waiting == 0:
                    self._remove(job)
                    done.append(job)
            for job in {id(job): job for job, _ in batch}.values():
                job.compute_s += seconds
        for job in done:
            _finish(job)
        if self._observer is not None:
            lengths = [job.rows[index].tokens for job, index in batch]
            real = sum(lengths)
            self._observer.batch(len(batch), real, max(lengths) * len(batch) - real, seconds)


def _finish(job: _Job) -> None:
    queued = (job.started_at or job.queued_at) - job.queued_at
    if job.future.set_running_or_notify_cancel():
        job.future.set_result(Computed([raw for raw in job.raw if raw is not None], queued, job.compute_s))


def _fail(future: Future[Computed], reason: Exception | None) -> None:
    if future.set_running_or_notify_cancel() and reason is not None:
        future.set_exception(reason)
