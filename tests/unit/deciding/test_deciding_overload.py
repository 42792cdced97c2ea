"""The table "Overload against failure policies", row by row, and what holds around it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from router.config.actions import Actions
from router.config.plan import Decision, OnUnknown, Rule
from router.deciding.engine import Readings, prepare
from router.deciding.overload import Action, Overload, unread_for_overload
from router.questions import Answer, NoulAnswer, QuestionType, Unknown, UnknownReason
from router.signals.reading import Reading, read
from tests.support.recipes import all_of, any_of, decision, not_, nouls, on, recipe

RULES = nouls("attack", "harm", "code")
RULE_OF = {rule.name: rule for rule in RULES}
MATCHES = Reading(QuestionType.NOUL, True)
MATCHES_NOT = Reading(QuestionType.NOUL, False)
UNREAD = Unknown(UnknownReason.OVERLOADED)
LATE = Unknown(UnknownReason.TIMEOUT)
YES, NO = NoulAnswer(0.9), NoulAnswer(0.1)

CLOSED: Mapping[str, Reading] = {"attack": MATCHES}
OPEN: Mapping[str, Reading] = {"attack": MATCHES_NOT}
NONE: Mapping[str, Reading] = {}

GOES_ON, REFUSES, RETRIES, FAILS = "goes on", "refuses", "retries", "fails"


def refusing(rule: Rule, priority: int = 10, on_unknown: OnUnknown = "no_match", name: str = "block") -> Decision:
    made = decision(name, rule, priority, on_unknown=on_unknown)
    return replace(made, model_refs=(), actions=Actions(fast_response="No."))


def readings(answers: Mapping[str, Answer]) -> Readings:
    return {name: read(RULE_OF[name], answers.get(name, NO)) for name in RULE_OF}


def result(action: Action, answers: Mapping[str, Answer], policies: Mapping[str, Reading], *decisions: Decision) -> str:
    found = readings(answers)
    overload = Overload(prepare(recipe(RULES, *decisions)), policies)
    resolution = overload.resolve(found, unread_for_overload(found), action)
    if resolution.outcome is None:
        return RETRIES
    if resolution.outcome.failed:
        return FAILS
    selected = resolution.outcome.selected
    return REFUSES if selected is not None and selected.refuses else GOES_ON


def both(answers: Mapping[str, Answer], policies: Mapping[str, Reading], *decisions: Decision) -> tuple[str, str]:
    """With `refuse`, and with `retry`."""
    return (
        result("refuse", answers, policies, *decisions),
        result("retry", answers, policies, *decisions),
    )


BLOCK = refusing(on("attack"))
CODE = decision("code", on("code"), 1)
REST = decision("rest", all_of())


class TestTheTable:
    def test_a_guard_that_fails_closed(self) -> None:
        assert both({"attack": UNREAD}, CLOSED, BLOCK, REST) == (REFUSES, RETRIES)

    def test_a_guard_that_fails_open_and_would_refuse(self) -> None:
        assert both({"attack": UNREAD}, OPEN, BLOCK, REST) == (GOES_ON, RETRIES)

    def test_a_rule_without_a_policy_that_would_refuse(self) -> None:
        assert both({"attack": UNREAD}, NONE, BLOCK, REST) == (GOES_ON, RETRIES)

    def test_a_condition_that_matches_on_error(self) -> None:
        block = refusing(on("attack", on_error="match"))
        assert both({"attack": UNREAD}, NONE, block, REST) == (REFUSES, REFUSES)

    def test_a_decision_that_matches_when_unknown(self) -> None:
        block = refusing(on("attack"), on_unknown="match")
        assert both({"attack": UNREAD}, NONE, block, REST) == (REFUSES, RETRIES)

    def test_unless_a_condition_refuses_already(self) -> None:
        block = refusing(any_of(on("attack", on_error="match"), on("harm")), on_unknown="match")
        assert both({"attack": UNREAD, "harm": UNREAD}, NONE, block, REST) == (REFUSES, REFUSES)

    def test_a_request_that_fails_for_overload_alone(self) -> None:
        made = decision("careful", on("attack"), 10, on_unknown="fail_request")
        assert both({"attack": UNREAD}, NONE, made, REST) == (FAILS, RETRIES)

    def test_a_question_that_cannot_refuse(self) -> None:
        assert both({"code": UNREAD}, CLOSED, BLOCK, CODE, REST) == (GOES_ON, GOES_ON)

    def test_a_match_on_evidence(self) -> None:
        assert both({"attack": YES, "harm": UNREAD, "code": UNREAD}, CLOSED, BLOCK, CODE, REST) == (REFUSES, REFUSES)


class TestOtherFailures:
    """They keep their outcome."""

    def test_a_decision_that_matches_when_unknown(self) -> None:
        block = refusing(on("attack"), on_unknown="match")
        assert both({"attack": LATE, "code": UNREAD}, NONE, block, CODE, REST) == (REFUSES, REFUSES)

    def test_it_would_match_whatever_the_unread_rule_had_said(self) -> None:
        block = refusing(any_of(on("attack"), on("harm")), on_unknown="match")
        assert both({"attack": LATE, "harm": UNREAD}, NONE, block, REST) == (REFUSES, REFUSES)

    def test_a_guard_that_failed_closed_for_something_else(self) -> None:
        """Whoever reads guards has made a match of it already; it is not among the unread."""
        found = {**readings({"harm": UNREAD}), "attack": MATCHES}
        overload = Overload(prepare(recipe(RULES, BLOCK, refusing(on("harm"), 5, name="harm"), REST)), NONE)
        outcome = overload.resolve(found, ["harm"], "retry").outcome
        assert outcome is not None
        assert outcome.selected is not None
        assert outcome.selected.name == "block"

    def test_a_request_that_fails(self) -> None:
        made = decision("careful", on("attack"), 10, on_unknown="fail_request")
        assert both({"attack": LATE, "code": UNREAD}, NONE, made, CODE, REST) == (FAILS, FAILS)

    def test_a_rule_that_fails_open_by_a_timeout_lets_the_request_through(self) -> None:
        assert both({"attack": LATE, "code": UNREAD}, NONE, BLOCK, CODE, REST) == (GOES_ON, GOES_ON)


class TestWhatCouldRefuse:
    @pytest.mark.parametrize("harm", [YES, LATE])
    def test_a_rule_whose_decision_ranks_below_one_that_matches_cannot(self, harm: Answer) -> None:
        answers: dict[str, Answer] = {"attack": UNREAD, "code": YES, "harm": harm}
        above = decision("code", on("code"), 20)
        assert both(answers, NONE, BLOCK, above) == (GOES_ON, GOES_ON)

    def test_a_rule_that_needs_another_which_did_not_match_cannot(self) -> None:
        block = refusing(all_of(on("attack"), on("harm")))
        assert both({"attack": UNREAD}, CLOSED, block, REST) == (GOES_ON, GOES_ON)
        assert both({"attack": UNREAD, "harm": YES}, CLOSED, block, REST) == (REFUSES, RETRIES)

    def test_two_that_refuse_only_together_can(self) -> None:
        block = refusing(all_of(on("attack"), on("harm")))
        assert both({"attack": UNREAD, "harm": UNREAD}, NONE, block, REST) == (GOES_ON, RETRIES)

    def test_one_that_refuses_when_it_does_not_match_can(self) -> None:
        assert both({"code": UNREAD}, NONE, refusing(not_(on("code"))), REST) == (GOES_ON, RETRIES)

    def test_a_guard_that_only_routes_goes_on_by_its_policy(self) -> None:
        careful = decision("careful", on("attack"), 10)
        found = readings({"attack": UNREAD})
        resolution = Overload(prepare(recipe(RULES, careful, REST)), CLOSED).resolve(found, ["attack"], "retry")
        assert resolution.outcome is not None
        assert resolution.outcome.selected == careful
        assert resolution.failed_closed == ("attack",)

    def test_one_that_could_keep_a_route_from_being_refused_is_not_forwarded_on_a_guess(self) -> None:
        above = decision("code", on("code"), 20, on_unknown="match")
        assert both({"attack": YES, "code": UNREAD}, NONE, BLOCK, above) == (GOES_ON, RETRIES)


class TestReadInPart:
    def test_a_part_that_matched_stands(self) -> None:
        overload = Overload(prepare(recipe(RULES, BLOCK, REST)), CLOSED)
        resolution = overload.resolve(readings({"attack": YES}), ["attack"], "retry")
        assert resolution.unread == ()
        assert resolution.outcome is not None
        assert resolution.outcome.selected == BLOCK

    def test_a_part_without_a_match_says_nothing_of_the_rest(self) -> None:
        overload = Overload(prepare(recipe(RULES, BLOCK, REST)), CLOSED)
        assert overload.resolve(readings({}), ["attack"], "retry").outcome is None
        by_its_part = overload.resolve(readings({}), ["attack"], "refuse")
        assert by_its_part.outcome is not None
        assert by_its_part.outcome.selected == REST
        assert by_its_part.failed_closed == ()


def test_without_overload_nothing_changes() -> None:
    for action in ("refuse", "retry"):
        assert result(action, {}, CLOSED, BLOCK, REST) == GOES_ON
        assert result(action, {"attack": LATE}, CLOSED, BLOCK, REST) == GOES_ON
        assert result(action, {"attack": YES}, CLOSED, BLOCK, REST) == REFUSES


def test_what_was_not_read_is_named_in_order() -> None:
    found = readings({"code": UNREAD, "attack": UNREAD})
    resolution = Overload(prepare(recipe(RULES, BLOCK, CODE)), CLOSED).resolve(found, {"code", "attack"}, "refuse")
    assert resolution.unread == ("attack", "code")
    assert resolution.failed_closed == ("attack",)


def test_a_refusal_that_nothing_can_undo_needs_no_wait() -> None:
    overload = Overload(prepare(recipe(RULES, BLOCK, CODE, REST)), CLOSED)
    assert overload.refuses_already(readings({"attack": YES, "code": UNREAD}), ["code"])
    assert not overload.refuses_already(readings({"attack": UNREAD}), ["attack"])
    above = decision("code", on("code"), 20)
    overload = Overload(prepare(recipe(RULES, BLOCK, above)), CLOSED)
    assert not overload.refuses_already(readings({"attack": YES, "code": UNREAD}), ["code"])
