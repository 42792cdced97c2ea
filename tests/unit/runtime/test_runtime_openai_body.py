from __future__ import annotations

from typing import Any

import pytest

from router.questions import ChoiceAnswer, NoulAnswer, Option, QuestionType, ScoreAnswer
from router.runtime.asking import Answered, Failure, FailureCode
from router.runtime.body import BadBody, Unsupported
from router.runtime.model import Outcome
from router.runtime.openai_body import is_openai_form, read_decisions

PREDICATE = {"type": "predicate", "instructions": "Is it?"}
CHOICE = {"type": "choice", "instructions": "Which?", "choices": [{"value": "a", "description": "A"}, {"value": True}]}
SCORE = {"type": "score", "instructions": "How?", "levels": [{"label": "low"}, {"label": "high", "description": "H"}]}
ASKED: dict[str, Any] = {"model": "m", "input": "x", "questions": [PREDICATE]}


def places(data: Any) -> list[tuple[str | int, ...]]:
    with pytest.raises(BadBody) as caught:
        read_decisions(data, 1024)
    assert "SECRET" not in repr(caught.value.problems)
    return [problem.loc for problem in caught.value.problems]


def state(given: Any) -> Any:
    body = read_decisions(ASKED | {"input": given}, 1024).body
    assert body.main is not None
    return body.main.state


@pytest.mark.parametrize(
    ("data", "openai"),
    [
        ({"input": "x", "questions": []}, True),
        ({"questions": [PREDICATE]}, True),
        ({"input": "x"}, True),
        ({"state": "x", "questions": {}}, False),
        ({"state": "x", "input": "y", "questions": []}, False),
        ({"states": {}}, False),
        ([], False),
    ],
)
def test_the_dialect_is_told_by_the_body(data: Any, openai: bool) -> None:
    assert is_openai_form(data) is openai


def test_questions_become_typed_ones() -> None:
    body = read_decisions(ASKED | {"questions": [PREDICATE, CHOICE, SCORE]}, 1024).body
    assert body.main is not None
    questions = [posed.asked.question for posed in body.main.questions.values()]
    assert [question.type for question in questions] == [QuestionType.NOUL, QuestionType.CHOICE, QuestionType.SCORE]
    assert questions[1].options == (Option("a", "A"), Option("true"))
    assert questions[2].options == (Option("0", "low"), Option("1", "high: H"))


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ("plain", "plain"),
        ([{"role": "user", "content": "a"}, {"type": "message", "role": "assistant", "content": "b"}], "a\n\nb"),
        (
            [
                {
                    "role": "user",
                    "content": [{"type": "input_text", "text": "é"}, {"type": "input_json", "data": {"k": [1]}}],
                }
            ],
            'é\n\n{"k":[1]}',
        ),
        (
            [
                {"type": "function_call", "name": "look", "call_id": "1", "arguments": '{"id":1}'},
                {"type": "function_call_output", "call_id": "1", "output": "found"},
                {"type": "custom_tool_call", "name": "run", "call_id": "2", "input": "ls"},
                {"type": "custom_tool_call_output", "call_id": "2", "output": [{"type": "input_text", "text": "f"}]},
            ],
            'look({"id":1})\n\nfound\n\nrun(ls)\n\nf',
        ),
        (
            [
                {
                    "role": "assistant",
                    "content": [{"type": "output_text", "text": "t"}, {"type": "refusal", "refusal": "no"}],
                }
            ],
            "t\n\nno",
        ),
    ],
)
def test_an_input_is_read_as_one_text(given: Any, text: str) -> None:
    assert state(given) == text


def test_instructions_may_be_parts() -> None:
    parts = [{"type": "input_text", "text": "Is"}, {"type": "input_json", "data": {"a": 1}}]
    body = read_decisions(ASKED | {"questions": [PREDICATE | {"instructions": parts}]}, 1024).body
    assert body.main is not None
    assert body.main.questions["0"].asked.question.instructions == 'Is\n\n{"a":1}'


def test_an_image_is_named_as_what_is_lacking() -> None:
    pictured = [{"role": "user", "content": [{"type": "input_image", "image_url": "https://example.org/a.png"}]}]
    with pytest.raises(Unsupported) as caught:
        read_decisions(ASKED | {"input": pictured}, 1024)
    assert caught.value.needs == ("image",)


