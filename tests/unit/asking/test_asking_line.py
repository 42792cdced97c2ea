"""Calls that belong to nobody: shared, outliving their wait, kept, bounded, and not made at all."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import orjson
import pytest

from router.asking import line as line_module
from router.asking.answer_cache import AnswerCache
from router.asking.asker import Asker, StageAnswers
from router.asking.breaker import FAILURES, FIRST_PAUSE_S, LONGEST_PAUSE_S, BreakerState
from router.asking.errors import CallError, CallOutcome, CallTimeout, ConnectionFailed, Overloaded, Rejected
from router.asking.line import Line
from router.asking.plan import StagePlan, bind
from router.asking.report import CallReport, ServerTime
from router.config.plan import StateKind
from router.questions import NoulAnswer, Unknown, UnknownReason
from tests.unit.asking.asking_builders import (
    NO_SET,
    capabilities,
    deployment,
    label_set,
    managed,
    noul,
    rule,
    stage,
    texts,
)

YES = NoulAnswer(0.9)
LATE = Unknown(UnknownReason.TIMEOUT)
GONE = Unknown(UnknownReason.UNAVAILABLE)
SHORT_MS = 30
ONE = stage(rule("a", noul("A?"), timeout_ms=5000))
HASTY = stage(rule("a", noul("A?"), timeout_ms=SHORT_MS))


@dataclass
class Model:
    """Answers every noul with 0.9 once it is open; remembers what came and what was given up."""

    open: asyncio.Event = field(default_factory=asyncio.Event)
    error: CallError | None = None
    identity: str = "m 1"
    timing: str | None = None
    seen: list[dict[str, Any]] = field(default_factory=list)
    given_up: int = 0
    broken: bool = False

    async def decide(self, body: bytes, timeout_s: float, told: ServerTime | None = None) -> bytes:
        if told is not None:
            told.said = self.timing
        request = orjson.loads(body)
        self.seen.append(request)
        try:
            await self.open.wait()
        except asyncio.CancelledError:
            self.given_up += 1
            raise
        if self.broken:
            raise RuntimeError("a fault of ours")
        if self.error is not None:
            raise self.error
        others = {name: {"answers": _answers(part["questions"])} for name, part in request.get("states", {}).items()}
        answers = _answers(request["questions"])
        return orjson.dumps({"model": self.identity, "answers": answers, "states": others})

    def asked(self) -> list[list[str]]:
        """The instructions of each call, in order."""
        return [[question["instructions"] for question in call["questions"].values()] for call in self.seen]


def _answers(questions: dict[str, Any]) -> dict[str, Any]:
    return {name: {"type": "noul", "noul": 0.9} for name in questions}


@dataclass
class Observed:
    reports: list[CallReport] = field(default_factory=list)
    lookups: list[tuple[int, int, int]] = field(default_factory=list)

    def call_ended(self, report: CallReport) -> None:
        self.reports.append(report)

    def looked_up(self, deployment: str, hits: int, shared: int, misses: int) -> None:
        self.lookups.append((hits, shared, misses))


class Rig:
    """A model, its line, and an asker over it."""

    def __init__(self, *, is_open: bool = True, **options: Any) -> None:
        self.model = Model()
        if is_open:
            self.model.open.set()
        self.line = Line(self.model, **options)
        self.observed = Observed()
        self.asker = Asker({"m": self.line}, observer=self.observed, clock=options.get("clock", time.monotonic))

    async def ask(self, plan: StagePlan = ONE, text: str = "some text", **by_state: str) -> StageAnswers:
        deadline = self.asker.clock() + 20
        return await self.asker.ask(plan, texts(plan, text, **by_state), stage_deadline=deadline)

    async def start(self, plan: StagePlan = ONE, text: str = "some text") -> asyncio.Task[StageAnswers]:
        task = asyncio.ensure_future(self.ask(plan, text))
        await settle()
        return task


async def settle(until: Callable[[], bool] | None = None) -> None:
    """Let everything that can run do so."""
    async with asyncio.timeout(5):
        for _ in range(5):
            await asyncio.sleep(0)
        while until is not None and not until():  # noqa: ASYNC110 - what is waited for sets no event
            await asyncio.sleep(0)


# -- answers are reused -----------------------------------------------------------------------------------------------


async def test_a_report_tells_of_the_servers_own_time() -> None:
    rig = Rig()
    await rig.ask()
    rig.model.timing = "queue;dur=2, total;dur=5"
    await rig.ask(text="another text")
    assert [(one.surface, one.server) for one in rig.observed.reports] == [
        ("systemone", None),
        ("systemone", pytest.approx({"queue": 0.002, "other": 0.003, "total": 0.005})),
    ]


async def test_the_same_question_about_the_same_text_is_asked_once() -> None:
    rig = Rig()
    first, second = await rig.ask(), await rig.ask()
    assert first.answers == second.answers == {"a": YES}
    assert (first.sent, second.sent, second.calls, len(rig.model.seen)) == (1, 0, (), 1)
    assert rig.observed.lookups == [(0, 0, 1), (1, 0, 0)]


async def test_other_recipes_share_answers_whatever_their_ids() -> None:
    rig = Rig()
    await rig.ask(stage(rule("x", noul("B?")), rule("y", noul("A?"))))
    assert (await rig.ask(ONE)).answers == {"a": YES}
    assert len(rig.model.seen) == 1


async def test_only_the_questions_that_miss_travel() -> None:
    rig = Rig()
    plan = stage(rule("a", noul("A?")), rule("b", noul("B?")), rule("s", noul("A?"), state=StateKind.SYSTEM))
    await rig.ask(ONE, "user")
    found = await rig.ask(plan, user="user", system="system")
    assert found.answers == {"a": YES, "b": YES, "s": YES}
    second = rig.model.seen[1]
    assert (second["state"], list(second["questions"])) == ("user", ["q1"])
    assert second["states"] == {"s1": {"state": "system", "questions": {"q0": {"type": "noul", "instructions": "A?"}}}}
    assert found.calls[0].questions == 2


async def test_a_part_that_is_known_whole_does_not_travel() -> None:
    rig = Rig()
    plan = stage(rule("a", noul("A?")), rule("s", noul("B?"), state=StateKind.SYSTEM))
    await rig.ask(ONE, "user")
    assert (await rig.ask(plan, user="user", system="system")).answers == {"a": YES, "s": YES}
    assert (rig.model.seen[1]["state"], "states" in rig.model.seen[1]) == ("system", False)


async def test_the_labels_of_a_composed_set_are_kept_one_by_one() -> None:
    only = [deployment(capabilities=capabilities(NO_SET))]
    rig = Rig()
    await rig.ask(stage(rule("s", label_set("x", "y")), on=only))
    await rig.ask(stage(rule("s", label_set("x", "y", "z")), on=only))
    assert [len(call["questions"]) for call in rig.model.seen] == [2, 1]


async def test_zero_kept_answers_asks_every_time() -> None:
    rig = Rig(cache=AnswerCache(0))
    await rig.ask()
    await rig.ask()
    assert len(rig.model.seen) == 2


async def test_a_model_that_took_the_others_place_starts_from_nothing() -> None:
    rig = Rig()
    await rig.ask(ONE, "one")
    rig.model.identity = "m 2"
    await rig.ask(ONE, "two")
    await rig.ask(ONE, "two")
    await rig.ask(ONE, "one")
    assert [call["state"] for call in rig.model.seen] == ["one", "two", "one"]


async def test_answers_of_a_process_that_was_started_again_meanwhile_are_not_kept() -> None:
    rig = Rig(is_open=False)
    asking = await rig.start(stage(rule("a", noul("A?"), timeout_ms=5000), on=[managed()]))
    rig.line.restarted()
    rig.model.open.set()
    assert (await asking).answers == {"a": YES}
    assert len(rig.line.cache) == 0


# -- calls in flight are shared ---------------------------------------------------------------------------------------


async def test_what_is_being_asked_is_not_asked_again() -> None:
    rig = Rig(is_open=False)
    askings = [await rig.start() for _ in range(3)]
    rig.model.open.set()
    found = [await asking for asking in askings]
    assert [one.answers for one in found] == [{"a": YES}] * 3
    assert ([one.sent for one in found], len(rig.model.seen)) == ([1, 0, 0], 1)
    assert rig.observed.lookups == [(0, 0, 1), (0, 1, 0), (0, 1, 0)]


async def test_sharing_is_for_questions_and_not_for_calls() -> None:
    rig = Rig(is_open=False)
    first = await rig.start(stage(rule("a", noul("A?"), timeout_ms=5000), rule("b", noul("B?"), timeout_ms=5000)))
    second = await rig.start(stage(rule("b", noul("B?"), timeout_ms=5000), rule("c", noul("C?"), timeout_ms=5000)))
    rig.model.open.set()
    assert (await first).answers == {"a": YES, "b": YES}
    assert (await second).answers == {"b": YES, "c": YES}
    assert rig.model.asked() == [["A?", "B?"], ["C?"]]


async def test_the_one_who_asked_may_leave() -> None:
    rig = Rig(is_open=False)
    first, second = await rig.start(), await rig.start()
    first.cancel()
    with suppress(asyncio.CancelledError):
        await first
    assert first.cancelled()
    rig.model.open.set()
    assert (await second).answers == {"a": YES}
    assert (len(rig.model.seen), rig.model.given_up) == (1, 0)


async def test_a_failure_is_shared_and_not_kept() -> None:
    rig = Rig(is_open=False)
    rig.model.error = Overloaded("x", retry_after_s=7.0)
    first, second = await rig.start(), await rig.start()
    rig.model.open.set()
    assert (await first).answers == (await second).answers == {"a": Unknown(UnknownReason.OVERLOADED)}
    assert (await first).calls[0].retry_after_s == 7.0
    rig.model.error = None
    assert (await rig.ask()).answers == {"a": YES}


async def test_a_call_with_too_little_time_left_is_not_joined() -> None:
    rig = Rig(is_open=False)
    first, second = await rig.start(HASTY), await rig.start(ONE)
    rig.model.open.set()
    assert (await second).answers == {"a": YES}
    assert len(rig.model.seen) == 2
    assert rig.model.seen[1]["options"]["deadline_ms"] == pytest.approx(4990, abs=50)
    await first


# -- a deadline ends the wait -----------------------------------------------------------------------------------------


async def test_a_late_answer_is_kept_for_the_next_request() -> None:
    rig = Rig(is_open=False)
    late = await rig.ask(HASTY)
    assert late.answers == {"a": LATE}
    assert (late.sent, late.calls[0].outcome, rig.line.in_flight) == (1, CallOutcome.TIMEOUT, 1)
    assert rig.model.seen[0]["options"]["deadline_ms"] <= SHORT_MS
    rig.model.open.set()
    await settle(lambda: rig.line.in_flight == 0)
    assert (await rig.ask(HASTY)).answers == {"a": YES}
    assert len(rig.model.seen) == 1
    assert [report.outcome for report in rig.observed.reports] == [CallOutcome.TIMEOUT]


async def test_a_cancelled_request_leaves_its_call_running() -> None:
    rig = Rig(is_open=False)
    asking = await rig.start()
    asking.cancel()
    await asyncio.wait([asking])
    rig.model.open.set()
    await settle(lambda: rig.line.in_flight == 0)
    assert (await rig.ask()).answers == {"a": YES}
    assert len(rig.model.seen) == 1


async def test_each_rule_waits_for_itself_and_the_call_for_the_longest() -> None:
    rig = Rig(is_open=False)
    plan = stage(rule("hasty", noul("A?"), timeout_ms=SHORT_MS), rule("patient", noul("B?"), timeout_ms=5000))
    asking = await rig.start(plan)
    await asyncio.sleep(2 * SHORT_MS / 1000)
    rig.model.open.set()
    assert (await asking).answers == {"hasty": LATE, "patient": YES}
    assert (await rig.ask(plan)).answers == {"hasty": YES, "patient": YES}


async def test_the_number_of_calls_that_nobody_waits_for_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(line_module, "MOST_ABANDONED", 2)
    rig = Rig(is_open=False)
    for text in ("one", "two", "three"):
        asking = await rig.start(ONE, text)
        asking.cancel()
        await asyncio.wait([asking])
    await settle()
    assert (rig.line.in_flight, rig.model.given_up) == (2, 1)
    await rig.line.aclose()


async def test_a_call_that_somebody_waits_for_again_is_not_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(line_module, "MOST_ABANDONED", 0)
    rig = Rig(is_open=False)
    first, second = await rig.start(), await rig.start()
    first.cancel()
    await settle()
    rig.model.open.set()
    assert (await second).answers == {"a": YES}


async def test_closing_gives_up_every_call() -> None:
    rig = Rig(is_open=False)
    asking = await rig.start()
    await rig.line.aclose()
    assert (await asking).answers == {"a": LATE}
    assert (rig.line.in_flight, rig.model.given_up) == (0, 1)


async def test_a_fault_of_ours_leaves_nobody_waiting() -> None:
    rig = Rig()
    rig.model.broken = True
    found = await rig.ask()
    assert found.answers == {"a": Unknown(UnknownReason.INVALID_ANSWER)}
    assert found.calls[0].outcome is CallOutcome.FAILED


# -- calls that are not made ------------------------------------------------------------------------------------------


async def test_one_call_too_many_is_refused_at_once() -> None:
    rig = Rig(is_open=False, limit=1)
    first = await rig.start(ONE, "one")
    found = await rig.ask(ONE, "two")
    assert found.answers == {"a": Unknown(UnknownReason.OVERLOADED)}
    assert (found.sent, found.calls[0].outcome) == (0, CallOutcome.OVERLOADED)
    rig.model.open.set()
    assert (await first).answers == {"a": YES}


async def test_a_call_that_nobody_waits_for_makes_room() -> None:
    rig = Rig(is_open=False, limit=1)
    await rig.ask(HASTY, "one")
    second = await rig.start(ONE, "two")
    rig.model.open.set()
    assert (await second).answers == {"a": YES}
    assert rig.model.given_up == 1


async def _fail(rig: Rig, times: int) -> None:
    for number in range(times):
        await rig.ask(ONE, f"text {number}")


async def test_a_model_that_nobody_reaches_is_left_alone() -> None:
    rig = Rig()
    await rig.ask(ONE, "kept")
    rig.model.error = ConnectionFailed("x")
    await _fail(rig, FAILURES)
    assert rig.line.breaker_state is BreakerState.OPEN
    found = await rig.ask(stage(rule("a", noul("A?")), rule("b", noul("B?"))), "kept")
    assert found.answers == {"a": YES, "b": GONE}  # what is known is known
    assert (found.sent, found.calls[0].outcome, len(rig.model.seen)) == (0, CallOutcome.UNAVAILABLE, FAILURES + 1)


@pytest.mark.parametrize("error", [Overloaded("x"), Rejected("x")])
async def test_a_refusal_proves_that_somebody_is_there(error: CallError) -> None:
    rig = Rig()
    rig.model.error = error
    await _fail(rig, FAILURES + 1)
    assert rig.line.breaker_state is BreakerState.CLOSED


@pytest.mark.parametrize(("strict", "state"), [(True, BreakerState.OPEN), (False, BreakerState.CLOSED)])
async def test_lateness_opens_the_breaker_of_a_model_that_is_not_ours(strict: bool, state: BreakerState) -> None:
    rig = Rig(is_open=False, strict=strict)
    waits = [rig.ask(HASTY, f"text {number}") for number in range(FAILURES)]
    assert [found.answers for found in await asyncio.gather(*waits)] == [{"a": LATE}] * FAILURES
    assert rig.line.breaker_state is state
    rig.model.open.set()
    await settle(lambda: rig.line.in_flight == 0)
    assert rig.line.breaker_state is BreakerState.CLOSED  # it did answer


async def test_no_answer_at_all_is_a_failure_of_any_model() -> None:
    rig = Rig(is_open=False)
    rig.model.error = CallTimeout("x")
    waits = [rig.ask(HASTY, f"text {number}") for number in range(FAILURES)]
    assert [found.answers for found in await asyncio.gather(*waits)] == [{"a": LATE}] * FAILURES
    rig.model.open.set()
    await settle(lambda: rig.line.in_flight == 0)
    assert rig.line.breaker_state is BreakerState.OPEN


class Clock:
    added = 0.0

    def __call__(self) -> float:
        return time.monotonic() + self.added


def state_of(rig: Rig) -> BreakerState:
    return rig.line.breaker_state


async def half_open() -> tuple[Rig, Clock]:
    clock = Clock()
    rig = Rig(clock=clock)
    rig.model.error = ConnectionFailed("x")
    await _fail(rig, FAILURES)
    clock.added += FIRST_PAUSE_S
    assert rig.line.breaker_state is BreakerState.HALF_OPEN
    rig.model.open.clear()
    return rig, clock


async def test_a_try_that_brings_no_answer_after_everybody_left_is_not_the_last() -> None:
    rig, clock = await half_open()
    rig.model.error = CallTimeout("x")
    assert (await rig.ask(HASTY, "trying")).sent == 1
    rig.model.open.set()
    await settle(lambda: rig.line.in_flight == 0)
    assert state_of(rig) is BreakerState.OPEN
    rig.model.error = None
    clock.added += LONGEST_PAUSE_S
    assert (await rig.ask(ONE, "later")).answers == {"a": YES}
    assert state_of(rig) is BreakerState.CLOSED


@pytest.mark.parametrize("began", [True, False])
async def test_a_try_that_is_given_up_is_not_the_last(began: bool) -> None:
    rig, _ = await half_open()
    (call,) = bind(ONE, texts(ONE, "trying")).calls
    trying = rig.line.start(call, [[b"key"]], 60, None)
    if began:
        await settle()
    await rig.line.aclose()
    assert trying.task.cancelled()
    rig.model.error = None
    rig.model.open.set()
    assert (await rig.ask(ONE, "later")).answers == {"a": YES}


async def test_a_fault_of_ours_in_a_try_is_not_the_last() -> None:
    rig, _ = await half_open()
    rig.model.open.set()
    rig.model.broken = True
    assert (await rig.ask(ONE, "trying")).sent == 1
    rig.model.broken, rig.model.error = False, None
    assert (await rig.ask(ONE, "later")).answers == {"a": YES}


async def test_a_model_that_was_started_again_is_asked_at_once() -> None:
    rig = Rig()
    rig.model.error = ConnectionFailed("x")
    await _fail(rig, FAILURES)
    assert state_of(rig) is BreakerState.OPEN
    rig.line.restarted()
    assert state_of(rig) is BreakerState.CLOSED
    rig.model.error = None
    assert (await rig.ask(ONE, "later")).answers == {"a": YES}


async def test_what_was_asked_before_a_restart_does_not_count_after_it() -> None:
    rig = Rig(is_open=False)
    rig.model.error = ConnectionFailed("x")
    askings = [await rig.start(ONE, f"text {number}") for number in range(FAILURES)]
    rig.line.restarted()
    rig.model.open.set()
    assert [(await asking).answers for asking in askings] == [{"a": GONE}] * FAILURES
    assert rig.line.breaker_state is BreakerState.CLOSED


async def test_a_call_that_is_given_up_before_it_began_wakes_who_waits() -> None:
    model = Model()
    line = Line(model)
    (call,) = bind(ONE, texts(ONE, "x")).calls
    exchange = line.start(call, [[b"key"]], 60, None)
    waiting = asyncio.create_task(exchange.ended(60))
    await line.aclose()
    async with asyncio.timeout(5):
        await waiting
    assert model.seen == []
    assert exchange.answer(b"key", 0) == LATE


async def test_a_wait_for_a_call_ends_in_time() -> None:
    line = Line(Model())
    (call,) = bind(ONE, texts(ONE, "x")).calls
    exchange = line.start(call, [[b"key"]], 60, None)
    async with asyncio.timeout(5):
        await exchange.ended(0.001)
    assert exchange.ended_at is None
    await line.aclose()
