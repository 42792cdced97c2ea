"""Guard rules as conditions and projections read them: evidence, policies, kinds of harm, types of personal data."""

from __future__ import annotations

from dataclasses import replace

import pytest

from router.config.actions import Actions
from router.config.guards import GuardPolicy, GuardRule, Hazard
from router.config.plan import Leaf, Recipe, StateKind
from router.config.projections import Score, ScoreInput
from router.deciding.engine import decide, prepare
from router.deciding.refusing import could_refuse, match_alone_refuses
from router.questions import (
    Answer,
    NoulAnswer,
    Option,
    Predicate,
    Question,
    QuestionType,
    SetAnswer,
    Span,
    SpanAnswer,
    Unknown,
    UnknownReason,
)
from router.signals.guards import by_policy, certain, policies, read_guard
from router.signals.reading import Reading
from tests.support.recipes import decision

LATE = Unknown(UnknownReason.TIMEOUT)
JAILBREAK = GuardRule(
    "jailbreak:j", "jailbreak", "d", Question(QuestionType.NOUL, "?"), StateKind.FRESH, Predicate(gte=0.9), 0.9,
    on_unknown="match",
)  # fmt: skip
SAFETY = GuardRule(
    "safety:s", "safety", "d", Question(QuestionType.NOUL, "?"), StateKind.FRESH, Predicate(gte=0.5), 0.5
)
KINDS = Hazard(Question(QuestionType.SET, "?"), frozenset({"hate", "weapons"}), True, 0.4, False)
PII = GuardRule(
    "pii:p", "pii", "d", Question(QuestionType.SPAN, "?", (Option("AGE"), Option("PERSON"), Option("GPE"))),
    StateKind.FRESH, None, 0.5, allowed=frozenset({"GPE"}), labels=frozenset({"AGE", "PERSON"}), on_unknown="match",
)  # fmt: skip
FOUND = SpanAnswer((Span("PERSON", 0, 3, 0.7), Span("PERSON", 9, 12, 0.8), Span("GPE", 4, 6, 0.99)), 0.99)


def test_a_yes_is_its_probability() -> None:
    assert read_guard(JAILBREAK, NoulAnswer(0.95)) == Reading(QuestionType.NOUL, True, 0.95, {"": 0.95})
    assert read_guard(JAILBREAK, NoulAnswer(0.9)).matched, "equality matches"
    assert read_guard(JAILBREAK, NoulAnswer(0.89)) == Reading(QuestionType.NOUL, False, None, {"": 0.89})


@pytest.mark.parametrize("answer", [LATE, NoulAnswer(2.0), NoulAnswer(float("nan")), FOUND])
@pytest.mark.parametrize("rule", [JAILBREAK, replace(SAFETY, hazard=KINDS)])
def test_what_cannot_be_read_is_unknown(rule: GuardRule, answer: Answer) -> None:
    found = read_guard(rule, answer, SetAnswer(frozenset(), {"hate": 0.9}))
    assert found.matched is None
    assert found.reason is (UnknownReason.TIMEOUT if answer is LATE else UnknownReason.INVALID_ANSWER)


def test_personal_data_counts_by_type() -> None:
    found = read_guard(PII, FOUND)
    assert (found.matched, found.confidence) == (True, 0.8)
    assert found.values == {"AGE": 0.0, "PERSON": 0.8, "": 0.8}
    assert (found.matches("PERSON"), found.matches("AGE")) == (True, False)


def test_allowed_types_do_not_count() -> None:
    found = read_guard(PII, SpanAnswer(FOUND.spans[2:], 0.99))
    assert found == Reading(QuestionType.SPAN, False, None, {"AGE": 0.0, "PERSON": 0.0, "": 0.0})


def test_a_type_that_nobody_told_of_counts() -> None:
    assert read_guard(PII, SpanAnswer((Span("SECRET", 0, 3, 0.7),), 0.7)).matched


def test_a_span_that_is_no_span_is_unknown() -> None:
    assert read_guard(PII, SpanAnswer((Span("AGE", 0, 3, 1.7),), 0.7)).reason is UnknownReason.INVALID_ANSWER
    assert read_guard(PII, LATE).reason is UnknownReason.TIMEOUT


def hazard(yes: float, answer: Answer | None) -> Reading:
    return read_guard(replace(SAFETY, hazard=KINDS), NoulAnswer(yes), answer)


