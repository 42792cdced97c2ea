"""The gate before one model: steps, turns, openings, and what a model asks for."""

from __future__ import annotations

import math

import pytest

from router.asking.overload.gate import FIRST_STEP_S, LEAST_OF_STEP, LONGEST_STEP_S, Gate, Seat, Turn


def gate(chance: float = 0.0) -> Gate[str]:
    return Gate(lambda: chance)


def ready(until: float = 1e9, had: int = 0) -> Seat:
    return Seat(0.0, 0.0, until, had)


def closed(*keys: str, chance: float = 0.0) -> Gate[str]:
    made = gate(chance)
    made.refused(0.0)
    for key in keys:
        made.sit(key, ready())
    return made


def keys(turns: list[Turn[str]]) -> list[str]:
    return [turn.key for turn in turns]


@pytest.mark.parametrize(("chance", "steps"), [(0.0, [0.1, 0.2, 0.4, 0.8, 0.8]), (1.0, [0.125, 0.25, 0.5, 1.0, 1.0])])
def test_one_seat_is_called_per_step_and_steps_double_up_to_a_second(chance: float, steps: list[float]) -> None:
    made = closed(*(str(number) for number in range(9)), chance=chance)
    now = 0.0
    for number, step in enumerate(steps):
        now += step
        assert made.turns(now - 0.001) == []
        (turn,) = made.turns(now)
        assert (turn.key, turn.probing) == (str(number), True)
        assert made.turns(now) == []
    assert made.waiting == 9 - len(steps)


def test_a_step_is_jittered_within_bounds() -> None:
    assert pytest.approx(0.1) == FIRST_STEP_S * LEAST_OF_STEP
    assert LONGEST_STEP_S == 1.0
    made = gate(0.5)
    made.refused(0.0)
    made.sit("a", ready())
    assert made.next_at(0.0) == pytest.approx(0.1125)


def test_any_answer_opens_it_and_everybody_is_called_twice_as_many_each_time() -> None:
    made = closed(*(str(number) for number in range(10)))
    made.answered(1.5)
    assert [(turn.key, turn.probing) for turn in made.turns(1.5)] == [("0", False)]
    assert made.turns(1.505) == [], "a refusal has time to come back"
    assert made.next_at(1.505) == 1.51
    assert keys(made.turns(1.51)) == ["1", "2"]
    assert keys(made.turns(1.52)) == ["3", "4", "5", "6"]
    assert keys(made.turns(1.53)) == ["7", "8", "9"]
    assert made.waiting == 0


def test_hundreds_have_been_called_within_a_tenth_of_a_second() -> None:
    made = closed(*(str(number) for number in range(500)))
    made.answered(1.5)
    called, now = 0, 1.5
    while made.waiting:
        called += len(made.turns(now))
        now = made.next_at(now) or now
    assert called == 500
    assert now <= 1.6


def test_who_must_give_up_first_is_called_first_although_it_has_just_sat_down_again() -> None:
    made = closed()
    made.sit("later", ready(until=3.0))
    made.sit("soon", ready(until=2.0))
    made.answered(1.5)
    assert keys(made.turns(1.5)) == ["soon"]


def test_a_refusal_spares_the_rounds_of_those_who_were_not_called_yet() -> None:
    made = closed(*(str(number) for number in range(10)))
    made.answered(1.5)
    made.turns(1.5)
    made.refused(1.503)
    assert made.turns(1.51) == []
    assert made.waiting == 9


def test_a_model_that_is_just_full_is_asked_once_for_each_of_its_answers() -> None:
    made = closed(*(str(number) for number in range(10)))
    made.answered(0.05)
    assert keys(made.turns(0.05)) == ["0"]
    assert made.turns(0.07) == [], "where there was room for one, another would ask in vain"
    made.answered(0.08)
    assert keys(made.turns(0.08)) == ["1"]
    assert made.turns(0.08) == []
    assert made.next_at(0.08) == pytest.approx(0.15), "once it has refused nobody for a step, there is room for more"
    assert [len(made.turns(now)) for now in (0.151, 0.162, 0.173)] == [1, 2, 4]


def test_who_is_ready_only_a_moment_after_an_answer_still_gets_its_room() -> None:
    made = closed()
    made.answered(0.05)
    made.sit("a", Seat(9.0, 0.055, 9.0))
    made.sit("b", Seat(9.0, 0.09, 9.0))
    assert keys(made.turns(0.055)) == ["a"]
    assert made.turns(0.09) == []
    assert keys(made.turns(0.151)) == ["b"]


