"""One request's way from the event loop to the worker and back, in as few turns of threads as there can be.

The loop hands over text and is woken once, when the outputs are there: tokenising and queueing happen in whichever
thread takes the work (a sleeping core takes tens of microseconds to wake, each time).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import partial

from .asking import Failure, FailureCode
from .errors import DeadlineExceeded, RuntimeFault, Unready
from .jobs import Computed
from .posing import LATE
from .rows import RowPlan
from .scheduler import Scheduler

log = logging.getLogger("pointsman.runtime")

Plan = Callable[[], list[RowPlan]]


class Handover:
    """A request whose rows are planned by `prepare` in some thread. Made and awaited on the event loop.

    Whatever holds text is let go of once nobody waits: what is left in a cycle would stay until a full collection.
    """

    __slots__ = ("_deadline", "_future", "_loop", "_plan", "_plans", "_scheduler", "_settled")

    def __init__(self, scheduler: Scheduler, plan: Plan, deadline: float | None) -> None:
        """Announces the request to the scheduler."""
        self._scheduler = scheduler
        self._plan: Plan | None = plan
        """None once nobody waits any more."""
        self._deadline = deadline
        self._plans: Sequence[RowPlan] = ()
        self._future: Future[Computed] | None = None
        self._loop = asyncio.get_running_loop()
        self._settled: asyncio.Future[None] = self._loop.create_future()
        scheduler.expect(1)

    def prepare(self) -> None:
        """Plan the rows and queue them. Never raises: what goes wrong is the waiter's."""
        plan = self._plan
        if plan is None:
            self._scheduler.expect(-1)
            return
        future = self._queue(plan)
        self._future = future
        # Whoever is second of this thread and `give_up` sees what the first has done.
        if self._plan is None:
            future.cancel()
            self._let_go()
        future.add_done_callback(partial(_wake, self._loop, self._settled))
        del future  # an error that planning raised holds this frame, which would hold the error

    async def computed(self) -> tuple[Sequence[RowPlan], Computed | Failure]:
        """The plans with their outputs, or with why there are none. Raises RuntimeFault, and what planning raised.

        Cancelling it gives the request up.
        """
        try:
            await self._settled
            assert self._future is not None  # noqa: S101  it is what settled this
            return self._plans, _outcome(self._future, planned=bool(self._plans))
        except asyncio.CancelledError:
            self.give_up()
            raise
        finally:
            self._let_go()

    def give_up(self) -> None:
        """Nobody waits any more: what has not started is dropped."""
        self._plan = None
        future = self._future  # which `prepare` may let go of meanwhile
        if future is not None:
            future.cancel()

    def _queue(self, plan: Plan) -> Future[Computed]:
        """The rows in the scheduler's queue, or a future that has failed already."""
        try:
            try:
                if self._scheduler.stopping:
                    raise Unready("the runtime is stopping")
                if self._scheduler.late(self._deadline):
                    raise self._scheduler.missed()
                self._plans = plan()
            except BaseException:
                self._scheduler.expect(-1)
                raise
            rows = [row for planned in self._plans for row in planned.rows]
            return self._scheduler.submit(rows, self._deadline, announced=True)
        except Exception as error:
            return _failed(error)

    def _let_go(self) -> None:
        self._plan = self._future = None
        self._plans = ()


def _failed(error: Exception) -> Future[Computed]:
    future: Future[Computed] = Future()
    future.set_exception(error)
    return future


def _wake(loop: asyncio.AbstractEventLoop, settled: asyncio.Future[None], _: Future[Computed]) -> None:
    try:
        loop.call_soon_threadsafe(_settle, settled)
    except RuntimeError:
        return  # the loop is closed: nobody waits


def _settle(settled: asyncio.Future[None]) -> None:
    if not settled.done():
        settled.set_result(None)


def _outcome(future: Future[Computed], *, planned: bool) -> Computed | Failure:
    error = future.exception()
    try:
        if error is None:
            return future.result()
        if isinstance(error, DeadlineExceeded):
            return LATE
        if isinstance(error, RuntimeFault) or not planned:
            raise error
        log.error("a request failed in the graph: %s", type(error).__name__)
        return Failure(FailureCode.UNAVAILABLE, "the model failed on this request")
    finally:
        del error, future  # an error that is raised holds this frame, which would hold the error
