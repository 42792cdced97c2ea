from __future__ import annotations

from router.asking.breaker import FAILURES, LONGEST_PAUSE_S, Breaker, BreakerState


def opened(at: float = 0.0) -> Breaker:
    breaker = Breaker()
    told = [breaker.failed(at) for _ in range(FAILURES)]
    assert told == [False] * (FAILURES - 1) + [True]
    return breaker


def test_it_opens_after_failures_in_a_row_only() -> None:
    breaker = Breaker()
    for _ in range(3):
        for _ in range(FAILURES - 1):
            assert breaker.admit(0.0)
            breaker.failed(0.0)
        breaker.succeeded()
    assert breaker.state(0.0) is BreakerState.CLOSED


def test_open_it_admits_nobody_until_the_pause_is_over() -> None:
    breaker = opened()
    assert (breaker.state(0.9), breaker.admit(0.9)) == (BreakerState.OPEN, False)
    assert (breaker.state(1.0), breaker.admit(1.0)) == (BreakerState.HALF_OPEN, True)


def test_half_open_one_call_tries_and_its_success_closes() -> None:
    breaker = opened()
    assert [breaker.admit(1.0), breaker.admit(1.0)] == [True, False]
    breaker.succeeded()
    assert (breaker.state(1.0), breaker.admit(1.0)) == (BreakerState.CLOSED, True)


def test_each_failed_try_doubles_the_pause_up_to_a_bound() -> None:
    breaker, now, pauses = opened(), 0.0, []
    for _ in range(7):
        began = now
        while not breaker.admit(now):
            now += 0.5
        pauses.append(now - began)
        assert breaker.failed(now) is False
    assert pauses == [1.0, 2.0, 4.0, 8.0, 16.0, LONGEST_PAUSE_S, LONGEST_PAUSE_S]


def test_a_success_forgets_the_long_pauses() -> None:
    breaker = opened()
    assert breaker.admit(1.0)
    breaker.failed(1.0)
    assert breaker.admit(3.0)
    breaker.succeeded()
    for _ in range(FAILURES):
        breaker.failed(3.0)
    assert breaker.admit(4.0)


def test_a_try_that_was_given_up_leaves_room_for_another() -> None:
    breaker = opened()
    assert breaker.admit(1.0)
    breaker.abandoned()
    assert breaker.admit(1.0)


def test_calls_that_were_on_their_way_when_it_opened_change_nothing_but_by_success() -> None:
    breaker = opened()
    assert breaker.failed(0.5) is False
    assert breaker.admit(1.0)
    breaker = opened()
    breaker.succeeded()
    assert breaker.state(0.5) is BreakerState.CLOSED
