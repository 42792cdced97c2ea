from __future__ import annotations

from router.asking.breaker import FAILURES, LONGEST_PAUSE_S, Admission, Breaker, BreakerState


def admitted(breaker: Breaker, at: float) -> Admission:
    admission = breaker.admit(at)
    assert admission is not None
    return admission


def opened(at: float = 0.0) -> Breaker:
    breaker = Breaker()
    told = [admitted(breaker, at).failed(at) for _ in range(FAILURES)]
    assert told == [False] * (FAILURES - 1) + [True]
    return breaker


def test_it_opens_after_failures_in_a_row_only() -> None:
    breaker = Breaker()
    for _ in range(3):
        for _ in range(FAILURES - 1):
            admitted(breaker, 0.0).failed(0.0)
        admitted(breaker, 0.0).succeeded()
    assert breaker.state(0.0) is BreakerState.CLOSED


def test_open_it_admits_nobody_until_the_pause_is_over() -> None:
    breaker = opened()
    assert (breaker.state(0.9), breaker.admit(0.9)) == (BreakerState.OPEN, None)
    assert breaker.state(1.0) is BreakerState.HALF_OPEN
    admitted(breaker, 1.0)


def test_half_open_one_call_tries_and_its_success_closes() -> None:
    breaker = opened()
    trying = admitted(breaker, 1.0)
    assert breaker.admit(1.0) is None
    trying.succeeded()
    assert breaker.state(1.0) is BreakerState.CLOSED
    admitted(breaker, 1.0)


def test_each_failed_try_doubles_the_pause_up_to_a_bound() -> None:
    breaker, now, pauses = opened(), 0.0, []
    for _ in range(7):
        began = now
        while (trying := breaker.admit(now)) is None:
            now += 0.5
        pauses.append(now - began)
        assert trying.failed(now) is False
    assert pauses == [1.0, 2.0, 4.0, 8.0, 16.0, LONGEST_PAUSE_S, LONGEST_PAUSE_S]


def test_a_success_forgets_the_long_pauses() -> None:
    breaker = opened()
    admitted(breaker, 1.0).failed(1.0)
    admitted(breaker, 3.0).succeeded()
    for _ in range(FAILURES):
        admitted(breaker, 3.0).failed(3.0)
    admitted(breaker, 4.0)


def test_a_try_that_was_given_up_leaves_room_for_another() -> None:
    breaker = opened()
    admitted(breaker, 1.0).abandoned()
    admitted(breaker, 1.0)


def test_calls_that_were_on_their_way_when_it_opened_change_nothing_but_by_success() -> None:
    breaker = Breaker()
    failing, leaving, answered = (admitted(breaker, 0.0) for _ in range(3))
    for _ in range(FAILURES):
        admitted(breaker, 0.0).failed(0.0)
    trying = admitted(breaker, 1.0)
    assert failing.failed(1.0) is False
    leaving.abandoned()
    assert breaker.admit(1.0) is None, "the one that tries still does"
    assert trying.failed(1.0) is False
    assert breaker.admit(2.9) is None, "its own failure is what doubles the pause"
    answered.succeeded()
    assert breaker.state(1.0) is BreakerState.CLOSED


def test_a_call_fails_once_and_may_be_answered_all_the_same() -> None:
    breaker = Breaker()
    late = admitted(breaker, 0.0)
    for _ in range(FAILURES + 1):
        late.failed(0.0)
    late.abandoned()
    assert breaker.state(0.0) is BreakerState.CLOSED
    breaker = opened()
    late = admitted(breaker, 1.0)
    late.failed(1.0)
    later = admitted(breaker, 3.0)
    late.abandoned()
    assert breaker.admit(3.0) is None, "another one tries by now"
    late.succeeded()
    assert breaker.state(3.0) is BreakerState.CLOSED
    later.abandoned()
    assert breaker.state(3.0) is BreakerState.CLOSED
