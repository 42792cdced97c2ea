"""The document's table: when each question type matches, and what routing can read from it."""

from __future__ import annotations

import math
from typing import Any

import pytest

from router.config.plan import QuestionRule, StateKind
from router.questions import (
    Answer,
    ChoiceAnswer,
    NoulAnswer,
    Option,
    Predicate,
    Question,
    QuestionType,
    ScoreAnswer,
    SetAnswer,
    Span,
    SpanAnswer,
    Unknown,
    UnknownReason,
)
from router.signals.reading import Reading, read, read_all


def rule(kind: QuestionType, *keys: str, predicate: Predicate | None = None, name: str = "q") -> QuestionRule:
    question = Question(kind, "?", tuple(Option(key) for key in keys))
    return QuestionRule(name, "d", question, StateKind.USER, predicate, 1000)


KIND = ChoiceAnswer("code", {"code": 0.6, "math": 0.3, "chat": 0.1}, 0.6)
TOPICS = SetAnswer(frozenset({"billing"}), {"billing": 0.4, "shipping": 0.3})
ACCOUNTS = SpanAnswer((Span("account", 0, 3, 0.7), Span("account", 9, 12, 0.9)), 0.95)


def choice(predicate: Predicate | None = None) -> Reading:
    return read(rule(QuestionType.CHOICE, "code", "math", "chat", predicate=predicate), KIND)


def labels(predicate: Predicate | None = None) -> Reading:
    return read(rule(QuestionType.SET, "billing", "shipping", predicate=predicate), TOPICS)


def spans(predicate: Predicate | None = None, answer: SpanAnswer = ACCOUNTS) -> Reading:
    return read(rule(QuestionType.SPAN, "account", "order", predicate=predicate), answer)


@pytest.mark.parametrize(
    ("probability", "predicate", "matched"),
    [
        (0.5, None, True),
        (0.499, None, False),
        (0.69, Predicate(gte=0.7), False),
        (0.7, Predicate(gte=0.7), True),
        (0.7, Predicate(gt=0.7), False),
        (0.2, Predicate(lt=0.3), True),
        (0.5, Predicate(gte=0.4, lte=0.6), True),
    ],
)
def test_noul_meets_its_predicate_by_default_one_half(
    probability: float, predicate: Predicate | None, matched: bool
) -> None:
    reading = read(rule(QuestionType.NOUL, predicate=predicate), NoulAnswer(probability))
    assert reading.matched is matched
    assert reading.value(None) == probability
    assert reading.confidence == (probability if matched else None)


def test_score_reads_its_expected_level_and_measures_no_confidence() -> None:
    hard = rule(QuestionType.SCORE, "0", "1", "2", predicate=Predicate(gte=1.5))
    reading = read(hard, ScoreAnswer(1.6, (0.1, 0.2, 0.7), 0.7))
    assert (reading.matched, reading.value(None), reading.confidence) == (True, 1.6, None)
    assert read(hard, ScoreAnswer(1.49, (0.1, 0.31, 0.59), 0.6)).matched is False


def test_choice_matches_its_chosen_option() -> None:
    reading = choice()
    assert (reading.matched, reading.label, reading.confidence) == (True, "code", 0.6)
    assert (reading.matches("code"), reading.matches("math")) == (True, False)
    assert (reading.value(None), reading.value("math")) == (0.6, 0.3)


def test_choice_predicate_reads_the_chosen_probability() -> None:
    assert choice(Predicate(gte=0.6)).matches("code") is True
    unsure = choice(Predicate(gte=0.61))
    assert (unsure.matched, unsure.matches("code"), unsure.label) == (False, False, "code")
    # The option that was not chosen never matches, even where its own probability would meet the bounds.
    assert choice(Predicate(lte=0.3)).matches("math") is False


def test_set_matches_what_the_model_selected() -> None:
    reading = labels()
    assert (reading.matched, reading.confidence) == (True, 0.4)
    assert (reading.matches("billing"), reading.matches("shipping")) == (True, False)
    assert (reading.value(None), reading.value("shipping")) == (0.4, 0.3)


def test_set_predicate_replaces_the_models_selection() -> None:
    reading = labels(Predicate(lte=0.35))
    assert (reading.matches("billing"), reading.matches("shipping")) == (False, True)
    assert reading.confidence == 0.3
    assert labels(Predicate(gte=0.8)).matched is False


def test_set_says_nothing_about_a_label_it_did_not_answer() -> None:
    reading = labels()
    assert reading.matches("refunds") is None
    assert reading.value("refunds") is None


