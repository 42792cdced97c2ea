"""A full queue: what nobody waits for any more must not keep out who would wait, and order starves nobody."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from router.runtime.bounds import Bounds
from router.runtime.errors import DeadlineExceeded, Overloaded
from router.runtime.jobs import Dropped, Job, take
from router.runtime.rows import Raw, Row
from router.runtime.scheduler import Scheduler
from tests.unit.runtime.test_runtime_scheduler import WAIT, Clock, Graph, row
from tests.unit.runtime.test_runtime_scheduler_order import Notes, job

SPEED = 1000.0


class Rig:
    """A scheduler with room for four requests and 1,000 tokens, that computes one while the test fills the queue."""

    def __init__(self) -> None:
        self.graph, self.clock, self.notes = Graph(), Clock(), Notes()
        bounds = Bounds(requests=4, queued_tokens=1000)
        self.scheduler = Scheduler(self.graph.run, bounds=bounds, observer=self.notes, clock=self.clock)
        self.running = self.scheduler.submit([row(5)])
        self.graph.started()

    def close(self) -> None:
        self.graph.permits.release(100)
        self.scheduler.close()


@pytest.fixture
def rig() -> Rig:
    return Rig()


def test_cancelled_work_makes_room_while_a_batch_runs(rig: Rig) -> None:
    waiting = [rig.scheduler.submit([row(10)]) for _ in range(3)]
    waiting[1].cancel()
    added = rig.scheduler.submit([row(10)])
    assert rig.scheduler.depth == 4
    assert rig.notes.reasons == [Dropped.CANCELLED]
    with pytest.raises(Overloaded):
        rig.scheduler.submit([row(10)])
    rig.graph.permits.release(10)
    assert added.result(WAIT).raw
    assert waiting[0].result(WAIT).raw
    rig.close()
    assert rig.scheduler.queued_tokens == 0


def test_late_work_makes_room_and_is_told_so_at_once(rig: Rig) -> None:
    late = [rig.scheduler.submit([row(10)], deadline=rig.clock.now + 1) for _ in range(3)]
    rig.clock.now += 2
    added = rig.scheduler.submit([row(10)])
    for future in late:
        with pytest.raises(DeadlineExceeded):
            future.result(0)
    rig.graph.permits.release(10)
    assert added.result(WAIT).raw
    assert len(rig.graph.batches) == 2
    rig.close()


def test_room_for_tokens_is_made_too(rig: Rig) -> None:
    long = rig.scheduler.submit([row(900)])
    with pytest.raises(Overloaded):
        rig.scheduler.submit([row(200)])
    long.cancel()
    added = rig.scheduler.submit([row(200)])
    assert rig.scheduler.queued_tokens == 205
    rig.graph.permits.release(10)
    assert added.result(WAIT).raw
    rig.close()


def test_what_is_being_computed_is_not_dropped(rig: Rig) -> None:
    rig.running.cancel()
    for _ in range(3):
        rig.scheduler.submit([row(10)])
    with pytest.raises(Overloaded):
        rig.scheduler.submit([row(10)])
    rig.scheduler.make_room()
    assert rig.scheduler.depth == 4
    rig.close()
    assert rig.scheduler.depth == 0
    assert rig.scheduler.queued_tokens == 0


def test_without_need_nothing_is_looked_for(rig: Rig) -> None:
    rig.scheduler.submit([row(10)]).cancel()
    rig.scheduler.submit([row(10)])
    assert rig.scheduler.depth == 3, "the worker drops it at its next turn"
    rig.close()


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 2000), st.integers(0, 400)), min_size=2, max_size=30))
def test_nothing_is_overtaken_by_what_came_later_than_its_own_length(arrivals: list[tuple[int, int]]) -> None:
    """Each job is one row of so many tokens, that comes so many milliseconds after the one before."""
    bounds = Bounds(batch_rows=1)
    now, at = 0.0, 0.0
    coming = []
    for tokens, pause in arrivals:
        at += pause / 1000
        coming.append(job([tokens], at))
    waiting: list[Job] = []
    while coming or waiting:
        if not waiting:
            now = max(now, coming[0].queued_at)
        while coming and coming[0].queued_at <= now:
            waiting.append(coming.pop(0))
        ((served, _),) = take(waiting, bounds, SPEED)
        waiting.remove(served)
        for other in waiting:
            assert served.queued_at <= other.queued_at + other.tokens_left / SPEED
        now += served.tokens_left / SPEED


REQUESTS = st.lists(
    st.tuples(st.lists(st.integers(1, 60), min_size=1, max_size=6), st.none() | st.integers(0, 12)),
    min_size=1,
    max_size=6,
)


@settings(max_examples=80, deadline=None)
@given(REQUESTS, st.integers(1, 3))
def test_whatever_was_computed_is_handed_over_and_only_a_deadline_keeps_anything_back(
    requests: list[tuple[list[int], int | None]], batch_rows: int
) -> None:
    """Each request is rows of so many tokens, with a deadline so many batches from now; a row says whose it is."""
    graph, clock = Graph(), Clock()

    def run(rows: Sequence[Row]) -> list[Raw]:
        clock.now += 1
        return graph.run(rows)

    scheduler = Scheduler(run, bounds=Bounds(batch_rows=batch_rows), clock=clock)
    scheduler.submit([row(1)])
    graph.started()
    now, futures, marks = clock.now, [], itertools.count(1)
    for lengths, batches in requests:
        rows = [row(tokens, next(marks)) for tokens in lengths]
        deadline = None if batches is None else now + batches
        futures.append((rows, deadline, scheduler.submit(rows, deadline)))
    graph.permits.release(1000)
    for rows, deadline, future in futures:
        ran = {id(one) for batch in graph.batches for one in batch} if future.exception(WAIT) is None else set()
        if future.exception() is not None:
            assert isinstance(future.exception(), DeadlineExceeded)
            assert deadline is not None
            continue
        got = future.result().raw
        assert [bool(raw) for raw in got] == [id(one) in ran for one in rows]
        assert all(raw["sum"][0] == one.ids.sum() for raw, one in zip(got, rows, strict=True) if raw)
        assert any(got)
        assert all(got) or (deadline is not None and deadline <= clock.now)
    scheduler.close()
    computed = {id(one) for batch in graph.batches for one in batch}
    failed = [rows for rows, _, future in futures if future.exception() is not None]
    assert not any(id(one) in computed for rows in failed for one in rows)
    assert (scheduler.depth, scheduler.queued_tokens) == (0, 0)
