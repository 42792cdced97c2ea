"""Waits with timers: a loop whose time the test moves, and calls that come back at once or later."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from router.asking.errors import CallOutcome
from router.asking.overload.broker import Broker
from router.asking.overload.desk import Alarm, Desk, Waiting
from router.asking.overload.messages import FromMember, Sit
from router.asking.overload.wait import Ask, Settled
from tests.support.loop_clock import Loop

OK, REFUSES = CallOutcome.OK, CallOutcome.OVERLOADED


class Request:
    """A request with some calls to one model, that answers by the time."""

    def __init__(
        self, loop: Loop, desk: Desk, answers: Callable[[float], CallOutcome], calls: int = 1, *, latency: float = 0.001
    ) -> None:
        self.loop, self.desk, self.answers, self.latency = loop, desk, answers, latency
        self.asked: list[tuple[float, tuple[int, ...]]] = []
        self.settled: dict[int, CallOutcome] = {}
        self.waiting: Waiting[int] = desk.begin(2.0, 99.0, self.ask, self.settle)
        for call in range(calls):
            self.refused(call)

    def refused(self, call: int) -> None:
        self.desk.refused("m")
        self.waiting.overloaded("m", call)

    def ask(self, ask: Ask[int]) -> None:
        self.asked.append((self.loop.now, ask.calls))
        for call in ask.calls:
            if self.latency:
                self.loop.call_at(self.loop.now + self.latency, lambda call=call: self.came_back(call))  # type: ignore[misc]
            else:
                self.came_back(call)

    def came_back(self, call: int) -> None:
        outcome = self.answers(self.loop.now)
        if outcome is REFUSES:
            self.refused(call)
        else:
            self.desk.answered("m")
            self.waiting.ended("m", call, outcome)

    def settle(self, settled: Settled[int]) -> None:
        assert settled.call not in self.settled
        self.settled[settled.call] = settled.outcome
        if not self.waiting.wait.pending:
            self.waiting.leave()


def test_a_request_is_asked_again_until_it_is_answered() -> None:
    loop = Loop()
    desk = Desk(loop)
    request = Request(loop, desk, lambda now: OK if now > 0.9 else REFUSES, 3)
    assert desk.waiting == 1
    loop.run()
    assert [round(at, 2) for at, _ in request.asked] == [0.5, 1.0]
    assert request.settled == {0: OK, 1: OK, 2: OK}
    assert desk.waiting == 0
    assert loop.timers == 0


def test_it_ends_with_the_wait() -> None:
    loop = Loop()
    request = Request(loop, Desk(loop), lambda now: REFUSES)
    loop.run(2.0)
    assert len(request.asked) == 3
    assert request.settled == {0: REFUSES}


def test_calls_that_come_back_at_once_lose_no_seat() -> None:
    """Where there is no room in the router's own line, a call is refused before `ask` returns."""
    loop = Loop()
    desk = Desk(loop)
    requests = [Request(loop, desk, lambda now: OK if now > 0.6 else REFUSES, 3, latency=0.0) for _ in range(20)]
    loop.run()
    assert all(request.settled == {0: OK, 1: OK, 2: OK} for request in requests)
    assert all(1 <= len(request.asked) <= 3 for request in requests)
    assert desk.waiting == 0


def test_an_answer_to_somebody_else_opens_the_model() -> None:
    loop = Loop()
    desk = Desk(loop)
    requests = [Request(loop, desk, lambda now: OK) for _ in range(10)]
    loop.call_at(0.2, lambda: desk.answered("m"))
    loop.run(0.3)
    asked = [round(at, 3) for request in requests for at, _ in request.asked]
    assert asked == [round(0.2 + 0.001 * number, 3) for number in range(10)], "as each is answered the next one asks"
    assert all(request.settled == {0: OK} for request in requests)


def test_who_left_is_not_asked_for() -> None:
    loop = Loop()
    desk = Desk(loop)
    request = Request(loop, desk, lambda now: OK, 2)
    request.waiting.drop("m", [0])
    request.waiting.leave()
    loop.run()
    assert request.asked == []
    assert (desk.waiting, loop.timers) == (0, 0)


def test_a_hold_is_kept() -> None:
    loop = Loop()
    desk = Desk(loop)
    request = Request(loop, desk, lambda now: OK)
    desk.refused("m", 1.2)
    loop.run()
    assert request.asked == [(1.2, (0,))]


def test_the_broker_may_be_elsewhere() -> None:
    loop = Loop()
    posted: list[FromMember] = []
    desk = Desk(loop, posted.extend)
    request = Request(loop, desk, lambda now: OK)
    broker: Broker[str] = Broker()
    broker.joined("here")
    assert any(isinstance(message, Sit) for message in posted)
    for message in posted:
        assert broker.receive("here", message, 0.0)[1:] == []
    for _, told in broker.tick(0.5):
        loop.now = 0.5
        desk.hear(told)
    loop.run(1.0)
    assert request.settled == {0: OK}


def test_an_alarm_rings_once_at_the_last_time_that_was_set() -> None:
    loop = Loop()
    rung: list[float] = []
    alarm = Alarm(loop, lambda: rung.append(loop.now))
    for at in (3.0, 1.0, 2.0, 2.0):
        alarm.set(at)
    loop.run()
    assert rung == [2.0]
    alarm.set(5.0)
    alarm.set(None)
    loop.run()
    assert rung == [2.0]


async def test_a_real_event_loop_is_such_a_clock() -> None:
    loop = asyncio.get_running_loop()
    done = asyncio.Event()
    desk = Desk(loop)
    settled: list[Settled[str]] = []

    def settle(each: Settled[str]) -> None:
        settled.append(each)
        done.set()

    waiting = desk.begin(0.05, loop.time() + 9.0, lambda ask: None, settle)
    desk.refused("m")
    waiting.overloaded("m", "a")
    async with asyncio.timeout(5):
        await done.wait()
    assert settled == [Settled("m", "a", REFUSES)]
    waiting.leave()
