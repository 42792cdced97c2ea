from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError

import numpy as np
import pytest

from router.runtime.bounds import Bounds
from router.runtime.errors import DeadlineExceeded, Overloaded, Unready
from router.runtime.rows import Raw, Row
from router.runtime.scheduler import Scheduler

WAIT = 5.0


def row(tokens: int, mark: int = 0) -> Row:
    return Row(np.full(tokens, mark, np.int64), ("sum",))


class Graph:
    """A graph that the test holds: each batch waits for a permit, and what was run is recorded."""

    def __init__(self, held: bool = True) -> None:
        self.batches: list[list[Row]] = []
        self.permits = threading.Semaphore(0 if held else 10_000)
        self.running = threading.Semaphore(0)
        self.fail = False

    def run(self, rows: Sequence[Row]) -> list[Raw]:
        self.batches.append(list(rows))
        self.running.release()
        assert self.permits.acquire(timeout=WAIT)
        if self.fail:
            raise RuntimeError("secret text")
        return [{"sum": np.array([r.ids.sum()], np.float32)} for r in rows]

    def started(self) -> None:
        assert self.running.acquire(timeout=WAIT)

    def lengths(self) -> list[list[int]]:
        return [[r.tokens for r in batch] for batch in self.batches]


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def graph() -> Graph:
    return Graph()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def scheduler(graph: Graph, clock: Clock) -> Iterator[Scheduler]:
    bounds = Bounds(requests=4, batch_rows=4, batch_tokens=100, queued_tokens=1000)
    scheduler = Scheduler(graph.run, bounds=bounds, clock=clock)
    yield scheduler
    graph.permits.release(10_000)
    scheduler.close()


def test_a_lone_request_starts_at_once(scheduler: Scheduler, graph: Graph) -> None:
    future = scheduler.submit([row(3, 2)])
    graph.started()
    graph.permits.release()
    assert future.result(WAIT).raw[0]["sum"][0] == 6


def test_no_rows_is_an_answer_already(scheduler: Scheduler) -> None:
    assert scheduler.submit([]).result(0).raw == []


def test_what_waits_shares_a_batch_and_gets_its_own_rows(scheduler: Scheduler, graph: Graph) -> None:
    first = scheduler.submit([row(10, 1)])
    graph.started()
    others = [scheduler.submit([row(10, mark)]) for mark in (2, 3)]
    graph.permits.release(2)
    assert [f.result(WAIT).raw[0]["sum"][0] for f in (first, *others)] == [10, 20, 30]
    assert graph.lengths() == [[10], [10, 10]]


def test_batches_are_of_one_length_and_capped(scheduler: Scheduler, graph: Graph) -> None:
    blocked = scheduler.submit([row(5)])
    graph.started()
    future = scheduler.submit([row(n) for n in (40, 90, 5, 42, 4, 6, 5, 5, 41)])
    graph.permits.release(20)
    assert len(future.result(WAIT).raw) == 9
    assert blocked.result(WAIT)
    for lengths in graph.lengths():
        assert len(lengths) <= 4
        assert max(lengths) * len(lengths) <= 100
        assert max(lengths) - min(lengths) <= max(8, 0.25 * max(lengths))


def test_a_row_larger_than_a_batch_still_runs(scheduler: Scheduler, graph: Graph) -> None:
    graph.permits.release()
    assert scheduler.submit([row(500)]).result(WAIT)


def test_short_work_goes_before_long_work_that_came_first(scheduler: Scheduler, graph: Graph) -> None:
    scheduler.submit([row(5)])
    graph.started()
    long = scheduler.submit([row(90) for _ in range(6)])
    short = scheduler.submit([row(10, 1)])
    graph.permits.release(2)
    assert short.result(WAIT).raw[0]["sum"][0] == 10
    assert not long.done()


def test_waiting_makes_up_for_length(scheduler: Scheduler, graph: Graph, clock: Clock) -> None:
    scheduler.submit([row(5)])
    graph.started()
    long = scheduler.submit([row(90), row(91)])
    clock.now += 60
    short = scheduler.submit([row(10)])
    graph.permits.release(10)
    long.result(WAIT)
    short.result(WAIT)
    assert graph.lengths()[1] == [90]


def test_a_full_queue_refuses_at_once(scheduler: Scheduler, graph: Graph) -> None:
    futures = [scheduler.submit([row(5)]) for _ in range(4)]
    with pytest.raises(Overloaded):
        scheduler.submit([row(5)])
    graph.permits.release(10)
    for future in futures:
        future.result(WAIT)
    assert scheduler.submit([row(5)]).result(WAIT)


