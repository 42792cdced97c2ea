import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import orjson
import pytest

from router.asking.answer_cache import AnswerCache
from router.asking.asker import Asker, StageAnswers
from router.asking.client import SystemOneClient
from router.asking.errors import BadResponse, CallError, CallOutcome, CallTimeout, Overloaded, Rejected, Unavailable
from router.asking.line import LINGER_S, Line, deadline_ms
from router.asking.report import CallReport
from router.config.plan import StateKind
from router.questions import NoulAnswer, Unknown, UnknownReason
from tests.support.fake_systemone import FakeSystemOne
from tests.unit.asking.asking_builders import deployment, noul, rule, stage, texts

LATE = Unknown(UnknownReason.TIMEOUT)
YES = {"type": "noul", "noul": 0.9}


@dataclass
class Clock:
    now: float = 100.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Model:
    """Answers every noul with 0.9 after `takes` seconds of the fake clock, or raises."""

    clock: Clock
    takes: float = 0.0
    error: CallError | None = None
    body: bytes | None = None
    seen: list[tuple[dict[str, Any], float]] = field(default_factory=list)

    async def decide(self, body: bytes, timeout_s: float, told: object = None) -> bytes:
        self.seen.append((orjson.loads(body), timeout_s))
        self.clock.now += min(self.takes, timeout_s)
        if self.takes > timeout_s:
            raise CallTimeout("late")
        if self.error is not None:
            raise self.error
        return self.body or orjson.dumps({"answers": {f"q{i}": YES for i in range(9)}})


@dataclass
class Observed:
    reports: list[CallReport] = field(default_factory=list)
    lookups: list[tuple[str, int, int, int]] = field(default_factory=list)

    def call_ended(self, report: CallReport) -> None:
        self.reports.append(report)

    def looked_up(self, deployment: str, hits: int, shared: int, misses: int) -> None:
        self.lookups.append((deployment, hits, shared, misses))


def line(model: Model, **options: Any) -> Line:
    return Line(model, cache=AnswerCache(clock=model.clock), clock=model.clock, **options)


PLAN = stage(rule("hasty", noul("A?"), timeout_ms=500), rule("patient", noul("B?"), timeout_ms=2000))


async def ask(model: Model, *, left: float = 45.0, **options: Any) -> StageAnswers:
    asker = Asker({"m": line(model)}, clock=model.clock, **options)
    return await asker.ask(PLAN, texts(PLAN), stage_deadline=model.clock.now + left)


async def test_answers_come_by_rule_with_a_report_of_the_call() -> None:
    observed = Observed()
    found = await ask(Model(Clock(), takes=0.2), observer=observed)
    assert found.answers == {"hasty": NoulAnswer(0.9), "patient": NoulAnswer(0.9)}
    assert found.sent == 1
    (report,) = observed.reports
    assert found.calls == (report,)
    assert (report.deployment, report.outcome, report.states, report.questions, report.sent) == ("m", "ok", 1, 2, True)
    assert report.seconds == pytest.approx(0.2)


async def test_each_rule_waits_no_longer_than_its_own_time() -> None:
    found = await ask(Model(Clock(), takes=1.0))
    assert found.answers == {"hasty": LATE, "patient": NoulAnswer(0.9)}
    assert found.calls[0].outcome is CallOutcome.OK


async def test_the_call_waits_for_the_most_patient_and_says_so_to_the_model() -> None:
    model = Model(Clock(), takes=3.0)
    found = await ask(model)
    assert found.answers == {"hasty": LATE, "patient": LATE}
    body, timeout_s = model.seen[0]
    assert timeout_s == 2.0 + LINGER_S  # the wait ends, the call may still be of use to the next request
    assert body["options"]["deadline_ms"] == 1990


async def test_the_stage_deadline_bounds_everything() -> None:
    model = Model(Clock(), takes=3.0)
    assert (await ask(model, left=0.3)).answers == {"hasty": LATE, "patient": LATE}
    assert model.seen[0][0]["options"]["deadline_ms"] in (289, 290)


async def test_no_call_leaves_when_no_time_is_left() -> None:
    model = Model(Clock())
    found = await ask(model, left=0.0)
    assert found.answers == {"hasty": LATE, "patient": LATE}
    assert (model.seen, found.sent, found.calls[0].outcome) == ([], 0, CallOutcome.TIMEOUT)


async def test_a_model_that_is_not_ready_is_unavailable_at_once() -> None:
    model = Model(Clock())
    found = await ask(model, is_ready=lambda name: name != "m")
    assert set(found.answers.values()) == {Unknown(UnknownReason.UNAVAILABLE)}
    assert (model.seen, found.sent, found.calls[0].outcome) == ([], 0, CallOutcome.UNAVAILABLE)


