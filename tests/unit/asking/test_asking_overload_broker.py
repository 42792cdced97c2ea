"""Gates in one place for several processes, and what travels between them."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest

from router.asking.overload.broker import Broker
from router.asking.overload.gate import Seat, Turn
from router.asking.overload.member import Member
from router.asking.overload.messages import (
    LONGEST_LINE,
    Answered,
    BadMessage,
    Called,
    FromBroker,
    FromMember,
    Refused,
    Rise,
    Sit,
    State,
    encode,
    read_from_broker,
    read_from_member,
)
from tests.unit.asking.overload_world import OK, REFUSES, World, always, until

NOW = Sit("m", 1, 0.0, 0.0, 99.0)


def broker(*members: str) -> Broker[str]:
    made: Broker[str] = Broker(lambda: 0.0)
    for member in members:
        assert made.joined(member) == []
    return made


@pytest.mark.parametrize("processes", [1, 2, 5])
@pytest.mark.parametrize("lag", [0.0, 0.002])
def test_one_turn_per_step_however_many_processes(processes: int, lag: float) -> None:
    world = World({"m": always}, processes=processes, lag=lag)
    askers = [world.request(number * 0.002, 2.0, process=number % processes) for number in range(200)]
    world.run()
    asked = sorted(at for asker in askers for at in asker.rounds())
    assert len(asked) >= 3
    assert all(later - sooner >= 0.1 for sooner, later in pairwise(asked))
    assert all(asker.settled == {"m0": REFUSES} for asker in askers)


@pytest.mark.parametrize("lag", [0.0, 0.002])
def test_an_answer_in_one_process_opens_the_model_for_all(lag: float) -> None:
    world = World({"m": until(1.0)}, processes=3, lag=lag)
    askers = [world.request(number * 0.01, 5.0, process=number % 2) for number in range(40)]
    world.request(1.1, 5.0, process=2)
    world.run()
    assert all(asker.settled == {"m0": OK} for asker in askers)
    first, last = (bound(asker.settled_at["m0"] for asker in askers) for bound in (min, max))
    assert first <= 1.1 + 0.001 + 2 * lag + 0.001 + 1e-6
    assert last <= first + 0.1, "one, two, four and so on, a hundredth of a second apart"
    assert all(len(asker.rounds()) <= 2 for asker in askers)


def test_a_process_that_dies_leaves_its_turns_to_others() -> None:
    made = broker("a", "b")
    made.receive("a", Refused("m"), 0.0)
    made.receive("a", NOW, 0.0)
    made.receive("b", Sit("m", 1, 0.0, 0.0, 99.0, 3), 0.0)
    made.gone("a")
    made.gone("never seen")
    assert made.tick(0.1) == [("b", Called("m", 1, True, 0.2))]
    assert made.receive("b", Answered("m"), 0.2) == [("b", State("m", False))], "nobody tells the dead"


def test_all_are_told_when_a_model_refuses_and_when_it_does_not() -> None:
    made = broker("a", "b")
    assert made.receive("a", Answered("m"), 0.0) == []
    assert made.receive("b", Refused("m"), 0.0) == [("a", State("m", True)), ("b", State("m", True))]
    assert made.receive("b", Refused("m", 3.0), 0.1) == []
    assert made.joined("c") == [("c", State("m", True))], "who comes later hears of it, too"
    assert made.receive("c", NOW, 0.1) == []
    told = made.receive("a", Answered("m"), 0.2)
    assert told[:3] == [(name, State("m", False)) for name in "abc"]
    assert told[3:] == [("c", Called("m", 1, False, 0.1))]
    assert made.joined("d") == []


def test_models_have_gates_of_their_own() -> None:
    made = broker("a")
    for model in ("m", "n"):
        made.receive("a", Refused(model), 0.0)
        made.receive("a", Sit(model, 1, 0.0, None, 9.0), 0.0)
    assert made.next_at(0.0) == pytest.approx(0.1)
    assert {message.model for _, message in made.tick(0.1)} == {"m", "n"}
    assert made.next_at(0.1) is None


def test_who_rose_is_not_called() -> None:
    made = broker("a")
    made.receive("a", Refused("m"), 0.0)
    made.receive("a", NOW, 0.0)
    made.receive("a", Rise("m", 1), 0.0)
    assert made.tick(5.0) == []


class TestMember:
    def test_it_says_what_is_news(self) -> None:
        member = Member()
        assert member.answered("m") == []
        assert member.refused("m") == [Refused("m")]
        assert member.refuses("m")
        assert member.refused("m") == []
        assert member.refused("m", 2.0) == [Refused("m", 2.0)]
        assert member.answered("m") == [Answered("m")]
        assert member.answered("m") == []

    def test_it_hears_of_other_processes(self) -> None:
        member = Member()
        assert member.receive(State("m", True)) is None
        assert member.answered("m") == [Answered("m")]
        member.receive(State("m", True))
        member.receive(State("m", False))
        assert member.answered("m") == []

    def test_a_turn_is_for_who_still_sits(self) -> None:
        member = Member()
        assert member.sit("m", 1, Seat(0.5, math.inf, 9.0, 2)) == [Sit("m", 1, 0.5, None, 9.0, 2)]
        assert member.receive(Called("n", 1, True, 0.2)) is None
        assert member.receive(Called("m", 1, True, 0.2)) == ("m", Turn(1, True, 0.2))
        assert member.receive(Called("m", 1, True, 0.2)) is None
        member.sit("m", 1, Seat(0.5, 0.5, 9.0))
        assert member.rise("m", 1) == [Rise("m", 1)]
        assert member.receive(Called("m", 1, True, 0.2)) is None

    def test_another_broker_is_told_everything(self) -> None:
        member = Member()
        member.refused("m")
        member.refused("n")
        member.answered("n")
        member.sit("m", 7, Seat(0.5, 0.2, 9.0))
        member.sit("m", 8, Seat(0.5, 0.2, 9.0))
        member.rise("m", 8)
        told = member.resume()
        assert told == [Refused("m"), Sit("m", 7, 0.5, 0.2, 9.0)]
        fresh = broker("a")
        for message in told:
            fresh.receive("a", message, 0.0)
        assert fresh.tick(0.5) == [("a", Called("m", 7, True, 0.2))]


@pytest.mark.parametrize(
    "message", [Refused("m"), Refused("m", 1.5), Answered("m"), Sit("m", 1, None, 0.5, 9.0, 2), NOW, Rise("m", 3)]
)
def test_what_members_say_travels_on_a_line(message: FromMember) -> None:
    line = encode(message)
    assert line.count(b"\n") == 1
    assert line.endswith(b"\n")
    assert read_from_member(line) == message


@pytest.mark.parametrize("message", [Called("m", 1, True, 0.2), State("m", False)])
def test_what_the_broker_says_travels_on_a_line(message: FromBroker) -> None:
    assert read_from_broker(encode(message)) == message


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"{}",
        b'["sit","m"]',
        b'["refused",1]',
        b'["refused","m","soon"]',
        b'["called","m",1,true,0.2]',
        b'["refused","\xff"]',
        b'["refused","' + b"m" * LONGEST_LINE + b'"]',
    ],
)
def test_anything_else_is_refused(line: bytes) -> None:
    with pytest.raises(BadMessage):
        read_from_member(line)
