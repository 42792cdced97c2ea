"""Calls that come back overloaded, asked again while the request waits: by the asker, over real lines and gates."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

import orjson
import pytest

from router.asking.answer_cache import AnswerCache
from router.asking.asker import Asker, StageAnswers
from router.asking.errors import CallError, CallOutcome, CallTimeout, Overloaded, Rejected, Unavailable
from router.asking.line import NO_ROOM, Line
from router.asking.overload.desk import Desk
from router.asking.overload.request import RequestWait
from router.asking.plan import StagePlan
from router.config.plan import StateKind
from router.questions import Answer, NoulAnswer, Unknown, UnknownReason
from tests.support.loop_clock import Loop
from tests.unit.asking.asking_builders import deployment, noul, rule, stage, texts

YES = NoulAnswer(0.9)
BUSY = Overloaded("no room")
Says = Callable[[float, Mapping[str, Any]], CallError | Mapping[str, Any] | None]
"""What a model says to a call at a time: an error, answers by question, or None for yes to everything."""

PLAN = stage(rule("hasty", noul("A?"), timeout_ms=500), rule("patient", noul("B?"), timeout_ms=2000))


def until(moment: float) -> Says:
    """No room before a moment."""
    return lambda now, body: BUSY if now < moment else None


class Model:
    def __init__(self, loop: Loop, says: Says) -> None:
        self.loop, self.says = loop, says
        self.seen: list[tuple[float, dict[str, Any]]] = []
        self.held: asyncio.Event | None = None

    async def decide(self, body: bytes, timeout_s: float, told: object = None) -> bytes:
        asked = orjson.loads(body)
        self.seen.append((self.loop.now, asked))
        if self.held is not None:
            await self.held.wait()
        said = self.says(self.loop.now, asked)
        if isinstance(said, CallError):
            raise said
        answers = {name: {"type": "noul", "noul": 0.9} for name in asked["questions"]} | dict(said or {})
        return orjson.dumps({"answers": answers})

    @property
    def times(self) -> list[float]:
        return [at for at, _ in self.seen]


class House:
    """Requests at one desk, and models by deployment."""

    def __init__(self, *, heeds: bool = False, **models: Says) -> None:
        self.loop = Loop()
        self.desk = Desk(self.loop)
        self.models = {name: Model(self.loop, says) for name, says in models.items()}
        self.ended: list[tuple[str, str]] = []
        self.lines = {
            name: Line(
                model,
                cache=AnswerCache(clock=self.loop.time),
                clock=self.loop.time,
                desk=self.desk,
                gate=f"gate of {name}",
                heeds=heeds,
            )
            for name, model in self.models.items()
        }
        self.ready = True
        self.asker = Asker(self.lines, clock=self.loop.time, is_ready=lambda name: self.ready)

    def wait(self, wait_s: float = 2.0, **more: Any) -> RequestWait:
        def ended(name: str, outcome: CallOutcome) -> None:
            self.ended.append((name, outcome.value))

        return RequestWait(self.desk, wait_s, self.loop.now + more.pop("left", 45.0), ended=ended, **more)

    def ask(
        self, plan: StagePlan = PLAN, wait: RequestWait | None = None, *, left: float = 45.0, text: str = "some text"
    ) -> asyncio.Task[StageAnswers]:
        asked = self.asker.ask(plan, texts(plan, text), stage_deadline=self.loop.now + left, waiting=wait)
        return asyncio.create_task(asked)

    async def run(self, *tasks: asyncio.Task[StageAnswers], until: float = 100.0) -> None:
        """Move the clock from timer to timer as long as somebody asks."""
        end = self.loop.now + until
        await settle()
        while not all(task.done() for task in tasks) and self.loop.timers and self.loop.now < end:
            self.loop.run_next()
            await settle()


async def settle() -> None:
    for _ in range(30):
        await asyncio.sleep(0)


async def found(house: House, plan: StagePlan = PLAN, wait: RequestWait | None = None, **more: Any) -> StageAnswers:
    asked = house.ask(plan, wait, **more)
    await house.run(asked)
    assert asked.done()
    return asked.result()


async def test_a_call_is_asked_again_whole_until_there_is_room() -> None:
    house = House(m=until(100.4))
    house.loop.now = 100.0
    wait = house.wait()
    answers = await found(house, wait=wait)
    assert answers.answers == {"hasty": YES, "patient": YES}
    first, again = house.models["m"].seen
    assert again[1]["questions"] == first[1]["questions"], "what travelled together travels together again"
    assert again[0] == pytest.approx(100.5), "at a quarter of the wait"
    assert [report.outcome for report in answers.calls] == [CallOutcome.OVERLOADED, CallOutcome.OK]
    assert [report.again for report in answers.calls] == [False, True]
    assert house.ended == [("m", "ok")]
    report = wait.report
    assert report is not None
    assert report.ended == "ok"
    assert report.seconds == pytest.approx(0.5)
    assert [(each.deployment, each.calls, each.asked_again) for each in report.waited_for] == [("m", 1, 1)]


async def test_a_rules_own_timeout_bounds_each_attempt_and_not_the_wait() -> None:
    house = House(m=until(1.5))  # three times as long as the hasty rule waits
    answers = await found(house, wait=house.wait())
    assert answers.answers == {"hasty": YES, "patient": YES}
    deadlines = [body["options"]["deadline_ms"] for _, body in house.models["m"].seen]
    assert set(deadlines) == {1990}, "each attempt has all the time that the most patient rule waits"


async def test_a_wait_that_runs_out_leaves_the_rules_unread() -> None:
    house = House(m=until(99.0))
    wait = house.wait()
    answers = await found(house, wait=wait)
    assert answers.answers == {"hasty": NO_ROOM, "patient": NO_ROOM}
    assert house.ended == [("m", "overloaded")]
    assert len(house.models["m"].seen) == 4, "the first call and three rounds"
    assert wait.report is not None
    assert wait.report.ended == "overloaded"
    assert house.loop.now == pytest.approx(2.0, abs=0.01)


@pytest.mark.parametrize("wait_s", [None, 0.0])
async def test_without_a_wait_it_is_asked_once(wait_s: float | None) -> None:
    house = House(m=until(99.0))
    wait = None if wait_s is None else house.wait(wait_s)
    answers = await found(house, wait=wait)
    assert answers.answers == {"hasty": NO_ROOM, "patient": NO_ROOM}
    assert (len(house.models["m"].seen), house.ended, house.loop.now) == (1, [], 0.0)
    assert wait is None or wait.report is None


async def test_a_model_with_room_costs_no_wait() -> None:
    house = House(m=until(0.0))
    wait = house.wait()
    answers = await found(house, wait=wait)
    assert answers.answers == {"hasty": YES, "patient": YES}
    assert wait.report is None
    assert (house.desk.waiting, house.loop.timers, house.ended) == (0, 0, [])


async def test_the_deadline_of_all_signals_ends_the_wait() -> None:
    house = House(m=until(99.0))
    await found(house, wait=house.wait(60.0, left=1.0), left=1.0)
    assert house.loop.now <= 1.0
    assert house.ended == [("m", "overloaded")]


@pytest.mark.parametrize(
    ("error", "outcome", "reason"),
    [
        (Unavailable("gone"), "unavailable", UnknownReason.UNAVAILABLE),
        (Rejected("no"), "rejected", UnknownReason.INVALID_ANSWER),
        (CallTimeout("late"), "timeout", UnknownReason.TIMEOUT),
    ],
)
async def test_another_failure_ends_it(error: CallError, outcome: str, reason: UnknownReason) -> None:
    house = House(m=lambda now, body: BUSY if now < 0.3 else error)
    answers = await found(house, wait=house.wait())
    assert set(answers.answers.values()) == {Unknown(reason)}
    assert house.ended == [("m", outcome)]
    assert len(house.models["m"].seen) == 2


async def test_a_model_that_is_started_again_meanwhile_is_unavailable() -> None:
    house = House(m=until(99.0))
    asked = house.ask(wait=house.wait())
    await settle()
    house.ready = False
    await house.run(asked)
    assert set(asked.result().answers.values()) == {Unknown(UnknownReason.UNAVAILABLE)}
    assert house.ended == [("m", "unavailable")]


async def test_only_what_has_no_answer_is_asked_again() -> None:
    def some(now: float, body: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"q1": {"error": "overloaded"}} if now < 0.4 else {}

    house = House(m=some)
    wait = house.wait()
    answers = await found(house, wait=wait)
    assert answers.answers == {"hasty": YES, "patient": YES}
    assert [list(body["questions"]) for _, body in house.models["m"].seen] == [["q0", "q1"], ["q1"]]
    assert house.ended == [("m", "ok")]


async def test_our_own_bound_on_calls_is_waited_for_too() -> None:
    house = House(m=until(0.0))
    house.lines["m"].limit = 1
    model = house.models["m"]
    model.held = asyncio.Event()
    first = house.ask(text="a first text")
    await settle()
    second = house.ask(wait=house.wait())
    await settle()
    assert len(model.seen) == 1
    model.held.set()
    await house.run(first, second)
    assert second.result().answers == {"hasty": YES, "patient": YES}
    assert [(report.sent, report.again) for report in second.result().calls] == [(False, False), (True, True)]
    assert house.ended == [("m", "ok")]


async def test_the_first_answer_to_anybody_lets_everybody_ask() -> None:
    house = House(m=until(0.3))
    waits = [house.wait() for _ in range(40)]
    asked = [house.ask(wait=wait, text=f"text {number}") for number, wait in enumerate(waits)]
    await settle()
    house.loop.run(0.35)
    await settle()
    assert len(house.models["m"].seen) == 40, "nobody's time has come"
    fresh = house.ask(text="a fresh text")
    await house.run(fresh, *asked)
    assert all(task.result().answers == {"hasty": YES, "patient": YES} for task in asked)
    assert 0.35 <= house.loop.now <= 0.6, "each answer lets another ask, and after a step of that all others"
    assert len(house.models["m"].seen) == 40 + 1 + 40
    assert house.ended == [("m", "ok")] * 40


async def test_while_it_refuses_one_request_asks_per_step() -> None:
    house = House(m=until(99.0))
    asked = [house.ask(wait=house.wait(10.0), text=f"text {number}") for number in range(200)]
    await house.run(*asked)
    again = sorted(house.models["m"].times)[200:]
    assert 8 <= len(again) <= 15, "steps of 100 ms to 1 s in ten seconds, from the first quarter on"
    assert all(later - earlier >= 0.1 for earlier, later in pairwise(again))


async def test_a_remote_model_is_left_alone_as_long_as_it_asks_for() -> None:
    def says(now: float, body: Mapping[str, Any]) -> CallError | None:
        return Overloaded("no room", 1.6) if now < 0.1 else None

    for heeds, asked_at in ((True, 1.6), (False, 0.5)):
        house = House(heeds=heeds, m=says)
        await found(house, wait=house.wait())
        assert house.models["m"].times[1] == pytest.approx(asked_at)


TWO = stage(
    rule("a", noul("A?"), "m"),
    rule("b", noul("B?"), "n"),
    on=[deployment("m"), deployment("n")],
)


async def test_each_model_has_its_gate_and_all_share_the_wait() -> None:
    house = House(m=until(0.9), n=until(99.0))
    wait = house.wait()
    answers = await found(house, TWO, wait)
    assert answers.answers == {"a": YES, "b": NO_ROOM}
    assert sorted(house.ended) == [("m", "ok"), ("n", "overloaded")]
    assert wait.report is not None
    assert wait.report.ended == "overloaded"


async def test_nobody_waits_for_what_cannot_change_anything() -> None:
    seen: list[Mapping[str, Answer]] = []

    def decided(answers: Mapping[str, Answer]) -> bool:
        seen.append(answers)
        return answers.get("a") == YES

    house = House(m=until(0.0), n=until(99.0))
    wait = house.wait(decided=decided)
    answers = await found(house, TWO, wait)
    assert answers.answers == {"a": YES, "b": NO_ROOM}
    assert seen == [{"a": YES}]
    assert house.loop.now == 0.0
    wait.leave()
    await settle()
    assert (house.ended, house.loop.timers, house.desk.waiting, wait.report) == ([], 0, 0, None)


async def test_a_wait_ends_once_it_is_known_that_it_cannot_change_anything() -> None:
    house = House(m=until(0.9), n=until(99.0))
    wait = house.wait(decided=lambda answers: answers.get("a") == YES)
    answers = await found(house, TWO, wait)
    assert answers.answers == {"a": YES, "b": NO_ROOM}
    assert house.loop.now == pytest.approx(1.0), "at half of the wait, which had another second"
    wait.leave()
    assert wait.report is not None
    assert [(each.deployment, each.outcome) for each in wait.report.waited_for] == [("m", "ok"), ("n", None)]
    assert wait.report.ended == "left"


async def test_a_request_that_is_gone_leaves_nothing_behind() -> None:
    house = House(m=until(99.0))
    wait = house.wait()
    asked = house.ask(wait=wait)
    await settle()
    assert (house.desk.waiting, house.loop.timers) == (1, 2)
    asked.cancel()
    await asyncio.gather(asked, return_exceptions=True)
    wait.leave()
    await settle()
    assert (house.desk.waiting, house.loop.timers, house.lines["m"].in_flight) == (0, 0, 0)
    assert not [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    assert house.ended == []
    assert await wait.room("gate of m", "later", "m") is False


async def test_a_question_that_another_asks_already_is_shared_also_when_asked_again() -> None:
    house = House(m=until(0.3))
    asked = [house.ask(wait=house.wait()) for _ in range(3)]
    await house.run(*asked)
    assert all(task.result().answers == {"hasty": YES, "patient": YES} for task in asked)
    assert len(house.models["m"].seen) == 2


async def test_a_bound_text_alone_is_unread() -> None:
    house = House(m=until(0.4))
    plan = stage(rule("turn", noul("A?")), rule("sys", noul("B?"), state=StateKind.SYSTEM))
    asker = house.asker.ask(plan, texts(plan, "some", system=" "), stage_deadline=45.0, waiting=house.wait())
    asked = asyncio.create_task(asker)
    await house.run(asked)
    assert asked.result().answers == {"sys": Unknown(UnknownReason.NO_TEXT), "turn": YES}
