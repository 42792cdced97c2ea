"""One worker thread that runs rows in batches: bounded, deadline-aware, short work first.

Admission is immediate: a request that does not fit the queue is refused whole. While a batch runs, rows of other
requests gather and share the next one. When the worker is idle it starts at once, except that it waits a moment
(`window_s`) for requests that are known to be on their way (`expect`), so a lone request never pays for batching.

The request that would finish first, were it alone, goes first. What it still needs shrinks as it is served and the
moment it came never moves, so long work is overtaken only by requests that came within its own length of it.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future

from .bounds import Bounds
from .errors import DeadlineExceeded, Overloaded, Unready
from .jobs import Batch, Computed, Dropped, Job, take
from .observer import Observer, Reports
from .quiet import Quiet, nothing
from .rows import Raw, Row

log = logging.getLogger("pointsman.runtime")

_FIRST_GUESS = 3000.0
"""Tokens per second, until batches have told: a wrong value changes order and hints, not answers."""
_MEMORY = 0.9
LONGEST_HINT_S = 30
"""No refused client is told to wait longer: System One clients give up when they would wait longer in all."""


class Scheduler:
    """Owns the worker thread. `submit` and `expect` may be called from any thread."""

    def __init__(
        self,
        run: Callable[[Sequence[Row]], list[Raw]],
        *,
        bounds: Bounds | None = None,
        observer: Observer | None = None,
        clock: Callable[[], float] = time.monotonic,
        rest: Callable[[], None] = nothing,
    ) -> None:
        """Start the worker over `run` and `rest`, which are only ever called from it: `rest` after each spell of work.

        `rest` must not raise.
        """
        self._run = run
        self._bounds = bounds or Bounds()
        self._reports = Reports(observer)
        self._quiet = Quiet(self._reports, rest)
        self._clock = clock
        self._changed = threading.Condition()
        self._jobs: list[Job] = []
        self._queued_tokens = 0
        self._tokens_per_s = _FIRST_GUESS
        self._expected = 0
        self._idle = False
        self._lent: list[Callable[[], None]] = []
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

    @property
    def queued_tokens(self) -> int:
        """Tokens of all rows that wait or are being computed."""
        return self._queued_tokens

    @property
    def retry_after_s(self) -> int:
        """Whole seconds until what is queued now will have been computed, at the speed of the last batches."""
        return max(1, min(LONGEST_HINT_S, math.ceil(self._queued_tokens / self._tokens_per_s)))

    def overloaded(self) -> Overloaded:
        """The refusal of a request that does not fit, counted."""
        self._reports.dropped(Dropped.REFUSED)
        return Overloaded("the queue is full", self.retry_after_s)

    @property
    def stopping(self) -> bool:
        """Whether nothing is taken any more."""
        return self._stopping

    @property
    def expected(self) -> int:
        """Requests that are being prepared."""
        return self._expected

    def missed(self) -> DeadlineExceeded:
        """The failure of a request whose deadline passed before its work, or the rest of it, started, counted."""
        self._reports.dropped(Dropped.DEADLINE)
        return DeadlineExceeded("the deadline passed before the work started")

    def late(self, deadline: float | None) -> bool:
        """Whether a deadline has passed."""
        return deadline is not None and deadline <= self._clock()

    def lend(self, work: Callable[[], None]) -> bool:
        """Have the worker do some short work that ends in `submit`, if it has nothing else to do; say whether it will.

        `work` must not raise.
        """
        with self._changed:
            if not self._idle or self._stopping:
                return False
            self._idle = False
            self._lent.append(work)
            self._changed.notify()
            return True

    def expect(self, change: int) -> None:
        """Tell that `change` requests (+1, later -1) are being prepared and will submit within moments."""
        with self._changed:
            self._expected += change
            if change < 0:
                self._changed.notify()

    def submit(
        self, rows: Sequence[Row], deadline: float | None = None, *, announced: bool = False
    ) -> Future[Computed]:
        """Queue a request's rows. `deadline` is on the scheduler's clock, in seconds; `announced` ends one `expect`.

        Raises Overloaded at once when there is no room, Unready when stopping. A deadline that passes drops the rows
        that have not started: the future has the others, and fails with DeadlineExceeded when there are none.
        Cancelling it drops what has not started.
        """
        if not rows:
            if announced:
                self.expect(-1)
            future: Future[Computed] = Future()
            future.set_result(Computed([], 0.0, 0.0))
            return future
        job = Job.of(rows, deadline, self._clock())
        with self._changed:
            self._expected -= announced
            if self._stopping:
                raise Unready("the runtime is stopping")
            dead = [] if self._fits(job) else self._drop()
            fits = self._fits(job)
            if fits:
                self._jobs.append(job)
                self._queued_tokens += job.tokens_left
                self._changed.notify()
        self._let_go_all(dead)
        if not fits:
            raise self.overloaded()
        return job.future

    def make_room(self) -> None:
        """Drop what need not be computed any more, without waiting for the end of the batch that runs.

        Under load much of a full queue is given up by those who asked: it must not keep out who would wait.
        """
        with self._changed:
            dead = self._drop()
        self._let_go_all(dead)

    def close(self) -> None:
        """Stop after the batch that runs; what waits fails with Unready."""
        with self._changed:
            self._stopping = True
            self._changed.notify()
        self._thread.join()

    # -- worker --------------------------------------------------------------------------------------------------------

    def _work(self) -> None:
        while self._turn():
            pass

    def _turn(self) -> bool:
        """Wait for work and do a batch of it; False when stopping. Between two turns nothing of a request is held."""
        self._rest()
        with self._changed:
            if not self._stopping:
                self._gather()
            dropped = self._drop()
            batch = [] if self._stopping or not self._jobs else take(self._jobs, self._bounds, self._tokens_per_s)
            stopping = self._stopping
        self._let_go_all(dropped)
        if batch:
            self._compute(batch)
        return not stopping

    def _rest(self) -> None:
        """Return when there is something to compute, or to stop for. Work that is lent is done on the way."""
        while True:
            with self._changed:
                while not self._jobs and not self._lent and not self._stopping:
                    self._idle = True
                    if not self._changed.wait(self._quiet.patience) and not self._jobs:
                        self._lent += self._quiet.passed()
                self._idle = False
                lent, self._lent = self._lent, []
                if not lent:
                    return
            while lent:
                lent.pop(0)()

    def _gather(self) -> None:
        """Wait for requests being prepared, at most the window, unless a batch is full already."""
        until = self._clock() + self._bounds.window_s
        while self._expected > 0 and sum(len(job.next) for job in self._jobs) < self._bounds.batch_rows:
            left = until - self._clock()
            if left <= 0 or self._stopping:
                return
            self._changed.wait(left)

    def _drop(self) -> list[tuple[Job, Dropped]]:
        """Take out jobs that nobody waits for any more, before they cost anything."""
        dropped: list[tuple[Job, Dropped]] = []
        for job in self._jobs:
            if job.waiting > len(job.next):
                continue  # rows of it are in the batch that runs
            if self._stopping:
                dropped.append((job, Dropped.STOPPING))
            elif job.future.cancelled():
                dropped.append((job, Dropped.CANCELLED))
            elif job.next and self.late(job.deadline):
                dropped.append((job, Dropped.DEADLINE))
        for job, _ in dropped:
            self._remove(job)
        return dropped

    def _fits(self, job: Job) -> bool:
        """Whether the queue has room. A lone request is never too long for it."""
        room_for_tokens = not self._jobs or self._queued_tokens + job.tokens_left <= self._bounds.queued_tokens
        return not self.full and room_for_tokens

    def _let_go_all(self, dropped: Sequence[tuple[Job, Dropped]]) -> None:
        """Tell those who wait for what was dropped. Without the lock: it runs what they have registered."""
        for job, reason in dropped:
            if reason is Dropped.DEADLINE:
                job.cut_short(self.missed())
                continue
            if reason is Dropped.STOPPING:
                job.fail(Unready("the runtime is stopping"))
            self._reports.dropped(reason)

    def _remove(self, job: Job) -> None:
        self._jobs.remove(job)
        self._queued_tokens -= job.tokens_left

    def _compute(self, batch: Batch) -> None:
        start = self._clock()
        self._quiet.worked()
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
            # Its frames hold every request of the batch, which hold it: a cycle.
            error.__traceback__ = None
            for job in failed.values():
                job.fail(error)
            return
        seconds = self._clock() - start
        done: list[Job] = []
        real = longest = 0
        with self._changed:
            for (job, index), raw in zip(batch, outputs, strict=True):
                tokens = job.rows[index].tokens
                job.raw[index] = raw
                job.waiting -= 1
                job.tokens_left -= tokens
                self._queued_tokens -= tokens
                real, longest = real + tokens, max(longest, tokens)
                if job.waiting == 0:
                    self._remove(job)
                    done.append(job)
            for job in {id(job): job for job, _ in batch}.values():
                job.compute_s += seconds
        for job in done:
            job.finish()
        if seconds > 0:
            self._tokens_per_s = _MEMORY * self._tokens_per_s + (1 - _MEMORY) * real / seconds
        self._reports.batch(len(batch), real, longest * len(batch) - real, seconds)
        if self._jobs:
            self._reports.tell()