def test_who_had_a_round_a_moment_ago_is_called_when_its_step_is_over_if_it_is_still_open() -> None:
    made = closed()
    made.sit("a", Seat(9.0, 0.5, 9.0))
    made.answered(0.1)
    assert made.turns(0.1) == []
    assert made.next_at(0.1) == 0.5
    assert keys(made.turns(0.5)) == ["a"]


def test_a_seat_is_called_once() -> None:
    made = closed("a")
    assert keys(made.turns(1.0)) == ["a"]
    assert made.turns(5.0) == []
    assert made.next_at(5.0) is None


def test_who_had_fewest_turns_goes_first_then_who_ends_first() -> None:
    made = closed()
    made.sit("much", ready(until=3.0, had=2))
    made.sit("late", ready(until=9.0))
    made.sit("soon", ready(until=8.0))
    assert [keys(made.turns(now)) for now in (0.1, 0.31, 0.72)] == [["soon"], ["late"], ["much"]]


def test_a_seat_whose_time_has_not_come_or_is_over_is_not_called() -> None:
    made = closed()
    made.sit("over", ready(until=0.05))
    made.sit("later", Seat(0.5, math.inf, 9.0))
    assert made.turns(0.2) == []
    assert made.next_at(0.2) == 0.5
    assert keys(made.turns(0.5)) == ["later"]
    assert made.waiting == 0


def test_sitting_down_again_replaces_what_was_wanted() -> None:
    made = closed("a")
    made.sit("a", Seat(2.0, 0.0, 9.0))
    assert made.turns(1.0) == []
    assert keys(made.turns(2.0)) == ["a"]


def test_who_rose_is_not_called() -> None:
    made = closed("a", "b")
    made.rise("a")
    made.rise("nobody")
    assert keys(made.turns(0.1)) == ["b"]


def test_more_refusals_do_not_put_a_turn_off() -> None:
    made = closed("a")
    for millisecond in range(100):
        made.refused(millisecond / 1000)
    assert keys(made.turns(0.1)) == ["a"]


def test_what_the_model_asked_for_is_waited_for() -> None:
    made = closed("a", "b")
    made.refused(0.0, hold_s=1.5)
    made.refused(0.1, hold_s=0.5)
    assert made.turns(1.4) == []
    assert made.next_at(0.2) == 1.5
    assert keys(made.turns(1.5)) == ["a"]


def test_an_answer_ends_what_the_model_asked_for() -> None:
    made = closed("a")
    made.refused(0.0, hold_s=30.0)
    made.answered(0.2)
    assert keys(made.turns(0.2)) == ["a"]


def test_closing_again_after_a_whole_step_starts_the_steps_anew() -> None:
    made = closed("a", "b", "c")
    for now in (0.1, 0.3):
        made.turns(now)
    made.answered(0.4)
    made.turns(0.4)
    made.refused(0.81)
    made.sit("d", ready())
    assert made.next_at(0.81) == pytest.approx(0.91)


def test_closing_again_within_a_step_goes_on_with_it() -> None:
    made = closed("a", "b")
    made.turns(0.1)
    made.answered(0.15)
    made.turns(0.15)
    made.refused(0.16)
    made.sit("d", ready())
    assert made.next_at(0.16) == pytest.approx(0.3), "a turn was at 0.1, and the next is 0.2 later"


def test_a_model_that_opens_and_closes_all_the_time_gets_long_steps() -> None:
    made = gate()
    for millisecond in range(0, 3000, 10):
        made.refused(millisecond / 1000)
        made.answered(millisecond / 1000 + 0.005)
    made.refused(3.0)
    made.sit("a", ready())
    at = made.next_at(3.0)
    assert at is not None
    assert at - 3.0 <= 1.0
    made.answered(3.001)
    (turn,) = made.turns(3.001)
    assert turn.step_s == pytest.approx(0.8)


def test_an_open_gate_calls_whoever_sits_down() -> None:
    made = gate()
    made.sit("a", ready())
    assert keys(made.turns(0.0)) == ["a"]


def test_nobody_waits_for_the_answer_of_one_who_has_gone() -> None:
    made = Gate[str](lambda: 1.0)
    for now in (0.0, 0.2, 0.6):  # steps of a second
        made.refused(now)
        made.answered(now + 0.001)
    made.refused(1.0)
    for number in range(50):
        made.sit(str(number), Seat(9.0, 0.0, 1.9))
    made.answered(1.1)
    called, now = [len(made.turns(1.1))], 1.1
    while made.waiting and (at := made.next_at(now)) is not None and at < 1.9:
        now = at
        called.append(len(made.turns(now)))
    assert called[:4] == [1, 1, 2, 4]
    assert made.waiting == 0
