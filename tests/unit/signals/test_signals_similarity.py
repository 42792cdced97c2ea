"""What the similarities to an embedding rule's candidates come to."""

from __future__ import annotations

import math

import pytest

from router.config.plan import Aggregation, Leaf, QuestionRule, StateKind
from router.deciding.compiling import Names, possible_kinds
from router.deciding.kleene import ScoreKind
from router.questions import NoulAnswer, Option, Predicate, Question, QuestionType, SimilarityAnswer, UnknownReason
from router.signals.reading import Measure, read
from router.signals.traits import trait_of

HALF = Predicate(gte=0.5)


def rule(count: int, aggregation: Aggregation = "max", predicate: Predicate | None = HALF) -> QuestionRule:
    question = Question(QuestionType.SIMILARITY, options=tuple(Option(str(index), "text") for index in range(count)))
    return QuestionRule("embedding:n", "d", question, StateKind.USER, predicate, 1000, aggregation=aggregation)


@pytest.mark.parametrize(
    ("aggregation", "similarities", "matched", "value"),
    [
        ("max", (0.1, 0.7, 0.3), True, 0.7),
        ("max", (0.1, 0.5), True, 0.5),
        ("max", (0.1, 0.4999), False, 0.4999),
        ("mean", (0.9, 0.3), True, 0.6),
        ("mean", (0.9, 0.0), False, 0.45),
        ("mean", (0.9, -0.9), False, 0.45),
        ("any", (0.1, 0.7), True, 0.7),
        ("any", (0.1, 0.3), False, 0.3),
        ("max", (-0.2,), False, 0.0),
    ],
)
def test_aggregation(aggregation: Aggregation, similarities: tuple[float, ...], matched: bool, value: float) -> None:
    reading = read(rule(len(similarities), aggregation), SimilarityAnswer(similarities))
    assert reading.matched is matched
    assert reading.value(None) == pytest.approx(value)
    assert reading.confidence == (pytest.approx(value) if matched else None)


def test_any_differs_from_max_where_a_bound_is_an_upper_one() -> None:
    inside = Predicate(gte=0.4, lt=0.6)
    answer = SimilarityAnswer((0.5, 0.9))
    assert read(rule(2, "any", inside), answer).matched is True
    assert read(rule(2, "max", inside), answer).matched is False


@pytest.mark.parametrize(
    "answer",
    [
        SimilarityAnswer(()),
        SimilarityAnswer((0.5,)),
        SimilarityAnswer((0.5, 1.5)),
        SimilarityAnswer((0.5, math.nan)),
        NoulAnswer(0.9),
    ],
)
def test_what_does_not_fit_the_question_is_unknown(answer: SimilarityAnswer | NoulAnswer) -> None:
    reading = read(rule(2), answer)
    assert (reading.matched, reading.reason) == (None, UnknownReason.INVALID_ANSWER)


def test_its_confidence_is_no_probability() -> None:
    trait = trait_of(rule(2))
    assert (trait.labelled, trait.measure, trait.highest) == (False, Measure.SIMILARITY, 1.0)
    names = Names({"embedding:n": trait}, {})
    assert possible_kinds(Leaf("embedding", "embedding:n"), names) == {ScoreKind.SIMILARITY}
