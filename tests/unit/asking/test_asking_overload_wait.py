"""Requests that wait for models, sentence by sentence of "When the decision model is overloaded"."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest

from router.asking.errors import CallOutcome
from router.asking.overload.gate import Seat, Turn
from router.asking.overload.wait import Ask, Settled, SitDown, Wait
from tests.unit.asking.overload_world import OK, REFUSES, Asker, Crowd, World, always, room_for, until

SHORTEST_STEP = 0.1


def one(behaviour: object, wait_s: float = 2.0, calls: int = 1, **more: float) -> tuple[World, Asker]:
    world = World({"m": behaviour})  # type: ignore[dict-item]
    asker = world.request(0.0, wait_s, calls, **more)  # type: ignore[arg-type]
    world.run()
    return world, asker


# Waiting for capacity.


def test_a_model_that_answers_in_time_is_read_as_without_overload() -> None:
    _, asker = one(until(0.7), calls=3)
    assert asker.settled == {"m0": OK, "m1": OK, "m2": OK}


def test_the_wait_lasts_from_the_first_overloaded_answer() -> None:
    world = World({"m": always}, latency=0.3)
    asker = world.request(1.0, 2.0)
    world.run()
    assert asker.wait.ends_at == pytest.approx(3.3)
    assert asker.settled == {"m0": REFUSES}
    assert asker.settled_at["m0"] <= 3.3 + 0.3


def test_one_end_for_all_models_of_a_request() -> None:
    world = World({"m": always, "n": always})
    asker = world.request(0.0, 2.0, {"m": 1})
    asker.calls["n"] = ["n0"]
    world.at(1.2, lambda: world.call(asker, "n", "n0", again=False))
    world.run()
    assert asker.wait.ends_at == pytest.approx(2.001)
    assert asker.settled == {"m0": REFUSES, "n0": REFUSES}
    assert asker.rounds("n") == [pytest.approx(1.996)], "a quarter and half of the wait were over before"


@pytest.mark.parametrize("deadline", [0.5, 1.0, 1.9])
def test_the_deadline_of_the_signals_ends_it_earlier(deadline: float) -> None:
    _, asker = one(always, deadline=deadline)
    assert asker.wait.ends_at == deadline
    assert max(asker.rounds()) <= deadline - 0.1, "an answer must still be able to come"
    assert max(asker.settled_at.values()) <= deadline


def test_a_deadline_that_is_over_leaves_no_wait() -> None:
    world, asker = one(always, deadline=0.0)
    assert asker.settled == {"m0": REFUSES}
    assert len(world.called) == 1


def test_a_wait_of_nothing_asks_nothing_again() -> None:
    world, asker = one(always, 0.0, 5)
    assert len(world.called) == 5
    assert asker.asks == []
    assert set(asker.settled.values()) == {REFUSES}
    assert max(asker.settled_at.values()) == pytest.approx(0.001)


@pytest.mark.parametrize("outcome", [CallOutcome.TIMEOUT, CallOutcome.UNAVAILABLE, CallOutcome.REJECTED])
def test_a_call_that_fails_otherwise_when_asked_again_has_that_outcome(outcome: CallOutcome) -> None:
    _, asker = one(lambda now, asker, call: REFUSES if now < 0.4 else outcome)
    assert asker.settled == {"m0": outcome}
    assert len(asker.asks) == 1


def test_a_calls_own_time_bounds_an_attempt_and_not_the_wait() -> None:
    """An attempt that times out is settled by whoever runs it; the wait of the others goes on."""
    wait: Wait[str] = Wait(2.0, 99.0)
    wait.overloaded("m", "a", 0.0)
    wait.overloaded("m", "b", 0.0)
    wait.turn("m", Turn(0, True, 0.2), 0.5)
    assert wait.ended("m", "a", CallOutcome.TIMEOUT, 0.9)[0] == Settled("m", "a", CallOutcome.TIMEOUT)
    assert wait.overloaded("m", "b", 0.9) == [SitDown("m", Seat(1.0, 0.7, 2.0, 1))]


# Bounding the load.


def test_at_most_three_rounds_at_a_quarter_at_half_and_at_the_end() -> None:
    world, asker = one(always, calls=3)
    assert asker.rounds() == pytest.approx([0.501, 1.001, 2.001], abs=0.006)
    assert asker.probes() == []
    assert Counter(call for _, _, call, again in world.called if again) == {"m0": 3, "m1": 3, "m2": 3}


def test_calls_ask_again_together() -> None:
    _, asker = one(always, calls=8)
    assert [len(calls) for _, _, calls, _ in asker.asks] == [8, 8, 8]


@pytest.mark.parametrize("wait_s", [0.02, 0.1, 0.2, 0.25, 0.3, 0.5, 1.0])
def test_in_a_short_wait_rounds_are_fewer_but_a_step_apart(wait_s: float) -> None:
    _, asker = one(always, wait_s)
    times = asker.rounds()
    assert len(times) <= 3
    assert all(later - sooner >= SHORTEST_STEP for sooner, later in pairwise(times))
    assert all(0.1 <= at <= wait_s + 0.001 for at in times)
    assert asker.settled == {"m0": REFUSES}


@pytest.mark.parametrize("waiting", [2, 30, 300])
def test_one_waiting_requests_round_asks_per_step_however_many_wait(waiting: int) -> None:
    world = World({"m": always})
    askers = [world.request(number * 0.001, 2.0) for number in range(waiting)]
    world.run()
    asked = sorted(at for asker in askers for at in asker.rounds())
    gaps = [later - sooner for sooner, later in pairwise(asked)]
    assert all(gap >= SHORTEST_STEP for gap in gaps)
    assert len(asked) <= 6
    assert all(asker.settled == {"m0": REFUSES} for asker in askers)


def test_steps_grow_from_a_tenth_of_a_second_to_a_second() -> None:
    world = World({"m": always})
    for number in range(400):
        world.request(number * 0.05, 3.0)
    world.run()
    gaps = [later[0] - sooner[0] for sooner, later in pairwise(world.turns)]
    for gap, (least, most) in zip(gaps, [(0.2, 0.25), (0.4, 0.5), (0.8, 1.0), (0.8, 1.0)], strict=False):
        assert least <= gap <= most + 0.06
    assert len({round(gap, 3) for gap in gaps[3:15]}) > 3, "jittered"


def test_more_than_eight_calls_send_one_probe_that_is_no_round() -> None:
    _, asker = one(always, calls=9)
    assert asker.rounds() == []
    assert len(asker.probes()) >= 3
    assert {len(calls) for _, _, calls, _ in asker.asks} == {1}
    assert len({calls for _, _, calls, _ in asker.asks}) == len(asker.asks), "not the same one again and again"


def test_the_answer_to_a_probe_lets_the_others_ask_at_once() -> None:
    _, asker = one(until(0.6), calls=30)
    assert asker.probes() == pytest.approx([0.501, 0.73], abs=0.03)
    assert asker.rounds() == [pytest.approx(asker.probes()[-1] + 0.001)]
    assert len(asker.settled) == 30
    assert set(asker.settled.values()) == {OK}


def test_probes_of_one_request_do_not_take_every_turn() -> None:
    world = World({"m": always})
    long = world.request(0.0, 10.0, 40)
    short = [world.request(0.0, 10.0) for _ in range(4)]
    world.run(6.0)
    first, second = long.probes()
    assert all(len([at for at in asker.rounds() if first < at < second]) == 1 for asker in short)


def test_the_first_answer_to_any_call_opens_the_model_for_everybody() -> None:
    world = World({"m": until(1.0)})
    askers = [world.request(number * 0.01, 5.0) for number in range(50)]
    late = world.request(1.1, 5.0)
    world.run()
    assert late.settled == {}
    opened = 1.1 + world.latency
    called = sorted(asker.rounds()[-1] for asker in askers)
    assert called[0] == pytest.approx(opened)
    assert called[-1] <= opened + 0.1
    assert all(asker.settled == {"m0": OK} for asker in askers)


def test_a_model_that_opens_and_closes_again_is_waited_for_again() -> None:
    def answers(now: float, asker: Asker, call: str) -> CallOutcome:
        return OK if 0.5 <= now < 0.5085 or now >= 1.5 else REFUSES

    world = World({"m": answers})
    first = [world.request(0.0, 4.0) for _ in range(20)]
    world.request(0.508, 4.0)  # whose answer opens it when it is about to close
    world.request(1.55, 4.0)
    world.run()
    assert all(asker.settled == {"m0": OK} for asker in first)
    assert sum(len(asker.rounds()) > 1 for asker in first) <= 4, "the first refusal spares the others a round"
    assert all(len(asker.rounds()) <= 2 for asker in first)


def test_some_calls_answered_and_others_refused_do_not_use_the_rounds_up() -> None:
    """Of ten calls two are answered each time, which opens the model just as the others are refused."""
    left = Counter[float]()

    def answers(now: float, asker: Asker, call: str) -> CallOutcome:
        left[round(now, 3)] += 1
        return OK if now > 0.3 and left[round(now, 3)] <= 2 else REFUSES

    world = World({"m": answers})
    asker = world.request(0.0, 3.0, 8)
    world.run()
    assert all(later - sooner >= SHORTEST_STEP for sooner, later in pairwise(asker.rounds()))
    assert len(asker.rounds()) == 3
    assert Counter(asker.settled.values()) == {OK: 6, REFUSES: 2}


def test_a_call_refused_just_after_a_round_joins_it_when_the_model_opens() -> None:
    wait: Wait[str] = Wait(4.0, 99.0)
    wait.overloaded("m", "a", 0.0)
    wait.overloaded("m", "b", 0.0)
    assert wait.turn("m", Turn(0, False, 0.5), 0.1)[0] == Ask("m", ("a", "b"), False)
    assert wait.overloaded("m", "c", 0.15) == [SitDown("m", Seat(2.0, 0.1, 4.0))]
    wait.overloaded("m", "a", 0.2)
    joined, again = wait.turn("m", Turn(0, False, 0.5), 0.25)
    assert joined == Ask("m", ("c",), False), "in the same round, and a not twice"
    assert again == SitDown("m", Seat(2.0, 0.6, 4.0)), "the next is a step after that round"
    assert wait.overloaded("m", "c", 0.3) == [], "which is so for both now"
    assert wait.turn("m", Turn(0, False, 0.5), 0.6)[0] == Ask("m", ("a", "c"), False)
    wait.overloaded("m", "a", 0.7)
    wait.overloaded("m", "c", 0.7)
    assert wait.turn("m", Turn(0, False, 0.5), 1.1)[0] == Ask("m", ("a", "c"), False), "the third: the join was none"


def test_a_call_in_the_last_round_that_is_refused_has_no_chance_any_more() -> None:
    _, asker = one(always, 2.0)
    assert asker.settled_at["m0"] == pytest.approx(asker.rounds()[-1] + 0.001)
    wait: Wait[str] = Wait(60.0, 99.0)
    wait.overloaded("m", "a", 0.0)
    for now in (0.0, 1.0, 2.0):
        wait.turn("m", Turn(0, False, 0.5), now)
        ended = wait.overloaded("m", "a", now + 0.1)
    assert ended == [Settled("m", "a", REFUSES)]
    (settled,) = [it for it in wait.overloaded("m", "b", 2.6) if isinstance(it, Settled)]
    assert settled == Settled("m", "b", REFUSES), "and neither has one that comes later"
    assert not wait.pending


def test_several_models_at_once_do_not_wait_for_each_other() -> None:
    world = World({"m": until(0.6), "n": always, "o": until(0.0)})
    asker = world.request(0.0, 2.0, {"m": 2, "n": 2, "o": 2})
    world.run()
    assert {call: asker.settled[call] for call in ("m0", "m1", "n0", "n1")} == {
        "m0": OK,
        "m1": OK,
        "n0": REFUSES,
        "n1": REFUSES,
    }
    assert "o0" not in asker.settled, "it never waited"
    assert len(asker.rounds("n")) == 3
    assert asker.wait.waited("n")
    assert not asker.wait.waited("o")


# Learning no pace.


def test_it_says_from_when_a_scan_may_judge_its_pace() -> None:
    _, asker = one(until(0.6), calls=3)
    assert asker.wait.waited("m")
    assert asker.wait.answered_at("m") == pytest.approx(1.002)
    assert asker.wait.answered_at("n") is None
    assert not asker.wait.waited("n")


# Retry-After.


def test_a_remote_model_is_left_alone_as_long_as_it_asked() -> None:
    world = World({"m": until(1.2)}, hold_s=1.3)
    asker = world.request(0.0, 2.0)
    world.run()
    assert asker.rounds() == [pytest.approx(1.301)]
    assert asker.settled == {"m0": OK}


def test_one_that_asks_for_longer_than_the_wait_is_not_asked_again() -> None:
    world = World({"m": always}, hold_s=30.0)
    asker = world.request(0.0, 2.0)
    world.run()
    assert asker.asks == []
    assert asker.settled_at == {"m0": pytest.approx(2.001)}


# Who leaves.


def test_nothing_is_asked_for_a_request_that_is_gone() -> None:
    world = World({"m": always})
    gone, stays = world.request(0.0, 2.0), world.request(0.1, 2.0)
    world.at(0.2, lambda: world._do(gone, gone.wait.leave()))
    world.run()
    assert gone.asks == []
    assert gone.settled == {}
    assert len(stays.rounds()) == 3
    assert not gone.wait.pending


def test_calls_that_nobody_wants_any_more_are_not_asked_again() -> None:
    world = World({"m": always})
    asker = world.request(0.0, 2.0, 3)
    world.at(0.2, lambda: world._do(asker, asker.wait.drop("m", ["m0", "m2"], world.now)))
    world.run()
    assert {calls for _, _, calls, _ in asker.asks} == {("m1",)}
    assert asker.settled == {"m1": REFUSES}
    assert asker.wait.drop("n", ["n0"], 9.0) == []


def test_a_turn_that_comes_too_late_is_let_pass() -> None:
    wait: Wait[str] = Wait(1.0, 99.0)
    assert wait.turn("m", Turn(0, True, 0.2), 0.0) == []
    wait.overloaded("m", "a", 0.0)
    wait.drop("m", ["a"], 0.1)
    assert wait.turn("m", Turn(0, True, 0.2), 0.5) == []
    assert wait.ended("n", "x", OK, 0.5) == []


# Many at once.


def test_a_flood_keeps_the_model_busy_and_its_refusals_bounded() -> None:
    """Four times what the model can do, for five seconds."""
    world = World({"m": room_for(200, 64)}, latency=0.02)
    askers = [world.request(number / 800, 2.0) for number in range(4000)]
    world.run()
    answered = sum(asker.settled.get("m0", OK) is OK for asker in askers)
    assert answered >= 0.95 * 200 * 5
    again = len(world.refused_at) - sum(asker.wait.waited("m") for asker in askers)
    assert again <= answered + 10 * world.now, "one for an answer, which tells of room for one, and one for a step"
    assert all(len(asker.rounds()) <= 3 for asker in askers)
    assert all(not asker.wait.pending for asker in askers)


def test_a_burst_that_there_is_room_for_within_the_wait_is_answered() -> None:
    """400 at once on a queue of 256 that is read at 200 a second: the last is due after two seconds."""
    world = World({"m": room_for(200, 256)}, latency=0.005)
    askers = [world.request(0.0, 4.0) for _ in range(400)]
    world.run()
    assert sum(asker.settled.get("m0", OK) is OK for asker in askers) == 400


@pytest.mark.parametrize(
    ("clients", "per_second", "queue"), [(5, 30, 2), (5, 8, 2), (5, 5, 2), (20, 60, 4), (40, 60, 16)]
)
def test_no_more_clients_than_can_be_read_within_the_wait_are_all_read(
    clients: int, per_second: int, queue: int
) -> None:
    world = Crowd(clients=clients, per_second=per_second, queue=queue)
    world.run()
    assert len(world.ended) >= 0.95 * 30 * per_second
    assert {outcome for _, outcome in world.ended} == {OK}
    again = sum(len(asker.asks) for asker in world.askers)
    assert again <= 1.2 * len(world.ended), "hardly any asks in vain"


def test_a_longer_step_after_the_last_round_does_not_take_the_one_at_the_end() -> None:
    wait: Wait[str] = Wait(2.0, 99.0)
    wait.overloaded("m", "a", 0.0)
    wait.turn("m", Turn(0, True, 0.2), 0.5)
    wait.overloaded("m", "a", 0.501)
    wait.turn("m", Turn(0, True, 0.4), 1.0)
    assert wait.overloaded("m", "a", 1.001) == [SitDown("m", Seat(1.995, 1.4, 2.0, 2))]
    assert wait.turn("m", Turn(0, True, 0.9997), 1.995)[0] == Ask("m", ("a",), False)


def test_nobody_is_asked_when_the_deadline_would_cut_the_answer_off() -> None:
    wait: Wait[str] = Wait(2.0, 1.0)
    assert wait.overloaded("m", "a", 0.0) == [SitDown("m", Seat(0.25, 0.0, 0.9))]
    assert wait.turn("m", Turn(0, True, 0.2), 0.95) == [SitDown("m", Seat(0.25, 0.0, 0.9, 0))]
