"""What a caller who asks is told of its request."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from router.config.plan import Plan
from router.config.services import DEBUG_HEADER
from router.deciding.engine import Outcome, decide, prepare
from router.deciding.projections import Projected
from router.explaining.debugging import LONGEST_TRACE, Debugger, trace_of
from router.explaining.notes import Notes
from router.observe import Metrics
from router.pipeline import Pipeline
from router.questions import Answer, NoulAnswer, Unknown, UnknownReason
from router.signals.reading import Reading
from router.verdict import Forward
from router.wire.http import Head, Reply
from tests.support.plans import PLAIN, ScriptedAsker, generation_of, plan_of

YES, LATE = NoulAnswer(0.9), Unknown(UnknownReason.TIMEOUT)
OPEN = PLAIN.replace("port: 8801", "port: 8801, debug: {allow: true}")
WORDS = OPEN.replace(
    "    decisions:\n      - name: code\n        rules: {operator: AND, conditions: "
    "[{type: systemone, name: is_code}]}",
    "      keywords: [{name: hi, operator: OR, keywords: [hello]}]\n"
    "    decisions:\n      - name: code\n        rules: {operator: OR, conditions: [{type: systemone, name: is_code},"
    " {type: keyword, name: hi}]}",
    1,
)


async def answered(wish: str | None, answer: Answer = YES, text: str = OPEN, model: str = "auto") -> Reply | Forward:
    pipeline = Pipeline(generation_of(plan_of(text), ScriptedAsker({"is_code": answer})), Metrics())
    pipeline.show_to([Debugger()])
    headers = {} if wish is None else {DEBUG_HEADER: wish}
    body = orjson.dumps({"model": model, "messages": [{"role": "user", "content": "hello canary-1"}]})
    return await pipeline.decided(Head("POST", "/v1/chat/completions", headers), body)


def trace(verdict: Reply | Forward) -> dict[str, Any]:
    told = verdict.metadata["trace"] if isinstance(verdict, Forward) else verdict.headers["x-vsr-trace"]
    assert told.isascii()
    assert "canary" not in told
    return dict(orjson.loads(told))


async def test_the_trace_in_short() -> None:
    told = trace(await answered("true"))
    assert (told["recipe"], told["decision"], told["error"]) == ("ask", "code", None)
    assert told["decisions"] == {"code": "t"}
    assert told["signals"] == {"systemone:is_code": [True, 0.9]}


async def test_the_decision_of_a_recipe_that_reads_nothing() -> None:
    told = trace(await answered("true", model="fixed"))
    assert (told["recipe"], told["decision"], told["error"]) == ("fixed", "all", None)


async def test_an_unknown_in_a_refusal() -> None:
    told = trace(await answered("true", LATE, model="strict"))
    assert (told["error"], told["decisions"]) == ("decision_unresolved", {"code": "u"})
    assert told["signals"] == {"systemone:is_code": [None, "timeout"]}
    assert told["scan_coverage"] == {"systemone:is_code": "none"}


async def test_rules_that_matched_are_told_by_family() -> None:
    verdict = await answered("true", text=WORDS)
    assert isinstance(verdict, Forward)
    assert verdict.metadata["matched_keywords"] == "hi"


def test_guards_are_told_where_they_found_something() -> None:
    readings = {
        "jailbreak:found": Reading(None, True, 0.9, {"": 0.9}),
        "jailbreak:closed": Reading(None, True, reason=UnknownReason.TIMEOUT, by_policy=True),
        "safety:harm": Reading(None, True, 0.9, {"": 0.9}),
        "pii:mail": Reading(None, True, 0.9, {"": 0.9}),
    }
    outcome = Outcome(None, None, tuple(readings), (), (), Projected({}, {}))
    head = Head("POST", "/v1/messages", {DEBUG_HEADER: "true"})
    told = Debugger().seen(plan_of(OPEN), head, b"", Notes(readings=readings, outcome=outcome))
    assert {name: names for name, names in told.items() if name != "trace"} == {
        "matched_jailbreak": "found",
        "matched_safety": "harm",
        "matched_pii": "mail",
    }


@pytest.mark.parametrize(("wish", "text"), [(None, OPEN), ("1", OPEN), ("false", OPEN), ("true", PLAIN)])
async def test_nobody_is_told_who_did_not_ask_or_may_not(wish: str | None, text: str) -> None:
    verdict = await answered(wish, text=text)
    assert isinstance(verdict, Forward)
    assert "trace" not in verdict.metadata


@pytest.mark.parametrize("count", [1, 50, 5_000])
def test_a_trace_is_never_too_long(count: int) -> None:
    plan: Plan = plan_of()
    readings = {f"rule-{number:04}": Reading(None, True, None, {"": 1.0}) for number in range(count)}
    compiled = prepare(plan.recipes["ask"])
    notes = Notes(recipe="ask", readings=readings, compiled=compiled, outcome=decide(compiled, readings))
    told = trace_of(plan, notes)
    assert len(told) <= LONGEST_TRACE
    assert ("truncated" in orjson.loads(told)) == (count == 5_000)