def test_safety_by_kinds_of_harm() -> None:
    both = SetAnswer(frozenset(), {"hate": 0.45, "weapons": 0.1, "privacy": 0.99})
    found = hazard(0.8, both)
    assert (found.matched, found.confidence, found.labels) == (True, 0.45, {"hate": 0.45})
    assert found.values == {"": 0.8, "hate": 0.45, "weapons": 0.1}
    assert hazard(0.4, both).matched is False, "safe, whatever the kinds"
    assert hazard(0.8, SetAnswer(frozenset(), {"hate": 0.3, "weapons": 0.1, "privacy": 0.99})).matched is False


@pytest.mark.parametrize("answer", [LATE, None, SetAnswer(frozenset(), {"hate": 2.0}), NoulAnswer(1.0)])
def test_kinds_that_are_not_known_matter_to_the_unsafe_alone(answer: Answer | None) -> None:
    assert hazard(0.4, answer).matched is False
    found = hazard(0.8, answer)
    assert found.matched is None
    assert found.reason is (UnknownReason.TIMEOUT if answer is LATE else UnknownReason.INVALID_ANSWER)


def test_a_question_of_the_operators_reads_like_one_of_a_view() -> None:
    rule = replace(PII, name="x", family="systemone", allowed=frozenset(), predicate=Predicate(gte=0.75))
    found = read_guard(rule, FOUND)
    assert found.value(None) == 0.99, "the surest word"
    assert found.labels == {"PERSON": 0.8, "GPE": 0.99}


def recipe(*leaves: Leaf, scores: tuple[Score, ...] = ()) -> Recipe:
    blocked = replace(decision("block", leaves[0], 10), model_refs=(), actions=Actions(fast_response="No."))
    rules = (JAILBREAK, PII, replace(SAFETY, hazard=KINDS))
    return Recipe("r", "priority", (), scores, (), (blocked, decision("rest", Leaf("jailbreak", "jailbreak:j"), 1)),
                  guards=rules)  # fmt: skip


@pytest.mark.parametrize(
    "leaf",
    [
        Leaf("pii", "pii:p"),
        Leaf("pii", "pii:p", "AGE"),
        Leaf("pii", "pii:p", predicate=Predicate(gte=0.99)),
        Leaf("pii", "pii:p", "PERSON", Predicate(gt=0.5)),
    ],
)
@pytest.mark.parametrize(("policy", "selected"), [("match", "block"), ("no_match", None)])
def test_a_policy_holds_whatever_a_condition_asks_of_the_rule(
    leaf: Leaf, policy: GuardPolicy, selected: str | None
) -> None:
    readings = {"pii:p": by_policy(PII, policy), "jailbreak:j": read_guard(JAILBREAK, NoulAnswer(0.0))}
    outcome = decide(prepare(recipe(leaf)), readings)
    assert (outcome.selected.name if outcome.selected else None) == selected
    if outcome.selected:
        assert outcome.confidence == 1.0


def test_a_policys_match_is_no_measurement() -> None:
    found = by_policy(PII, "match")
    assert (found.by_policy, found.confidence, found.sureness("AGE")) == (True, None, None)
    assert policies((JAILBREAK, PII, SAFETY)).keys() == {"jailbreak:j", "pii:p"}


def test_one_match_settles_a_refusal() -> None:
    compiled = prepare(recipe(Leaf("safety", "safety:s", "hate")))
    assert match_alone_refuses(compiled, {}, "safety:s")
    assert could_refuse(compiled, {}, "safety:s")
    assert not match_alone_refuses(compiled, {}, "pii:p")
    assert certain(replace(SAFETY, hazard=KINDS)).labels == {"hate": 1.0, "weapons": 1.0}


def test_a_projection_reads_the_value() -> None:
    term = ScoreInput("pii", "pii:p", "PERSON", 2.0, "raw", 1.0, 0.0)
    compiled = prepare(recipe(Leaf("pii", "pii:p"), scores=(Score("s", (term,)),)))
    assert decide(compiled, {"pii:p": read_guard(PII, FOUND)}).projected.scores["s"].low == 1.6
    assert decide(compiled, {"pii:p": by_policy(PII, "match")}).projected.scores["s"].low == 2.0
    unknown = decide(compiled, {"pii:p": read_guard(PII, LATE)}).projected.scores["s"]
    assert (unknown.low, unknown.high) == (0.0, 2.0)
