"""Falling behind: when it is noticed, what is done about it, and what is learned."""

from __future__ import annotations

import random

import pytest

from router.config.sizes import ScanWindow
from router.questions import NoulAnswer, UnknownReason
from router.scan.machine import Ask, End, Lane, ScanMachine
from router.scan.pace import DeploymentPace, ScanPace, Shared
from router.scan.runs import merged
from router.scan.text import Place
from router.scan.windows import Window
from tests.support.scan_driving import GUARD, Drive, Model, Reply, drive, given, never, zero

SIZES = ScanWindow(1024, 64, 4096, 2, 3.0)
TEXT = "".join(f"{number:07d} " for number in range(12_500))


def learned(call: float, byte: float) -> DeploymentPace:
    pace = DeploymentPace()
    for size in (200, 1024, 500, 1024, 1024, 300, 1024):
        pace.learn(size, call + byte * size)
    return pace


def costing(call: float, byte: float, parallel: int = 2) -> Model:
    """A model that shares its time among the windows in flight."""
    return lambda ask: (parallel * (call + byte * len(ask.text)), {"q0": NoulAnswer(0.001)})


def test_a_calls_own_cost_is_told_from_its_texts() -> None:
    cost = learned(2.0, 0.001).cost
    assert cost is not None
    assert cost == pytest.approx((2.0, 0.001))
    assert cost.of(3, 1000) == pytest.approx(7.0)


def test_nothing_is_claimed_of_windows_of_one_size_or_of_too_few() -> None:
    pace = DeploymentPace()
    assert pace.cost is None
    for _ in range(100):
        pace.learn(1024, 3.0)
    assert pace.cost is None
    few = DeploymentPace()
    for size in (100, 1000, 500):
        few.learn(size, 1.0 + size)
    assert few.cost is None
    inverted = DeploymentPace()
    for size in (100, 1000, 500, 700, 300):
        inverted.learn(size, 1.0 / size)
    assert inverted.cost is None


def test_recent_windows_count_most() -> None:
    pace = learned(0.0, 0.001)
    for _ in range(150):
        for size in (200, 1024, 500):
            pace.learn(size, 5.0 + 0.002 * size)
    cost = pace.cost
    assert cost is not None
    assert cost == pytest.approx((5.0, 0.002), rel=0.05)


def test_windows_in_flight_share_the_time() -> None:
    shared = Shared()
    first = shared.change(1, 0.0)
    second = shared.change(1, 2.0)
    assert shared.change(-1, 6.0) - first == pytest.approx(2.0 + 2.0)
    assert shared.change(-1, 7.0) - second == pytest.approx(2.0 + 1.0)
    third = shared.change(1, 100.0)
    assert shared.change(-1, 101.0) - third == pytest.approx(1.0)


def test_a_scans_own_pace() -> None:
    pace = ScanPace()
    assert pace.finish(1000, [], 5.0) is None
    pace.begin(10.0)
    assert pace.finish(1000, [(500, 10.0)], 12.0) is None
    pace.read(500, 10.0, 12.0)
    assert pace.finish(1000, [], 12.0) == 16.0
    # Its neighbour is about to end too: 1,000 bytes in two seconds.
    assert pace.finish(1000, [(500, 10.0)], 12.0) == 14.0
    assert pace.finish(1000, [(500, 11.0)], 12.0) == pytest.approx(12.0 + 1250 * 2 / 750)
    pace.restart(20.0)
    assert pace.finish(1000, [], 21.0) is None
    pace.read(1000, 11.0, 22.0)
    assert pace.finish(1000, [], 22.0) == 24.0


def test_a_scan_in_time_keeps_its_windows() -> None:
    found = drive(given(TEXT), SIZES, costing(1.0, 0.0001), deadline=200.0, pace=learned(1.0, 0.0001))
    assert found.ended is End.READ
    assert max(map(len, found.texts)) == 1024


def test_a_scan_that_is_behind_reads_the_shortest_runs_that_are_in_time() -> None:
    lengths = {}
    for deadline in (120.0, 90.0, 60.0, 48.0):
        found = drive(given(TEXT), SIZES, costing(1.0, 0.0001), deadline=deadline, pace=learned(1.0, 0.0001))
        assert found.ended is End.READ
        assert found.now <= deadline
        assert str(found.machine.outcomes["attack"].coverage) == "full"
        lengths[deadline] = max(map(len, found.texts))
        assert lengths[deadline] <= 4096
    assert lengths[120.0] == 1024
    assert 1024 < lengths[90.0] < lengths[60.0] <= lengths[48.0]


def test_runs_that_would_not_be_in_time_are_not_read() -> None:
    found = drive(given(TEXT), SIZES, costing(1.0, 0.0001), deadline=20.0, pace=learned(1.0, 0.0001))
    assert found.ended is End.DEADLINE
    assert max(map(len, found.texts)) == 1024
    assert len(found.asks) >= 20


def test_where_text_is_the_cost_runs_do_not_help() -> None:
    found = drive(given(TEXT), SIZES, costing(0.0, 0.001), deadline=60.0, pace=learned(0.0, 0.001))
    assert found.ended is End.DEADLINE
    assert max(map(len, found.texts)) == 1024


def test_a_deployment_that_has_not_been_measured_claims_nothing() -> None:
    found = drive(given(TEXT), SIZES, costing(1.0, 0.0001), deadline=60.0)
    assert found.ended is End.DEADLINE
    assert max(map(len, found.texts)) == 1024


def test_the_largest_window_bounds_runs() -> None:
    sizes = ScanWindow(1024, 64, 1024, 2, 3.0)
    found = drive(given(TEXT), sizes, costing(1.0, 0.0001), deadline=60.0, pace=learned(1.0, 0.0001))
    assert max(map(len, found.texts)) == 1024


