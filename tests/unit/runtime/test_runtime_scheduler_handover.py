"""A request on its way from the event loop to the worker: once back, given up at any moment, never left hanging."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from router.runtime.asking import Failure, FailureCode
from router.runtime.errors import Overloaded, Unready
from router.runtime.handover import Handover
from router.runtime.jobs import Computed
from router.runtime.rows import RowPlan
from router.runtime.scheduler import Scheduler
from tests.unit.runtime.test_runtime_scheduler import WAIT, Graph, row


def one_row() -> list[RowPlan]:
    return [RowPlan([row(5, 2)], 5)]


@pytest.fixture
def graph() -> Graph:
    return Graph()


@pytest.fixture
def scheduler(graph: Graph) -> Scheduler:
    return Scheduler(graph.run)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(WAIT):
        while not condition():  # noqa: ASYNC110  what is waited for happens in another thread
            await asyncio.sleep(0.001)


async def test_plans_come_back_with_their_outputs(graph: Graph, scheduler: Scheduler) -> None:
    graph.permits.release(10)
    handover = Handover(scheduler, one_row, None)
    assert scheduler.expected == 1
    with ThreadPoolExecutor(1) as planner:
        planner.submit(handover.prepare)
        plans, computed = await handover.computed()
    assert isinstance(computed, Computed)
    assert (len(plans), computed.raw[0]["sum"][0], scheduler.expected) == (1, 10, 0)
    scheduler.close()


async def test_nothing_to_compute_is_an_answer(scheduler: Scheduler) -> None:
    handover = Handover(scheduler, lambda: [RowPlan([], 0)], None)
    handover.prepare()
    assert isinstance((await handover.computed())[1], Computed)
    assert scheduler.expected == 0
    scheduler.close()


async def test_what_planning_raises_is_raised(scheduler: Scheduler) -> None:
    def broken() -> list[RowPlan]:
        raise KeyError("no")

    handover = Handover(scheduler, broken, None)
    handover.prepare()
    with pytest.raises(KeyError):
        await handover.computed()
    assert (scheduler.expected, scheduler.depth) == (0, 0)
    scheduler.close()


async def test_a_failing_graph_is_a_failure_of_its_questions(graph: Graph, scheduler: Scheduler) -> None:
    graph.fail = True
    graph.permits.release(10)
    handover = Handover(scheduler, one_row, None)
    handover.prepare()
    _, computed = await handover.computed()
    assert isinstance(computed, Failure)
    assert computed.code is FailureCode.UNAVAILABLE
    scheduler.close()


async def test_a_full_queue_is_raised(graph: Graph, scheduler: Scheduler) -> None:
    object.__setattr__(scheduler._bounds, "requests", 0)
    handover = Handover(scheduler, one_row, None)
    handover.prepare()
    with pytest.raises(Overloaded):
        await handover.computed()
    assert scheduler.expected == 0
    scheduler.close()


async def test_given_up_before_it_was_planned_it_is_never_planned(scheduler: Scheduler) -> None:
    planned: list[int] = []

    def plan() -> list[RowPlan]:
        planned.append(1)
        return one_row()

    handover = Handover(scheduler, plan, None)
    waiting = asyncio.create_task(handover.computed())
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    handover.prepare()
    assert (planned, scheduler.expected, scheduler.depth) == ([], 0, 0)
    scheduler.close()


async def test_given_up_while_it_is_planned_it_is_never_computed(graph: Graph, scheduler: Scheduler) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def plan() -> list[RowPlan]:
        begun.set()
        assert go_on.wait(WAIT)
        return one_row()

    scheduler.submit([row(9)])
    graph.started()
    handover = Handover(scheduler, plan, None)
    with ThreadPoolExecutor(1) as planner:
        planner.submit(handover.prepare)
        waiting = asyncio.create_task(handover.computed())
        await until(begun.is_set)
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        go_on.set()
    graph.permits.release(10)
    await until(lambda: scheduler.depth == 0)
    assert graph.lengths() == [[9]]
    scheduler.close()


async def test_what_is_late_already_is_not_even_planned(scheduler: Scheduler) -> None:
    def never() -> list[RowPlan]:
        raise AssertionError

    handover = Handover(scheduler, never, 0.0)
    handover.prepare()
    _, computed = await handover.computed()
    assert isinstance(computed, Failure)
    assert computed.code is FailureCode.DEADLINE_EXCEEDED
    assert scheduler.expected == 0
    scheduler.close()


async def test_after_the_end_whoever_waits_is_told(scheduler: Scheduler) -> None:
    scheduler.close()
    handover = Handover(scheduler, one_row, None)
    handover.prepare()
    with pytest.raises(Unready):
        await handover.computed()
    assert scheduler.expected == 0
