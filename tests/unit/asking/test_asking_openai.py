"""OpenAI's dialect, as text and through a socket; both dialects are believed on the same terms."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import orjson
import pytest

from router.asking.asker import Asker, StageAnswers
from router.asking.client import SystemOneClient
from router.asking.line import Line
from router.asking.openai import render
from router.asking.parse import read_answers
from router.asking.plan import StagePlan
from router.config.deployments import Dialect
from router.config.plan import StateKind
from router.questions import (
    Answer,
    ChoiceAnswer,
    NoulAnswer,
    Option,
    Question,
    QuestionType,
    ScoreAnswer,
    SetAnswer,
    Unknown,
    UnknownReason,
)
from tests.support.fake_systemone import FakeSystemOne
from tests.unit.asking.asking_builders import (
    capabilities,
    choice,
    deployment,
    label_set,
    noul,
    only_call,
    rule,
    score,
    span,
    stage,
    texts,
)

BASE = capabilities({QuestionType.NOUL, QuestionType.CHOICE, QuestionType.SCORE})
REMOTE = deployment(dialect=Dialect.OPENAI, capabilities=BASE)
INVALID = Unknown(UnknownReason.INVALID_ANSWER)


def plan_of(*questions: Question) -> StagePlan:
    return stage(*(rule(f"r{i}", question) for i, question in enumerate(questions)), on=[REMOTE])


def body_of(*questions: Question) -> dict[str, Any]:
    body: dict[str, Any] = orjson.loads(only_call(plan_of(*questions), "some text").body(900))
    return body


def read(question: Question, answer: dict[str, Any]) -> Answer:
    call = only_call(plan_of(question))
    return read_answers(orjson.dumps({"model": "x", "answers": [{"name": "q0", **answer}]}), call)["r0"]


def test_questions_are_a_list_in_the_dialects_own_words() -> None:
    assert body_of(noul("A?"), choice("x", "y"), score("low", "high")) == {
        "model": "m-served",
        "input": "some text",
        "questions": [
            {"type": "predicate", "name": "q0", "instructions": "A?"},
            {"type": "choice", "name": "q1", "instructions": "Which one?", "choices": [{"value": "x"}, {"value": "y"}]},
            {
                "type": "score",
                "name": "q2",
                "instructions": "How hard?",
                "levels": [{"label": "low"}, {"label": "high"}],
            },
        ],
    }


def test_what_yes_and_no_mean_is_folded_into_the_instructions() -> None:
    sides = (Option("true", "it needs a tool"), Option("false", "it does not"))
    asked = render("q", Question(QuestionType.NOUL, "A?", sides))["instructions"]
    assert asked == "A?\nTrue means: it needs a tool\nFalse means: it does not"
    assert render("q", Question(QuestionType.NOUL, None, sides[:1]))["instructions"] == "True means: it needs a tool"


def test_a_description_of_a_choice_travels() -> None:
    asked = render("q", Question(QuestionType.CHOICE, None, (Option("x", "the first"), Option("y"))))
    assert asked["choices"] == [{"value": "x", "description": "the first"}, {"value": "y"}]
    assert asked["instructions"]  # the dialect insists on some


def test_a_set_is_asked_label_by_label() -> None:
    asked = body_of(label_set("x", "y"))["questions"]
    assert [(question["type"], '"x"' in question["instructions"]) for question in asked] == [
        ("predicate", True),
        ("predicate", False),
    ]


def test_a_span_cannot_be_asked() -> None:
    with pytest.raises(ValueError, match="no span questions"):
        render("q", span("x"))


GOOD_CHOICE = {
    "type": "choice",
    "choice": "x",
    "confidence": 0.8,
    "probabilities": [{"value": "x", "probability": 0.9}, {"value": "y", "probability": 0.1}],
}
GOOD_SCORE = {
    "type": "score",
    "score": 0.8,
    "confidence": 0.6,
    "probabilities": [
        {"value": 0, "label": "low", "probability": 0.2},
        {"value": 1, "label": "high", "probability": 0.8},
    ],
}


def test_good_answers_are_read() -> None:
    assert read(noul(), {"type": "predicate", "probability": 0.25}) == NoulAnswer(0.25)
    assert read(choice("x", "y"), GOOD_CHOICE) == ChoiceAnswer("x", {"x": 0.9, "y": 0.1}, 0.8)
    assert read(score("low", "high"), GOOD_SCORE) == ScoreAnswer(0.8, (0.2, 0.8), 0.6)


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        (noul(), {"type": "refusal"}),
        (noul(), {"type": "predicate", "probability": 1.5}),
        (noul(), {"type": "predicate", "probability": True}),
        (noul(), {"type": "predicate", "probability": None}),
        (noul(), {"type": "noul", "noul": 0.5}),
        (noul(), {"type": "predicate", "probability": 0.5, "name": "q1"}),
        (noul(), GOOD_CHOICE),
        (choice("x", "y"), {**GOOD_CHOICE, "choice": "z"}),
        (choice("x", "y"), {**GOOD_CHOICE, "choice": True}),
        (choice("x", "y"), {**GOOD_CHOICE, "choice": "y"}),
        (choice("x", "y"), {**GOOD_CHOICE, "confidence": None}),
        (choice("x", "y"), {**GOOD_CHOICE, "probabilities": GOOD_CHOICE["probabilities"][:1]}),  # type: ignore[index]
        (choice("x", "y"), {**GOOD_CHOICE, "probabilities": {"x": 0.9, "y": 0.1}}),
        (choice("x", "y"), {**GOOD_CHOICE, "probabilities": [*GOOD_CHOICE["probabilities"], {}]}),  # type: ignore[misc]
        (choice("x", "true"), {**GOOD_CHOICE, "probabilities": [{"value": "x", "probability": 0.9},
                                                               {"value": True, "probability": 0.1}]}),
        (choice("x", "y"), {**GOOD_CHOICE, "probabilities": [{"value": "x", "probability": 0.9}] * 2}),
        (score("low", "high"), {**GOOD_SCORE, "score": 0.2}),
        (score("low", "high", "top"), GOOD_SCORE),
    ],
)  # fmt: skip
def test_an_answer_that_does_not_fit_is_unknown(question: Question, answer: dict[str, Any]) -> None:
    assert read(question, answer) == INVALID


@pytest.mark.parametrize("answers", [None, {}, [], [{}, {}], ["x"], [None], {"q0": {"type": "predicate"}}])
def test_another_shape_is_unknown(answers: object) -> None:
    call = only_call(plan_of(noul()))
    assert read_answers(orjson.dumps({"answers": answers}), call) == {"r0": INVALID}


def test_answers_without_names_are_in_the_order_of_the_questions() -> None:
    call = only_call(plan_of(noul("A?"), noul("B?")))
    answers = [{"type": "predicate", "probability": p} for p in (0.1, 0.2)]
    assert read_answers(orjson.dumps({"answers": answers}), call) == {"r0": NoulAnswer(0.1), "r1": NoulAnswer(0.2)}


# -- through a socket -------------------------------------------------------------------------------------------------


@pytest.fixture
async def fake() -> AsyncIterator[FakeSystemOne]:
    async with asyncio.timeout(20), FakeSystemOne(tcp=True) as fake:
        yield fake


async def _ask(fake: FakeSystemOne, plan: StagePlan, **by_state: str) -> StageAnswers:
    client = SystemOneClient(fake.endpoint + "/v1/decisions", key="k-123")
    try:
        deadline = asyncio.get_running_loop().time() + 10
        return await Asker({"m": Line(client)}).ask(plan, texts(plan, **by_state), stage_deadline=deadline)
    finally:
        await client.aclose()


async def test_every_type_through_a_socket(fake: FakeSystemOne) -> None:
    fake.answer("A?", 0.9)
    fake.answer("Which one?", "y")
    fake.answer("How hard?", [0.1, 0.9])
    fake.answer('Which apply? Is "p" one of them?', 0.7)
    plan = plan_of(noul("A?"), choice("x", "y"), score("low", "high"), label_set("p", "q"), noul("Other?"))
    fake.answer("Other?", {"error": "unavailable"})
    found = (await _ask(fake, plan)).answers
    assert found["r0"] == NoulAnswer(0.9)
    assert isinstance(found["r1"], ChoiceAnswer)
    assert found["r1"].choice == "y"
    assert isinstance(found["r2"], ScoreAnswer)
    assert found["r2"].score == pytest.approx(0.9)
    assert found["r3"] == SetAnswer(frozenset({"p", "q"}), {"p": 0.7, "q": 0.5}, composed=True)
    assert found["r4"] == INVALID
    (call,) = fake.calls
    assert (call.path, call.authorization) == ("/v1/decisions", "Bearer k-123")


async def test_each_state_is_a_call(fake: FakeSystemOne) -> None:
    plan = stage(
        rule("a", noul("A?"), timeout_ms=5000),
        rule("b", noul("A?"), state=StateKind.SYSTEM, timeout_ms=5000),
        on=[REMOTE],
    )
    fake.answer("A?", lambda text: 0.1 if text == "u" else 0.8)
    found = await _ask(fake, plan, user="u", system="s")
    assert found.answers == {"a": NoulAnswer(0.1), "b": NoulAnswer(0.8)}
    assert (found.sent, sorted(call.body["input"] for call in fake.calls)) == (2, ["s", "u"])