def test_runs_come_before_further_second_looks() -> None:
    def model(ask: Ask) -> tuple[float, Reply]:
        near = len(ask.text) > 1024 and len(asked) < 40
        asked.append(ask.text)
        return 2 * (1.0 + 0.0001 * len(ask.text)), {"q0": NoulAnswer(0.1 if near else 0.0001)}

    asked: list[str] = []
    found = drive(given(TEXT), SIZES, model, deadline=60.0, pace=learned(1.0, 0.0001))
    last_run = max(number for number, text in enumerate(found.texts) if len(text) > 1024)
    first_look = next(
        number
        for number, text in enumerate(found.texts)
        if any(text in longer and text != longer for longer in found.texts[:number])
    )
    assert first_look > last_run
    outcome = found.machine.outcomes["attack"]
    assert found.ended is End.DEADLINE
    assert str(outcome.coverage) == "full"
    assert outcome.rereads_left > 0


def test_a_run_that_nearly_matches_is_read_again_at_once_and_can_refuse() -> None:
    needle = TEXT[70_000:70_008]

    def model(ask: Ask) -> tuple[float, Reply]:
        chance = (0.4 if len(ask.text) > 1024 else 0.9) if needle in ask.text else 0.0001
        return 2 * (1.0 + 0.0001 * len(ask.text)), {"q0": NoulAnswer(chance)}

    found = drive(
        given(TEXT), SIZES, model, deadline=60.0, pace=learned(1.0, 0.0001), refuses=lambda *_: True, randbelow=zero
    )
    assert found.ended is End.REFUSED
    assert any(len(ask.text) > 1024 and needle in ask.text for ask in found.asks)


def test_a_scan_teaches_its_deployment() -> None:
    pace = DeploymentPace()
    sizes = ScanWindow(1024, 64, 1024, 2, 3.0)
    for size in (500, 900, 700, 5000):
        drive(given(TEXT[:size]), sizes, costing(1.0, 0.001), pace=pace)
    cost = pace.cost
    assert cost is not None
    # One window alone has the model for itself: the made-up one takes twice as long for it.
    assert cost.byte > 0


def test_a_scan_that_waited_teaches_nothing_and_starts_its_own_pace_anew() -> None:
    pace = DeploymentPace()
    machine = ScanMachine([given(TEXT)], {GUARD: Lane(SIZES, pace)}, 1000.0, never, zero)
    asks = machine.start(0.0)
    machine.overloaded(asks[0].id)
    machine.freed(GUARD, 300.0)
    for ask in [*asks, *machine.answered(asks[0].id, {"q0": NoulAnswer(0.001)}, 301.0)]:
        machine.answered(ask.id, {"q0": NoulAnswer(0.001)}, 302.0)
    assert pace.cost is None
    before = DeploymentPace()
    assert vars_of(pace) == vars_of(before)


def vars_of(pace: DeploymentPace) -> list[float]:
    return [getattr(pace, name) for name in DeploymentPace.__slots__]


def test_after_a_wait_a_scan_that_cannot_make_it_still_reads_runs() -> None:
    machine = ScanMachine([given(TEXT)], {GUARD: Lane(SIZES, learned(1.0, 0.0001))}, 100.0, never, zero)
    first = machine.start(0.0)
    for ask in first:
        machine.overloaded(ask.id)
    machine.freed(GUARD, 40.0)

    def model(ask: Ask) -> tuple[float, Reply]:
        return 2 * (1.0 + 0.0001 * len(ask.text)), {"q0": NoulAnswer(0.001)}

    found = Drive(machine, model, deadline=100.0, now=40.0)
    more = [each for ask in first for each in machine.answered(ask.id, {"q0": NoulAnswer(0.001)}, 42.2)]
    found.asks += more
    while machine.ended is None and machine.in_flight:
        call = machine.in_flight[0]
        found.now += 1.2
        found.asks += machine.answered(call, {"q0": NoulAnswer(0.001)}, found.now + 2.2)
    assert machine.ended is End.READ
    assert max(map(len, found.texts)) > 1024


def test_failed_windows_teach_nothing() -> None:
    pace = DeploymentPace()
    drive(given(TEXT), SIZES, lambda _: (1.0, UnknownReason.TIMEOUT), pace=pace)
    assert vars_of(pace) == vars_of(DeploymentPace())


def windows(count: int) -> list[Window]:
    return [Window(Place(90 * at, 90 * at), Place(90 * at + 100, 90 * at + 100)) for at in range(count)]


def test_runs_are_of_neighbours_and_fit_and_keep_their_turn() -> None:
    assert merged(windows(9), [5, 2, 3, 7, 4], 2, 1000) == [(4, 5), (2, 3), (7,)]
    assert merged(windows(9), [5, 2, 3, 7, 4], 3, 1000) == [(5,), (2, 3, 4), (7,)]
    assert merged(windows(9), [5, 2, 3, 7, 4], 9, 200) == [(4, 5), (2, 3), (7,)]
    assert merged(windows(9), [1, 3, 5], 2, 1000) is None
    assert merged(windows(9), [1, 2, 3], 2, 150) is None
    assert merged(windows(9), [], 2, 1000) is None


def test_runs_hold_every_window_once() -> None:
    chance = random.Random(3)
    for _ in range(200):
        numbers = chance.sample(range(40), chance.randrange(2, 40))
        found = merged(windows(40), numbers, chance.randrange(2, 8), 500)
        if found is not None:
            assert sorted(number for run in found for number in run) == sorted(numbers)
