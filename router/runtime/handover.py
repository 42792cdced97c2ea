"""One request's way from the event loop to the worker and back, in as few turns of threads as there can be.

The loop hands over text and is woken once, when the outputs are there: tokenising and queueing happen in whichever
thread takes the work (a sleeping core takes tens of microseconds to wake, each time).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import Future

from .asking import Failure, FailureCode
from .errors import DeadlineExceeded, RuntimeFault, Unready
from .jobs import Computed
from .rows import RowPlan
from .scheduler import Scheduler

log = logging.getLogger("pointsman.runtime")

Plan = Callable[[], list[RowPlan]]


class Handover:
    """A request whose rows are planned by `prepare` in some thread. Made and awaited on the event loop."""

    __slots__ = ("_deadline", "_future", "_given_up", "_loop", "_plan", "_plans", "_scheduler", "_settled")

    def __init__(self, scheduler: Scheduler, plan: Plan, deadline: float | None) -> None:
        """Announces the request to the scheduler."""
        self._scheduler = scheduler
        self._plan = plan
        self._deadline = deadline
        self._plans: Sequence[RowPlan] = ()
        self._future: Future[Computed] | None = None
        self._given_up = False
        self._loop = asyncio.get_running_loop()
        self._settled: asyncio.Future[None] = self._loop.create_future()
        scheduler.expect(1)

    def prepare(self) -> None:
        """Plan the rows and queue them. Never raises: what goes wrong is the waiter's."""
        try:
            if self._given_up:
                self._scheduler.expect(-1)
                return
            try:
                if self._scheduler.stopping:
                    raise Unready("the runtime is stopping")
                if self._scheduler.late(self._deadline):
                    raise self._scheduler.missed()
                self._plans = self._plan()
            except BaseException:
                self._scheduler.expect(-1)
                raise
            rows = [row for plan in self._plans for row in plan.rows]
            future = self._scheduler.submit(rows, self._deadline, announced=True)
        except Exception as error:
            future = Future()
            future.set_exception(error)
        self._future = future
        # Whoever is second of this thread and `give_up` sees what the first has done.
        if self._given_up:
            future.cancel()
        future.add_done_callback(self._wake)

    async def computed(self) -> tuple[Sequence[RowPlan], Computed | Failure]:
        """The plans with their outputs, or with why there are none. Raises RuntimeFault, and what planning raised.

        Cancelling it gives the request up.
        """
        try:
            await self._settled
        except asyncio.CancelledError:
            self.give_up()
            raise
        assert self._future is not None  # noqa: S101  it is what settled this
        error = self._future.exception()
        if error is not None and not self._plans and not isinstance(error, RuntimeFault):
            raise error
        return self._plans, _outcome(self._future)

    def give_up(self) -> None:
        """Nobody waits any more: what has not started is dropped."""
        self._given_up = True
        if self._future is not None:
            self._future.cancel()

    def _wake(self, _: Future[Computed]) -> None:
        try:
            self._loop.call_soon_threadsafe(self._settle)
        except RuntimeError:
            return  # the loop is closed: nobody waits

    def _settle(self) -> None:
        if not self._settled.done():
            self._settled.set_result(None)


def _outcome(future: Future[Computed]) -> Computed | Failure:
    try:
        return future.result()
    except DeadlineExceeded:
        return Failure(FailureCode.DEADLINE_EXCEEDED, "the deadline passed before it was read")
    except RuntimeFault:
        raise
    except Exception as error:
        log.error("a request failed in the graph: %s", type(error).__name__)
        return Failure(FailureCode.UNAVAILABLE, "the model failed on this request")
