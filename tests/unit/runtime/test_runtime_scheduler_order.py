"""Which rows make a batch, and what clients are told when there is no room."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from router.runtime.bounds import Bounds
from router.runtime.errors import Overloaded
from router.runtime.jobs import Dropped, Job, take
from router.runtime.rows import Row
from router.runtime.scheduler import LONGEST_HINT_S, Scheduler
from tests.unit.runtime.test_runtime_scheduler import WAIT, Clock, Graph, row

LENGTHS = st.lists(st.integers(1, 600), min_size=1, max_size=12)


def job(lengths: list[int], at: float = 0.0) -> Job:
    return Job.of([Row(np.zeros(n, np.int64), ("sum",)) for n in lengths], None, at)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(LENGTHS, st.floats(0, 10)), min_size=1, max_size=8), st.integers(1, 32), st.integers(1, 2000))
def test_every_row_is_taken_once_in_batches_within_bounds(
    given_jobs: list[tuple[list[int], float]], rows: int, tokens: int
) -> None:
    bounds = Bounds(batch_rows=rows, batch_tokens=tokens)
    jobs = [job(lengths, at) for lengths, at in given_jobs]
    taken = []
    while waiting := [one for one in jobs if one.next]:
        first = min(waiting, key=lambda one: one.due(3000))
        batch = take(waiting, bounds, 3000)
        assert first in [one for one, _ in batch], "the job due first is always served"
        lengths = [one.rows[index].tokens for one, index in batch]
        assert len(batch) == 1 or (len(batch) <= rows and len(batch) * max(lengths) <= tokens)
        assert max(lengths) - min(lengths) <= max(8, bounds.slack * max(lengths))
        taken += [(id(one), index) for one, index in batch]
    assert sorted(taken) == sorted((id(one), index) for one in jobs for index in range(len(one.rows)))


def test_of_rows_as_long_those_due_first_share_the_batch() -> None:
    late, early, middle = job([10], 3), job([10], 1), job([10], 2)
    batch = take([late, early, middle], Bounds(batch_rows=2), 3000)
    assert {id(one) for one, _ in batch} == {id(early), id(middle)}


@pytest.mark.parametrize(
    ("lengths", "pass_tokens", "first"),
    [
        ([5, 5, 5, 7, 7, 7, 7, 8, 8, 11], 8, 9),
        ([5, 5, 5, 7, 7, 7, 7, 8, 8, 11], 100, 10),
        ([100, 100, 104], 8, 3),
        ([100, 100, 105], 8, 2),
        ([7, 7], 0, 2),
    ],
)
def test_a_longer_row_waits_when_another_pass_costs_less_than_padding(
    lengths: list[int], pass_tokens: int, first: int
) -> None:
    one = job(lengths)
    batch = take([one], Bounds(pass_tokens=pass_tokens), 3000)
    assert sorted(one.rows[index].tokens for _, index in batch) == lengths[:first]


def test_long_work_is_not_starved_by_short_work_that_keeps_coming() -> None:
    long, now = job([500] * 6), 0.0
    served = 0
    for _ in range(200):
        short = job([500], now)
        batch = take([one for one in (long, short) if one.next], Bounds(batch_rows=1), 1000)
        served += batch[0][0] is long
        now += 0.5
    assert served == 6


def test_a_refusal_says_when_there_will_be_room() -> None:
    graph, clock = Graph(), Clock()
    scheduler = Scheduler(graph.run, bounds=Bounds(requests=2), clock=clock)
    scheduler.submit([row(3000)])
    graph.started()
    scheduler.submit([row(9000)])
    with pytest.raises(Overloaded) as refused:
        scheduler.submit([row(5)])
    assert refused.value.retry_after_s == 4, "12,000 tokens at the first guess of 3,000 a second"
    clock.now += 1.0  # the first batch took a second: 3,000 tokens a second it is
    graph.permits.release(10)
    scheduler.close()


def test_the_hint_is_bounded() -> None:
    graph = Graph()
    scheduler = Scheduler(graph.run)
    assert scheduler.retry_after_s == 1
    scheduler.submit([row(1_000_000)])
    assert scheduler.retry_after_s == LONGEST_HINT_S
    graph.permits.release(10)
    scheduler.close()


class Notes:
    """An observer that keeps what it was told."""

    def __init__(self) -> None:
        self.batches: list[tuple[int, int, int]] = []
        self.reasons: list[Dropped] = []
        self.told = threading.Event()

    def batch(self, rows: int, tokens: int, padding: int, seconds: float) -> None:
        self.batches.append((rows, tokens, padding))
        self.told.set()

    def dropped(self, reason: Dropped) -> None:
        self.reasons.append(reason)


def test_padding_and_drops_are_told() -> None:
    graph, clock, notes = Graph(), Clock(), Notes()
    scheduler = Scheduler(graph.run, bounds=Bounds(requests=4), observer=notes, clock=clock)
    scheduler.submit([row(5)])
    graph.started()
    kept = scheduler.submit([row(20), row(24)])
    given_up = scheduler.submit([row(5)])
    scheduler.submit([row(5)], deadline=clock.now + 1)
    with pytest.raises(Overloaded):
        scheduler.submit([row(5)])
    given_up.cancel()
    clock.now += 2
    graph.permits.release(2)
    assert len(kept.result(WAIT).raw) == 2
    assert scheduler.queued_tokens == 0
    scheduler.submit([row(7)])
    while graph.lengths()[-1] != [7]:
        graph.started()
    scheduler.submit([row(5)])
    closing = threading.Thread(target=scheduler.close)
    closing.start()
    while not scheduler.stopping:
        closing.join(0.001)
    graph.permits.release(10)
    closing.join(WAIT)
    assert notes.batches[:2] == [(1, 5, 0), (2, 44, 4)]
    assert sorted(notes.reasons) == sorted(Dropped)


def test_batches_are_told_of_when_the_worker_rests() -> None:
    graph, notes = Graph(held=False), Notes()
    scheduler = Scheduler(graph.run, observer=notes)
    scheduler.submit([row(5)]).result(WAIT)
    assert notes.told.wait(WAIT)
    scheduler.close()


def test_an_idle_worker_takes_lent_work_and_a_busy_one_does_not() -> None:
    graph = Graph()
    scheduler = Scheduler(graph.run)
    names: list[str] = []
    done = threading.Event()

    def work() -> None:
        names.append(threading.current_thread().name)
        scheduler.submit([row(5)])
        done.set()

    while not scheduler.lend(work):
        pass
    assert done.wait(WAIT)
    graph.started()
    assert names == ["pointsman-inference"]
    assert not scheduler.lend(work), "it computes"
    graph.permits.release(10)
    scheduler.close()
    assert not scheduler.lend(work), "it has stopped"