@pytest.mark.parametrize(
    ("change", "loc"),
    [
        ({"input": None}, ("body", "input")),
        ({"input": []}, ("body", "input")),
        ({"input": ["SECRET"]}, ("body", "input", 0)),
        ({"input": [{"role": "robot", "content": "SECRET"}]}, ("body", "input", 0, "role")),
        ({"input": [{"role": "user"}]}, ("body", "input", 0, "content")),
        ({"input": [{"role": "user", "content": [{"type": "input_file"}]}]}, ("body", "input", 0, "content", 0)),
        ({"input": [{"type": "function_call", "name": "f"}]}, ("body", "input", 0)),
        ({"input": [{"type": ["x"]}]}, ("body", "input", 0)),
        ({"questions": []}, ("body", "questions")),
        ({"questions": [PREDICATE] * 401}, ("body", "questions")),
        ({"questions": [3]}, ("body", "questions", 0, "type")),
        ({"questions": [{"type": "noul", "instructions": "x"}]}, ("body", "questions", 0, "type")),
        ({"questions": [PREDICATE | {"name": 3}]}, ("body", "questions", 0, "name")),
        ({"questions": [PREDICATE | {"criteria": {}}]}, ("body", "questions", 0, "criteria")),
        ({"questions": [{"type": "predicate"}]}, ("body", "questions", 0, "instructions")),
        ({"questions": [PREDICATE | {"instructions": " "}]}, ("body", "questions", 0, "instructions")),
        ({"questions": [CHOICE | {"choices": [{"value": "a"}]}]}, ("body", "questions", 0, "choices")),
        ({"questions": [CHOICE | {"choices": [{"value": 1}, {"value": "b"}]}]}, None),
        ({"questions": [CHOICE | {"choices": [{"value": "true"}, {"value": True}]}]}, None),
        ({"questions": [CHOICE | {"choices": [{"value": "a", "x": 1}, {"value": "b"}]}]}, None),
        ({"questions": [SCORE | {"levels": [{"label": "low"}]}]}, ("body", "questions", 0, "levels")),
        ({"questions": [SCORE | {"levels": [{"label": " "}, {"label": "b"}]}]}, None),
        ({"model": 3}, ("body", "model")),
        ({"options": {"deadline_ms": 0}}, ("body", "options", "deadline_ms")),
    ],
)
def test_a_bad_body_is_refused_with_the_place(change: dict[str, Any], loc: tuple[str | int, ...] | None) -> None:
    found = places(ASKED | change)
    assert loc in found if loc else found[0][:3] == ("body", "questions", 0)


def test_answers_are_in_the_order_of_the_questions_and_typed_as_they_were_asked() -> None:
    questions = [PREDICATE | {"name": "p"}, CHOICE, SCORE | {"name": "p"}, PREDICATE]
    inquiry = read_decisions(ASKED | {"questions": questions}, 1024)
    results: dict[str, Answered | Failure] = {
        "0": Answered(NoulAnswer(0.25), True),
        "1": Answered(ChoiceAnswer("true", {"a": 0.25, "true": 0.75}, 0.5), True),
        "2": Answered(ScoreAnswer(0.75, (0.25, 0.75), 0.5), True),
        "3": Failure(FailureCode.MAX_LENGTH_EXCEEDED, "too long"),
    }
    content = inquiry.content("m", [Outcome(results, 7)])
    assert content["answers"] == [
        {"name": "p", "type": "predicate", "probability": 0.25},
        {
            "name": None,
            "type": "choice",
            "choice": True,
            "confidence": 0.5,
            "probabilities": [{"value": "a", "probability": 0.25}, {"value": True, "probability": 0.75}],
        },
        {
            "name": "p",
            "type": "score",
            "score": 0.75,
            "confidence": 0.5,
            "probabilities": [
                {"value": 0, "label": "low", "probability": 0.25},
                {"value": 1, "label": "high", "probability": 0.75},
            ],
        },
        {"name": None, "type": "refusal"},
    ]
    assert content["usage"]["total_tokens"] == 7
