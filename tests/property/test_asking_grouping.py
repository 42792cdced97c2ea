"""Whatever rules a recipe has and whatever the texts are: each rule is asked or unread, and nothing is asked twice."""

from __future__ import annotations

from collections import Counter
from typing import Any

import orjson
from hypothesis import given, settings
from hypothesis import strategies as st

from router.asking.parse import read_answers
from router.asking.plan import Call, bind, prepare
from router.config.plan import QuestionRule, StateKind
from router.questions import NoulAnswer, SetAnswer, Unknown, UnknownReason
from tests.unit.asking.asking_builders import NO_SET, capabilities, deployment, label_set, noul, rule

DEPLOYMENTS = {name: deployment(name, capabilities=capabilities(NO_SET)) for name in ("m", "n")}
QUESTIONS = st.sampled_from([noul("A?"), noul("B?"), noul("C?"), label_set("x", "y"), label_set("y", "z")])


@st.composite
def recipes(draw: st.DrawFn) -> list[QuestionRule]:
    return [
        rule(
            f"r{i}",
            draw(QUESTIONS),
            draw(st.sampled_from(["m", "n"])),
            draw(st.sampled_from(list(StateKind))),
            draw(st.integers(1, 60_000)),
        )
        for i in range(draw(st.integers(0, 10)))
    ]


@settings(max_examples=120, deadline=None)
@given(rules=recipes(), data=st.data())
def test_each_rule_is_asked_or_unread_and_nothing_is_asked_twice(
    rules: list[QuestionRule], data: st.DataObject
) -> None:
    plan = prepare(rules, DEPLOYMENTS)
    texts = {key: data.draw(st.sampled_from(["", " ", "same", "other"]) | st.text()) for key in plan.states}
    bound = bind(plan, texts)

    readers = Counter(consumer.rule for call in bound.calls for consumer, _ in call.readers)
    assert set(readers) | set(bound.unread) == {each.name for each in rules}
    assert not set(readers) & set(bound.unread)
    assert all(count == 1 for count in readers.values())
    assert len({call.deployment for call in bound.calls}) == len(bound.calls)
    for each in rules:
        blank = not texts[each.deployment, each.state].strip()
        assert (bound.unread.get(each.name) == Unknown(UnknownReason.NO_TEXT)) is blank

    for call in bound.calls:
        body = orjson.loads(call.body(1))
        parts = [body, *body.get("states", {}).values()]
        asked = [(part["state"], str(question)) for part in parts for question in part["questions"].values()]
        assert len(asked) == len(set(asked)) == call.questions
        assert call.timeout_s == max(each.timeout_ms for each in rules if each.name in _names(call)) / 1000

        # Answered in full, every reader gets the kind of answer that its question has.
        reply = {"answers": _yes(body), "states": {name: {"answers": _yes(part)} for name, part in _states(body)}}
        for name, answer in read_answers(orjson.dumps(reply), call).items():
            question = next(each.question for each in rules if each.name == name)
            assert isinstance(answer, SetAnswer if question.options else NoulAnswer)


def _names(call: Call) -> set[str]:
    return {consumer.rule for consumer, _ in call.readers}


def _states(body: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    return list(body.get("states", {}).items())


def _yes(part: dict[str, Any]) -> dict[str, Any]:
    return {question_id: {"type": "noul", "noul": 0.9} for question_id in part["questions"]}
