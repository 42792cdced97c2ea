"""Short ways to write recipes in tests of the engine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from router.config.candidates import ModelRef
from router.config.plan import (
    Decision,
    Leaf,
    Node,
    OnError,
    OnUnknown,
    Operator,
    QuestionRule,
    Recipe,
    Rule,
    StateKind,
)
from router.questions import Answer, NoulAnswer, Option, Predicate, Question, QuestionType, Unknown, UnknownReason
from router.signals.reading import Reading, read_all

LATE = Unknown(UnknownReason.TIMEOUT)


def question(name: str, kind: QuestionType, *keys: str, predicate: Predicate | None = None) -> QuestionRule:
    asked = Question(kind, "?", tuple(Option(key) for key in keys))
    return QuestionRule(name, "d", asked, StateKind.USER, predicate, 1000)


def nouls(*names: str) -> tuple[QuestionRule, ...]:
    return tuple(question(name, QuestionType.NOUL) for name in names)


def on(
    name: str,
    label: str | None = None,
    predicate: Predicate | None = None,
    on_error: OnError | None = None,
) -> Leaf:
    return Leaf("systemone", name, label, predicate, on_error)


def band(name: str, on_error: OnError | None = None) -> Leaf:
    return Leaf("projection", name, on_error=on_error)


def all_of(*rules: Rule) -> Node:
    return Node(Operator.AND, rules)


def any_of(*rules: Rule) -> Node:
    return Node(Operator.OR, rules)


def not_(rule: Rule) -> Node:
    return Node(Operator.NOT, (rule,))


def decision(name: str, rule: Rule, priority: int = 0, tier: int = 0, on_unknown: OnUnknown = "no_match") -> Decision:
    return Decision(name, priority, tier, rule, on_unknown, (ModelRef(name),), 0)


def recipe(
    questions: tuple[QuestionRule, ...],
    *decisions: Decision,
    strategy: Literal["priority", "confidence"] = "priority",
) -> Recipe:
    return Recipe("r", strategy, questions, (), (), decisions)


def readings(made: Recipe, answers: Mapping[str, float | Answer]) -> dict[str, Reading]:
    """Numbers are answers of yes/no questions; a rule that is not named is late."""
    typed: dict[str, Answer] = {rule.name: LATE for rule in made.questions}
    for name, answer in answers.items():
        typed[name] = NoulAnswer(answer) if isinstance(answer, float) else answer
    return read_all(made.questions, typed)
