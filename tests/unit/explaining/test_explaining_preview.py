"""A request explained from what the pipeline noted on its way, and the ways to pose one."""

from __future__ import annotations

import itertools
from typing import Any

import orjson
import pytest

from router.explaining.explanation import Explanation, explain
from router.explaining.notes import Notes
from router.explaining.posed import Posed, pose
from router.explaining.preview import as_json
from router.observe import Metrics
from router.pipeline import Pipeline
from router.questions import Answer, NoulAnswer, Unknown, UnknownReason
from router.wire.errors import WireError
from tests.support.plans import PLAIN, ScriptedAsker, generation_of, plan_of

YES, NO, LATE = NoulAnswer(0.9), NoulAnswer(0.1), Unknown(UnknownReason.TIMEOUT)
CANARY = "zwölf-marker-9f3"


WORDS = PLAIN.replace("    signals:\n", "    signals:\n      keywords: [{name: hi, keywords: [hi]}]\n", 1).replace(
    "conditions: [{type: systemone", "conditions: [{type: keyword, name: hi}, {type: systemone", 1
)


async def explained(answer: Answer = YES, model: str = "auto", text: str = PLAIN) -> Explanation:
    generation = generation_of(plan_of(text), ScriptedAsker({"is_code": answer}))
    notes, ticks = Notes(), itertools.count(1)
    posed = pose(orjson.dumps({"model": model, "text": CANARY}))
    await Pipeline(generation, Metrics(), clock=lambda: float(next(ticks))).decided(posed.head, posed.body, notes=notes)
    policy = generation.policies.get(notes.recipe) if notes.recipe else None
    return explain(generation.plan, policy.compiled if policy else None, notes)


async def shown(answer: Answer = YES, model: str = "auto", text: str = PLAIN) -> dict[str, Any]:
    body = as_json(await explained(answer, model, text), plan_of(text), trace=True)
    return dict(orjson.loads(orjson.dumps(body)))


async def test_a_rule_is_told_by_lengths_and_numbers() -> None:
    body = await shown()
    (signal,) = body["signals"]
    assert (signal["key"], signal["deployment"], signal["state"]) == ("systemone:is_code", "builtin", "user")
    assert (signal["bytes"], signal["bytes_read"], signal["coverage"]) == (17, 17, "full")
    assert (signal["answer"], signal["predicate"], signal["matched"]) == ({"probability": 0.9}, {"gte": 0.7}, True)
    assert body["signal_values"] == {"systemone:is_code": 0.9}
    assert body["signal_confidences"] == {"systemone:is_code": 0.9}
    assert body["signal_errors"] == {}
    assert CANARY not in orjson.dumps(body).decode()


async def test_the_decision_and_its_tree() -> None:
    body = await shown()
    assert (body["recipe"], body["routing_decision"], body["selected_model"]) == ("ask", "code", "coder")
    assert (body["selection_status"], body["selection_method"]) == ("selected", "static")
    assert body["selection_reason"] == "nothing else matched"
    (trace,) = body["eval_trace"]
    assert (trace["decision_name"], trace["state"], trace["matched"], trace["selected"]) == ("code", "true", True, True)
    (leaf,) = trace["root_trace"]["children"]
    assert (leaf["signal_name"], leaf["state"], leaf["value"]) == ("is_code", "true", 0.9)


async def test_unknown_is_not_false() -> None:
    body = await shown(LATE)
    assert body["signal_errors"] == {"systemone:is_code": "decision_timeout"}
    assert body["decision_result"]["unknown_signals"] == ["systemone:is_code"]
    assert body["scan_coverage"] == {"systemone:is_code": "none"}
    assert body["eval_trace"][0]["state"] == "unknown"
    assert (body["selection_status"], body["error"]) == ("failed", "no_route")


async def test_a_request_that_an_unknown_fails() -> None:
    body = await shown(LATE, "strict")
    assert (body["error"], body["eval_trace"][0]["fails_request"]) == ("decision_unresolved", True)


async def test_the_default_model_is_a_fallback() -> None:
    text = PLAIN.replace("providers:\n", "providers:\n  defaults: {model: general}\n")
    body = await shown(NO, text=text)
    assert (body["selection_status"], body["selected_model"]) == ("fallback", "general")


async def test_a_model_by_its_own_name_has_no_recipe() -> None:
    body = await shown(model="general")
    assert (body["recipe"], body["selected_model"], body["signals"], body["eval_trace"]) == (None, "general", [], [])


async def test_a_recipe_without_questions_is_explained_too() -> None:
    body = await shown(model="fixed")
    assert (body["routing_decision"], body["eval_trace"][0]["state"]) == ("all", "true")


async def test_rules_that_ask_no_model_take_time_too() -> None:
    with_words, without = await shown(text=WORDS), await shown()
    assert (with_words["metrics"]["computing_ms"], without["metrics"]["computing_ms"]) == (1000.0, 0.0)
    assert with_words["metrics"]["total_ms"] > with_words["metrics"]["signals_ms"] + 1000.0


async def test_equal_questions_have_one_id_whatever_the_rule_is_called() -> None:
    def ids(made: Explanation) -> list[str]:
        return [fact.question for fact in made.rules]

    renamed = PLAIN.replace("auto", "other").replace("gte: 0.7", "gte: 0.2")
    assert ids(await explained()) == ids(await explained(model="other", text=renamed))
    reworded = PLAIN.replace("Is this code?", "Is it code?")
    assert ids(await explained()) != ids(await explained(text=reworded))


@pytest.mark.parametrize(
    ("data", "path", "text"),
    [
        ({"model": "a", "text": "hi"}, "/v1/chat/completions", "hi"),
        ({"model": "a", "messages": []}, "/v1/chat/completions", None),
        ({"model": "a", "input": "hi"}, "/v1/responses", None),
        ({"model": "a", "system": "s", "messages": []}, "/v1/messages", None),
        ({"model": "a", "messages": [], "tools": [{"input_schema": {}}]}, "/v1/messages", None),
        ({"request": {"text": "hi"}, "format": "chat", "headers": {"X-A": "1"}}, "/v1/chat/completions", "hi"),
        ({"request": {"messages": []}, "format": "messages"}, "/v1/messages", None),
    ],
)
def test_the_forms_of_a_request(data: dict[str, Any], path: str, text: str | None) -> None:
    posed = pose(orjson.dumps(data))
    assert (posed.head.method, posed.head.path, posed.text) == ("POST", path, text)
    assert "text" not in orjson.loads(posed.body)
    assert set(posed.head.headers) <= {"x-a"}


@pytest.mark.parametrize(
    "data",
    [
        {"text": [CANARY]},
        {"request": CANARY},
        {"request": {"text": "a"}, "format": CANARY},
        {"request": {"text": "a"}, "headers": CANARY},
        {"request": {"text": "a"}, "headers": {"a": 1}},
        {"request": {"text": "a"}, "more": CANARY},
    ],
)
def test_a_request_that_cannot_be_read_is_not_quoted(data: dict[str, Any]) -> None:
    with pytest.raises(WireError) as caught:
        pose(orjson.dumps(data))
    assert CANARY not in str(caught.value)


def test_a_text_as_given() -> None:
    assert isinstance(pose(b'{"text": ""}'), Posed)
