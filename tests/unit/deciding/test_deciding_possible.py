from __future__ import annotations

from typing import Any

import pytest

from router.config.plan import Decision, Recipe
from router.config.projections import BandMapping, Output, Score, ScoreInput
from router.deciding.engine import prepare
from router.deciding.possible import can_still_be_selected, needed_rules
from router.questions import NoulAnswer, Predicate, Unknown, UnknownReason
from router.signals.reading import Reading, read
from tests.support.recipes import all_of, any_of, band, decision, not_, nouls, on, recipe

QUESTIONS = nouls("a", "b", "c")
NO_TEXT = Unknown(UnknownReason.NO_TEXT)


def known(**answers: float | Unknown) -> dict[str, Reading]:
    rules = {rule.name: rule for rule in QUESTIONS}
    return {
        name: read(rules[name], NoulAnswer(answer) if isinstance(answer, float) else answer)
        for name, answer in answers.items()
    }


def outlook(*decisions: Decision, strategy: Any = "priority", **answers: Any) -> tuple[str, str]:
    """Names of what can still be selected, and of what is needed, each as one word."""
    compiled = prepare(recipe(QUESTIONS, *decisions, strategy=strategy))
    seen = known(**answers)
    return "".join(sorted(can_still_be_selected(compiled, seen))), "".join(sorted(needed_rules(compiled, seen)))


GUARD = decision("G", on("a"), priority=100)
CODE = decision("C", on("b"), priority=10)
REST = decision("R", all_of())


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ({}, ("CGR", "ab")),
        ({"a": 0.9}, ("G", "")),
        ({"a": 0.1}, ("CR", "b")),
        ({"a": 0.1, "b": 0.9}, ("C", "")),
        ({"b": 0.9}, ("CG", "a")),
        ({"b": 0.1}, ("GR", "a")),
        ({"a": NO_TEXT, "b": NO_TEXT}, ("R", "")),
    ],
)
def test_a_guard_a_route_and_a_catch_all(answers: dict[str, float | Unknown], expected: tuple[str, str]) -> None:
    assert outlook(GUARD, CODE, REST, **answers) == expected


def test_what_nothing_reads_is_not_needed() -> None:
    assert outlook(GUARD, REST) == ("GR", "a")


def test_a_decision_that_matches_on_an_unknown_is_sure_once_it_cannot_be_false() -> None:
    careful = decision("G", on("a"), priority=100, on_unknown="match")
    assert outlook(careful, CODE, a=NO_TEXT) == ("G", "")
    on_error = decision("G", on("a", on_error="match"), priority=100)
    assert outlook(on_error, CODE, a=NO_TEXT) == ("G", "")


def test_an_unknown_that_fails_the_request_leaves_the_rest_needed() -> None:
    strict = decision("G", on("a"), priority=100, on_unknown="fail_request")
    # It can be selected no more, but whether it fails the request depends on what would be selected instead.
    assert outlook(strict, CODE, REST, a=NO_TEXT) == ("CR", "b")


def test_parts_of_a_rule_that_are_settled_settle_their_neighbours() -> None:
    rule = any_of(all_of(on("a"), on("b")), on("c"))
    assert outlook(decision("D", rule), a=0.1) == ("D", "c")
    assert outlook(decision("D", rule), c=0.9) == ("D", "")
    assert outlook(decision("D", not_(rule)), c=0.9) == ("", "")


def test_a_true_part_leaves_the_others_needed_only_where_confidence_ranks() -> None:
    either = any_of(on("a"), on("b"))
    apart = (decision("D", either, priority=2), decision("E", on("c"), priority=1))
    assert outlook(*apart, a=0.6) == ("D", "")
    level = (decision("D", either), decision("E", on("c")))
    assert outlook(*level, a=0.6) == ("DE", "bc")
    assert outlook(*apart, strategy="confidence", a=0.6) == ("DE", "bc")


def test_a_beaten_decision_is_heard_where_it_can_spoil_the_comparison() -> None:
    top = (decision("D", on("a"), priority=2), decision("E", on("b"), priority=2))
    beaten = decision("F", not_(on("c")), priority=1)
    assert outlook(*top, beaten, a=0.6, b=0.9) == ("DE", "c")


def test_a_lower_tier_outranks_whatever_the_strategy() -> None:
    near, far = decision("N", on("a"), tier=0), decision("F", on("b"), priority=9, tier=1)
    assert outlook(near, far, strategy="confidence", a=0.9) == ("N", "")


def test_a_band_that_is_settled_needs_no_more_answers() -> None:
    terms = tuple(
        ScoreInput("systemone", name, None, weight, "raw", 1.0, 0.0)
        for name, weight in (("a", 0.8), ("b", 0.1), ("c", 0.0))
    )
    bands = BandMapping("m", "s", "multi_emit", 10.0, (Output("high", Predicate(gte=0.5)),))
    made = Recipe("r", "priority", QUESTIONS, (Score("s", terms),), (bands,), (decision("D", band("high")), REST))
    compiled = prepare(made)
    assert needed_rules(compiled, {}) == {"a", "b"}  # a weight of zero reads nothing
    assert needed_rules(compiled, known(a=0.5)) == {"b"}
    assert needed_rules(compiled, known(a=0.9)) == frozenset()
    assert can_still_be_selected(compiled, known(a=0.9)) == {"D"}
    assert can_still_be_selected(compiled, known(a=0.1)) == {"R"}
