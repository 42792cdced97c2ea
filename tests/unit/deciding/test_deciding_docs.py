"""The worked examples of `docs/decisions.md`: every row is computed here and must stand there."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Literal

import pytest

from router.config.plan import Decision, Recipe
from router.config.projections import BandMapping, Output, Score, ScoreInput
from router.deciding.engine import decide, prepare
from router.deciding.kleene import FALSE, TRUE_UNSCORED, UNKNOWN, every, negated, some
from router.deciding.projections import Range, confidence_in_band
from router.questions import Answer, ChoiceAnswer, Predicate, QuestionType, ScoreAnswer, SetAnswer
from tests.support.recipes import all_of, decision, not_, nouls, on, question, readings, recipe

PAGE = (Path(__file__).parents[3] / "docs" / "decisions.md").read_text(encoding="utf-8")


def stands(*cells: str) -> bool:
    return "| " + " | ".join(cells) + " |" in PAGE


def test_truth_tables() -> None:
    truths = [TRUE_UNSCORED, FALSE, UNKNOWN]
    for a, b in itertools.product(truths, truths):
        row = (a, b, negated(a), every([a, b]), some([a, b]))
        assert stands(*(verdict.truth.value for verdict in row)), row


@pytest.mark.parametrize(
    ("text", "label", "predicate"),
    [
        ("`label: code`", "code", None),
        ("`label: math`", "math", None),
        ("`label: math`, `predicate: {gte: 0.25}`", "math", Predicate(gte=0.25)),
        ("`label: code`, `predicate: {gte: 0.7}`", "code", Predicate(gte=0.7)),
    ],
)
def test_conditions_on_a_choice(text: str, label: str, predicate: Predicate | None) -> None:
    made = recipe(
        (question("kind", QuestionType.CHOICE, "code", "math", "chat"),), decision("d", on("kind", label, predicate))
    )
    answer = ChoiceAnswer("code", {"code": 0.6, "math": 0.3, "chat": 0.1}, 0.6)
    root = decide(prepare(made), readings(made, {"kind": answer}), trace=True).traces[0].root
    number = f"{root.confidence:g}" + ("" if root.scored else " (unscored)")
    assert stands(text, root.truth.value, number if root.truth.value == "true" else "\u2013")


FAST = decision("fast", on("b"), priority=10)


@pytest.mark.parametrize(
    ("text", "fast", "priority", "matches"),
    [
        ("priority 20", FAST, 20, True),
        ("priority 5", FAST, 5, True),
        ("priority 5, `tier: 0`, while `fast` has `tier: 1`", decision("fast", on("b"), 10, tier=1), 5, True),
        ("an empty competition: `fast` does not match", FAST, 5, False),
        ("only a catch-all beside it", decision("fast", all_of(), 10), 5, True),
    ],
)
def test_fail_request(text: str, fast: Decision, priority: int, matches: bool) -> None:
    made = recipe(nouls("a", "b"), fast, decision("guarded", on("a"), priority, on_unknown="fail_request"))
    result = decide(prepare(made), readings(made, {"b": 0.9 if matches else 0.1}))
    assert stands(text, "fails" if result.failed else "goes to `fast`")


@pytest.mark.parametrize(
    ("difficulty", "need"), [(1.5, 0.8), (3.0, 0.8), (3.0, None), (2.0, None), (1.0, None), (None, 0.8)]
)
def test_effort(difficulty: float | None, need: float | None) -> None:
    questions = (
        question("difficulty", QuestionType.SCORE, "0", "1", "2", "3", predicate=Predicate(gte=2)),
        question("needs", QuestionType.SET, "deliberation", "tools"),
    )
    inputs = (
        ScoreInput("systemone", "difficulty", None, 0.3, "raw", 1.0, 0.0),
        ScoreInput("systemone", "needs", "deliberation", 0.4, "raw", 1.0, 0.0),
    )
    bands = BandMapping("bands", "effort", "threshold_bands", 12.0, (Output("effort_high", Predicate(gte=0.9)),))
    made = Recipe("r", "priority", questions, (Score("effort", inputs),), (bands,), ())
    answers: dict[str, float | Answer] = {}
    if difficulty is not None:
        answers["difficulty"] = ScoreAnswer(difficulty, (0.25,) * 4, 0.25)
    if need is not None:
        answers["needs"] = SetAnswer(frozenset(), {"deliberation": need, "tools": 0.0})
    projected = decide(prepare(made), readings(made, answers)).projected
    truth = projected.outputs["effort_high"].truth.value
    assert stands(_number(difficulty), _number(need), _range(projected.scores["effort"]), truth)


def _number(value: float | None) -> str:
    return "unknown" if value is None else f"{value:g}"


def _range(score: Range) -> str:
    return f"{score.low:g}" if score.known else f"{score.low:g} \u2026 {score.high:g}"


def test_confidence_of_an_output() -> None:
    output = Output("effort_high", Predicate(gte=0.9))
    assert confidence_in_band(output, 12.0, 0.9) == 0.5
    assert f"{confidence_in_band(output, 12.0, 1.0):.2f}" == "0.77"
    assert "0.5 on a bound, 0.77 a tenth inside it" in PAGE


@pytest.mark.parametrize("strategy", ["priority", "confidence"])
def test_ranking(strategy: Literal["priority", "confidence"]) -> None:
    decisions = [
        decision("code", on("a"), priority=20),
        decision("math", on("b"), priority=10),
        decision("default", all_of(), priority=100),
    ]
    made = recipe(nouls("a", "b", "c"), *decisions, strategy=strategy)
    answers: dict[str, float | Answer] = {"a": 0.6, "b": 0.9, "c": 0.1}
    chosen = decide(prepare(made), readings(made, answers)).selected
    assert chosen is decisions[0 if strategy == "priority" else 1]
    assert "| `code` | P = 0.6 | 20 | **selected** | |" in PAGE
    assert "| `math` | P = 0.9 | 10 | | **selected** |" in PAGE
    crowded = recipe(nouls("a", "b", "c"), *decisions, decision("third", not_(on("c"))), strategy=strategy)
    assert decide(prepare(crowded), readings(crowded, answers)).selected is decisions[0]
