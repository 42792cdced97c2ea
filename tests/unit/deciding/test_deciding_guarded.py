"""What guards come to: evidence, then `on_unscanned`, then `on_unknown`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from router.config.guards import GuardRule, Hazard
from router.config.plan import StateKind
from router.deciding.guarded import not_asked, nothing_to_read, result_of
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
from router.scan.rules import Coverage, Outcome, Result
from router.signals.guards import hazard_key

FULL = Coverage(4, 4, 400, 400)
PART = Coverage(3, 4, 300, 400, ((100, 200),))
NONE = Coverage(0, 4, 0, 400, ((0, 400),))
LATE, BUSY = UnknownReason.TIMEOUT, UnknownReason.OVERLOADED
ATTACK = GuardRule(
    name="jailbreak:n",
    family="jailbreak",
    deployment="d",
    question=Question(QuestionType.NOUL, "?"),
    state=StateKind.FRESH,
    predicate=Predicate(gte=0.5),
    threshold=0.5,
    on_unknown="match",
)
HARM = replace(
    ATTACK,
    hazard=Hazard(
        Question(QuestionType.SET, "?", (Option("a"), Option("b"))), frozenset({"a", "b"}), True, 0.5, calibrated=False
    ),
    on_unknown=None,
)
KINDS = SetAnswer(frozenset({"a"}), {"a": 0.9, "b": 0.1})


def outcome(
    result: Result = Result.NO_MATCH, answer: Answer | None = None, coverage: Coverage = FULL, **more: Any
) -> Outcome:
    return Outcome(result, NoulAnswer(0.1) if answer is None and coverage.windows else answer, coverage, **more)


def came(rule: GuardRule, main: Outcome, second: Outcome | None = None, *, waits: bool = False) -> Any:
    found = {rule.name: main, **({hazard_key(rule.name): second} if second is not None else {})}
    return result_of(rule, found, waits=waits)


def test_what_was_read_decides() -> None:
    calm = came(ATTACK, outcome())
    assert (calm.reading.matched, calm.failed_closed, calm.partial) == (False, None, False)
    found = came(ATTACK, outcome(Result.MATCH, NoulAnswer(0.9), PART, decided=True, unread=UnknownReason.NOT_ASKED))
    assert (found.reading.matched, found.reading.by_policy, found.decided, found.partial) == (True, False, True, True)


def test_what_was_read_in_part_is_judged_by_that() -> None:
    found = came(ATTACK, outcome(coverage=PART, unread=LATE))
    assert (found.reading.matched, found.partial, found.unread, found.failed_closed) == (False, True, LATE, None)


@pytest.mark.parametrize(("result", "matched"), [(Result.MATCH, True), (Result.NO_MATCH, False)])
def test_on_unscanned_is_a_policy(result: Result, matched: bool) -> None:
    found = came(ATTACK, outcome(result, None, PART, by_policy=True, unread=LATE))
    assert found.reading.matched is matched
    assert found.reading.by_policy is matched
    assert found.failed_closed == ("on_unscanned" if matched else None)


@pytest.mark.parametrize(
    ("result", "matched"), [(Result.MATCH, True), (Result.NO_MATCH, False), (Result.UNKNOWN, None)]
)
def test_what_an_unread_window_could_undo_is_for_the_policy(result: Result, matched: bool | None) -> None:
    calm = replace(ATTACK, family="systemone", predicate=Predicate(lt=0.5), on_unknown=None)
    reason = LATE if result is Result.UNKNOWN else None
    found = came(calm, outcome(result, NoulAnswer(0.1), PART, by_policy=True, unread=LATE, reason=reason))
    assert found.reading.matched is matched
    assert (found.failed_closed, found.decided) == ("on_unscanned" if matched else None, False)


@pytest.mark.parametrize("policy", ["match", "no_match", None])
def test_nothing_read_is_what_on_unknown_says(policy: Any) -> None:
    rule = replace(ATTACK, on_unknown=policy)
    found = came(rule, outcome(Result.UNKNOWN, None, NONE, reason=LATE, unread=LATE))
    assert found.reading.matched == {"match": True, "no_match": False, None: None}[policy]
    assert found.reading.by_policy is (policy is not None)
    assert found.failed_closed == ("on_unknown" if policy == "match" else None)
    assert found.answer == Unknown(LATE)
    assert not found.partial


def test_overload_waits_for_the_resolution_where_requests_wait() -> None:
    busy = outcome(Result.UNKNOWN, None, NONE, reason=BUSY, unread=BUSY)
    waiting = came(ATTACK, busy, waits=True)
    assert (waiting.reading.matched, waiting.reading.reason, waiting.lacks_room) == (None, BUSY, True)
    assert came(ATTACK, busy).failed_closed == "on_unknown"
    part = came(ATTACK, outcome(coverage=PART, unread=BUSY), waits=True)
    assert (part.reading.matched, part.lacks_room) == (False, True)
    match = came(ATTACK, outcome(Result.MATCH, NoulAnswer(0.9), PART, unread=BUSY), waits=True)
    assert not match.lacks_room


def test_what_nobody_waited_for_is_no_failure() -> None:
    cut = outcome(Result.UNKNOWN, None, NONE, reason=UnknownReason.NOT_ASKED, unread=UnknownReason.NOT_ASKED)
    for found in (came(ATTACK, cut), not_asked(ATTACK)):
        assert found.reading.matched is None
        assert found.reading.reason is UnknownReason.NOT_ASKED
        assert found.failed_closed is None


def test_two_questions_match_only_together() -> None:
    unsafe, kinds = outcome(Result.MATCH, NoulAnswer(0.9)), outcome(Result.MATCH, KINDS)
    assert dict(came(HARM, unsafe, kinds).reading.labels) == {"a": 0.9}
    none = outcome(Result.NO_MATCH, SetAnswer(frozenset(), {"a": 0.1, "b": 0.1}))
    assert came(HARM, unsafe, none).reading.matched is False
    assert came(HARM, outcome(), kinds).reading.matched is False
    late = outcome(Result.UNKNOWN, None, NONE, reason=LATE, unread=LATE)
    found = came(HARM, unsafe, late)
    assert (found.reading.matched, found.reading.reason, found.coverage) == (None, LATE, NONE)
    assert came(HARM, outcome(), late).reading.matched is False
    assert came(HARM, late, none).reading.matched is False
    strict = outcome(Result.MATCH, None, PART, by_policy=True, unread=LATE)
    assert came(HARM, strict, kinds).failed_closed == "on_unscanned"
    assert came(HARM, strict, none).reading.matched is False


def test_there_is_no_attack_in_nothing() -> None:
    assert nothing_to_read(ATTACK).reading.matched is False
    assert nothing_to_read(HARM).reading.matched is False
    asked = nothing_to_read(replace(ATTACK, name="n", family="systemone"))
    assert (asked.reading.matched, asked.reading.reason) == (None, UnknownReason.NO_TEXT)
    assert nothing_to_read(ATTACK).coverage is None


def test_spans_keep_their_places() -> None:
    rule = replace(ATTACK, name="pii:n", family="pii", question=Question(QuestionType.SPAN), predicate=None)
    spans = SpanAnswer((Span("EMAIL", 70_000, 70_009, 0.9),), 0.9)
    found = came(rule, outcome(Result.MATCH, spans))
    assert found.answer == spans
    assert dict(found.reading.labels) == {"EMAIL": 0.9}