def test_span_matches_where_the_model_found_the_label() -> None:
    reading = spans()
    assert (reading.matched, reading.confidence) == (True, 0.9)
    assert (reading.matches("account"), reading.matches("order")) == (True, False)
    assert (reading.value("account"), reading.value("order"), reading.value(None)) == (0.9, 0.0, 0.95)


def test_span_predicate_needs_one_span_that_meets_it() -> None:
    assert spans(Predicate(gte=0.8)).confidence == 0.9
    assert spans(Predicate(gte=0.91)).matches("account") is False
    some = spans(Predicate(lt=0.8))
    assert (some.matches("account"), some.confidence, some.value("account")) == (True, 0.7, 0.9)


def test_a_text_without_spans_is_a_known_no() -> None:
    reading = spans(answer=SpanAnswer((), 0.02))
    assert (reading.matched, reading.matches("account"), reading.value("account")) == (False, False, 0.0)


def test_a_span_preset_reads_labels_that_the_rule_does_not_list() -> None:
    preset = QuestionRule("pii", "d", Question(QuestionType.SPAN, preset="pii"), StateKind.USER, None, 1000)
    reading = read(preset, SpanAnswer((Span("email", 0, 5, 0.8),), 0.9))
    assert (reading.matches("email"), reading.matches("phone"), reading.value("phone")) == (True, False, 0.0)


@pytest.mark.parametrize("reason", list(UnknownReason))
def test_unknown_keeps_its_reason_and_has_no_values(reason: UnknownReason) -> None:
    for kind in QuestionType:
        reading = read(rule(kind, "a", "b"), Unknown(reason))
        assert (reading.matched, reading.reason, reading.confidence) == (None, reason, None)
        assert (reading.matches("a"), reading.value("a"), reading.value(None)) == (None, None, None)


ODD: list[tuple[QuestionType, Any]] = [
    (QuestionType.NOUL, NoulAnswer(math.nan)),
    (QuestionType.NOUL, NoulAnswer(1.1)),
    (QuestionType.NOUL, NoulAnswer(-0.1)),
    (QuestionType.NOUL, KIND),
    (QuestionType.CHOICE, ChoiceAnswer("poem", {"code": 1.0}, 1.0)),
    (QuestionType.CHOICE, ChoiceAnswer("code", {}, 1.0)),
    (QuestionType.CHOICE, ChoiceAnswer("code", {"code": math.nan, "math": 0.1}, 1.0)),
    (QuestionType.SCORE, ScoreAnswer(math.inf, (1.0,), 1.0)),
    (QuestionType.SCORE, ScoreAnswer(2.5, (1.0,), 1.0)),
    (QuestionType.SET, SetAnswer(frozenset({"x"}), {"billing": 0.5})),
    (QuestionType.SET, SetAnswer(frozenset(), {})),
    (QuestionType.SET, SetAnswer(frozenset(), {"billing": 1.5})),
    (QuestionType.SPAN, SpanAnswer((Span("a", 0, 1, math.nan),), 0.5)),
    (QuestionType.SPAN, SpanAnswer((), math.nan)),
]


@pytest.mark.parametrize(("kind", "answer"), ODD)
def test_an_answer_that_contradicts_its_question_is_unknown(kind: QuestionType, answer: Answer) -> None:
    predicate = Predicate(gte=0) if kind is QuestionType.SCORE else None
    reading = read(rule(kind, "a", "b", "c", predicate=predicate), answer)
    assert (reading.matched, reading.reason) == (None, UnknownReason.INVALID_ANSWER)


def test_single_precision_dust_is_pulled_back_into_range() -> None:
    assert read(rule(QuestionType.NOUL), NoulAnswer(1.0000001)).value(None) == 1.0
    reading = read(rule(QuestionType.SET, "a"), SetAnswer(frozenset({"a"}), {"a": 1.0000001, "b": -1e-9}))
    assert (reading.value("a"), reading.value("b")) == (1.0, 0.0)


def test_read_all_keeps_the_recipes_order_and_marks_what_was_not_asked() -> None:
    rules = [rule(QuestionType.NOUL, name="b"), rule(QuestionType.NOUL, name="a")]
    readings = read_all(rules, {"a": NoulAnswer(0.9), "other": NoulAnswer(0.1)})
    assert list(readings) == ["b", "a"]
    assert readings["b"].reason is UnknownReason.NOT_ASKED
    assert readings["a"].matched is True