def test_too_many_tokens_refuse_too_but_never_a_lone_request(scheduler: Scheduler, graph: Graph) -> None:
    graph.permits.release()
    assert scheduler.submit([row(5000)]).result(WAIT)
    scheduler.submit([row(900)])
    graph.started()
    with pytest.raises(Overloaded):
        scheduler.submit([row(200)])


def test_work_past_its_deadline_is_dropped_before_it_starts(scheduler: Scheduler, graph: Graph, clock: Clock) -> None:
    first = scheduler.submit([row(5)], deadline=clock.now + 1)
    graph.started()
    late = scheduler.submit([row(5)], deadline=clock.now + 1)
    clock.now += 2
    graph.permits.release(10)
    assert first.result(WAIT).raw, "work that had started is finished"
    with pytest.raises(DeadlineExceeded):
        late.result(WAIT)
    assert len(graph.batches) == 1


def test_what_was_computed_by_the_deadline_is_handed_over(scheduler: Scheduler, graph: Graph, clock: Clock) -> None:
    future = scheduler.submit([row(90, 1), row(5, 2), row(91, 1)], deadline=clock.now + 1)
    graph.started()
    clock.now += 2
    graph.permits.release(10)
    assert [raw["sum"][0] if raw else None for raw in future.result(WAIT).raw] == [None, 10, None]
    assert graph.lengths() == [[5]]
    assert (scheduler.depth, scheduler.queued_tokens) == (0, 0)


def test_a_cancelled_request_costs_nothing(scheduler: Scheduler, graph: Graph) -> None:
    scheduler.submit([row(5)])
    graph.started()
    dropped, kept = scheduler.submit([row(30)]), scheduler.submit([row(5)])
    assert dropped.cancel()
    graph.permits.release(10)
    kept.result(WAIT)
    with pytest.raises(CancelledError):
        dropped.result(0)
    assert graph.lengths() == [[5], [5]]
    assert scheduler.depth == 0


def test_a_failing_batch_fails_its_requests_and_not_the_worker(scheduler: Scheduler, graph: Graph) -> None:
    graph.fail = True
    graph.permits.release()
    with pytest.raises(RuntimeError):
        scheduler.submit([row(5), row(50)]).result(WAIT)
    graph.fail = False
    graph.permits.release()
    assert scheduler.submit([row(5)]).result(WAIT)
    assert scheduler.depth == 0


def test_close_refuses_what_waits_and_what_comes(graph: Graph) -> None:
    scheduler = Scheduler(graph.run)
    scheduler.submit([row(5)])
    graph.started()
    waiting = scheduler.submit([row(5)])
    closing = threading.Thread(target=scheduler.close)
    closing.start()
    while not scheduler._stopping:
        closing.join(0.001)
    graph.permits.release(10)
    closing.join(WAIT)
    with pytest.raises(Unready):
        waiting.result(WAIT)
    with pytest.raises(Unready):
        scheduler.submit([row(5)])


def test_requests_being_prepared_are_waited_for_within_the_window(graph: Graph) -> None:
    scheduler = Scheduler(graph.run, bounds=Bounds(window_s=WAIT))
    scheduler.expect(2)
    first = scheduler.submit([row(5)])
    scheduler.expect(-1)
    second = scheduler.submit([row(5)])
    scheduler.expect(-1)
    graph.permits.release(10)
    assert first.result(WAIT)
    assert second.result(WAIT)
    assert graph.lengths() == [[5, 5]]
    scheduler.close()


def test_many_threads_each_get_their_own_answer() -> None:
    scheduler = Scheduler(Graph(held=False).run, bounds=Bounds(requests=1000))
    wrong: list[int] = []

    def client(mark: int) -> None:
        for tokens in range(1, 20):
            got = scheduler.submit([row(tokens, mark), row(2, mark)]).result(WAIT).raw
            if [float(r["sum"][0]) for r in got] != [tokens * mark, 2 * mark]:
                wrong.append(mark)

    threads = [threading.Thread(target=client, args=(mark,)) for mark in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    scheduler.close()
    assert wrong == []


def test_the_worker_rests_after_each_spell_of_work_and_not_before() -> None:
    rested = threading.Semaphore(0)
    threads: list[str] = []

    def rest() -> None:
        threads.append(threading.current_thread().name)
        rested.release()

    graph = Graph(held=False)
    scheduler = Scheduler(graph.run, rest=rest)
    try:
        for spell in range(2):
            assert len(threads) == spell
            assert scheduler.submit([row(3, 2)]).result(WAIT).raw[0]["sum"][0] == 6
            assert rested.acquire(timeout=WAIT)
    finally:
        scheduler.close()
    assert threads == ["pointsman-inference"] * 2