@pytest.mark.parametrize(
    ("error", "outcome", "reason"),
    [
        (Overloaded("x"), CallOutcome.OVERLOADED, UnknownReason.OVERLOADED),
        (Unavailable("x"), CallOutcome.UNAVAILABLE, UnknownReason.UNAVAILABLE),
        (Rejected("x"), CallOutcome.REJECTED, UnknownReason.INVALID_ANSWER),
        (Rejected("x", UnknownReason.INPUT_LIMIT), CallOutcome.REJECTED, UnknownReason.INPUT_LIMIT),
        (BadResponse("x"), CallOutcome.FAILED, UnknownReason.INVALID_ANSWER),
    ],
)
async def test_a_failed_call_leaves_its_rules_unknown(
    error: CallError, outcome: CallOutcome, reason: UnknownReason
) -> None:
    found = await ask(Model(Clock(), error=error))
    assert set(found.answers.values()) == {Unknown(reason)}
    assert found.calls[0].outcome is outcome


async def test_an_unreadable_response_is_a_failed_call() -> None:
    found = await ask(Model(Clock(), body=b"<html>"))
    assert set(found.answers.values()) == {Unknown(UnknownReason.INVALID_ANSWER)}
    assert found.calls[0].outcome is CallOutcome.FAILED


async def test_an_overload_after_a_rule_had_left_is_late_for_that_rule() -> None:
    found = await ask(Model(Clock(), takes=1.0, error=Overloaded("x")))
    assert found.answers == {"hasty": LATE, "patient": Unknown(UnknownReason.OVERLOADED)}


async def test_nothing_to_read_makes_no_call() -> None:
    model = Model(Clock())
    found = await Asker({"m": line(model)}, clock=model.clock).ask(PLAN, texts(PLAN, " "), stage_deadline=999)
    assert set(found.answers.values()) == {Unknown(UnknownReason.NO_TEXT)}
    assert (found.calls, found.sent, model.seen) == ((), 0, [])


@pytest.mark.parametrize(("timeout_s", "told"), [(2.0, 1990), (0.05, 45), (0.001, 1), (60.0, 59_990)])
def test_the_model_is_told_to_end_a_little_earlier(timeout_s: float, told: int) -> None:
    assert deadline_ms(timeout_s) == told


# -- through real sockets ---------------------------------------------------------------------------------------------

TWO = stage(
    rule("one", noul("A?"), "m", timeout_ms=5000),
    rule("also", noul("B?"), "m", StateKind.SYSTEM, timeout_ms=5000),
    rule("two", noul("A?"), "n", timeout_ms=5000),
    on=[deployment("m"), deployment("n")],
)


async def _with_two(test: Callable[[FakeSystemOne, FakeSystemOne, Asker], Awaitable[None]]) -> None:
    async with FakeSystemOne() as m, FakeSystemOne() as n:
        clients = {"m": SystemOneClient(m.endpoint), "n": SystemOneClient(n.endpoint)}
        async with asyncio.timeout(20):
            await test(m, n, Asker({name: Line(client) for name, client in clients.items()}))
        for client in clients.values():
            await client.aclose()


def _deadline() -> float:
    return asyncio.get_running_loop().time() + 10


async def test_deployments_are_asked_together_and_fail_apart() -> None:
    async def test(m: FakeSystemOne, n: FakeSystemOne, asker: Asker) -> None:
        m.answer("A?", lambda text: 0.1 if text == "u" else 0.8)
        m.answer("B?", 0.3)
        m.hold()
        n.overload(times=1)
        asking = asyncio.ensure_future(asker.ask(TWO, texts(TWO, user="u", system="s"), stage_deadline=_deadline()))
        await m.wait_for_calls(1)
        await n.wait_for_calls(1)  # the second did not wait for the first
        m.release()
        found = await asking
        assert found.answers == {
            "one": NoulAnswer(0.1),
            "also": NoulAnswer(0.3),
            "two": Unknown(UnknownReason.OVERLOADED),
        }
        assert {report.deployment: str(report.outcome) for report in found.calls} == {"m": "ok", "n": "overloaded"}

    await _with_two(test)


async def test_a_cancelled_request_stops_at_once_and_breaks_no_other() -> None:
    async def test(m: FakeSystemOne, n: FakeSystemOne, asker: Asker) -> None:
        m.hold()
        given = texts(TWO)
        first, second = (asyncio.ensure_future(asker.ask(TWO, given, stage_deadline=_deadline())) for _ in range(2))
        await m.wait_for_calls(1)
        await asyncio.sleep(0)  # the second has joined the first one's call by now
        first.cancel()
        with suppress(asyncio.CancelledError):
            await first
        assert first.cancelled()
        m.release()
        assert (await second).answers["one"] == NoulAnswer(0.5)
        assert len(m.calls) == 1

    await _with_two(test)
