"""Whatever the recipe: nothing is forwarded that could have been refused, and nothing changes without overload."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from router.config.actions import Actions
from router.config.plan import Recipe
from router.deciding.engine import decide, prepare
from router.deciding.overload import NOT_READ, Overload
from router.deciding.possible import Outlook
from router.questions import QuestionType
from router.signals.reading import Reading
from tests.property.test_deciding_outlook import NAMES, VALUES, readings, recipes, result

POLICIES = st.dictionaries(
    st.sampled_from(NAMES),
    st.sampled_from([Reading(QuestionType.NOUL, True), Reading(QuestionType.NOUL, False)]),
    max_size=4,
)
UNREAD = st.sets(st.sampled_from(NAMES))
FOUND = st.fixed_dictionaries({name: st.sampled_from(VALUES) for name in NAMES})


@st.composite
def with_refusals(draw: st.DrawFn) -> Recipe:
    made = draw(recipes())
    no = Actions(fast_response="No.")
    decisions = tuple(
        replace(decision, model_refs=(), actions=no) if draw(st.booleans()) else decision for decision in made.decisions
    )
    return replace(made, decisions=decisions)


def completions(found: Mapping[str, float | None], unread: set[str]) -> Iterator[dict[str, float | None]]:
    """Everything that the unread rules could have said."""
    names = sorted(unread)
    for values in itertools.product([value for value in VALUES if value is not None], repeat=len(names)):
        yield {**found, **dict(zip(names, values, strict=True))}


def provisional(found: Mapping[str, float | None], unread: set[str]) -> dict[str, Reading]:
    return {**readings(found), **dict.fromkeys(unread, NOT_READ)}


@settings(max_examples=250, deadline=None)
@given(with_refusals(), FOUND, UNREAD, POLICIES)
def test_nothing_is_forwarded_that_could_have_been_refused(
    made: Recipe, found: dict[str, float | None], unread: set[str], policies: dict[str, Reading]
) -> None:
    compiled = prepare(made)
    outcome = Overload(compiled, policies).resolve(provisional(found, unread), unread, "retry").outcome
    if outcome is None or outcome.failed or (outcome.selected is not None and outcome.selected.refuses):
        return
    for full in completions(found, unread):
        selected = decide(compiled, readings(full)).selected
        assert selected is None or not selected.refuses


@settings(max_examples=250, deadline=None)
@given(with_refusals(), FOUND, UNREAD, POLICIES)
def test_a_refusal_never_rests_on_what_was_not_read(
    made: Recipe, found: dict[str, float | None], unread: set[str], policies: dict[str, Reading]
) -> None:
    compiled = prepare(made)
    outcome = Overload(compiled, policies).resolve(provisional(found, unread), unread, "retry").outcome
    if outcome is None or outcome.selected is None or not outcome.selected.refuses:
        return
    without_policies = decide(compiled, provisional(found, unread))
    assert result(outcome) == result(without_policies)
    if outcome.selected.name in outcome.applied:
        for full in completions(found, unread):
            selected = decide(compiled, readings(full)).selected
            assert selected is not None
            assert selected.refuses


@settings(max_examples=250, deadline=None)
@given(with_refusals(), FOUND, UNREAD, POLICIES)
def test_the_retryable_error_is_answered_only_where_something_is_at_stake(
    made: Recipe, found: dict[str, float | None], unread: set[str], policies: dict[str, Reading]
) -> None:
    compiled = prepare(made)
    resolution = Overload(compiled, policies).resolve(provisional(found, unread), unread, "retry")
    if resolution.outcome is None:
        known = {name: reading for name, reading in readings(found).items() if name not in unread}
        fates = Outlook(compiled).fates(known)
        assert unread
        assert any(fate.may_fail or (fate.may_match and fate.decision.refuses) for fate in fates)


@settings(max_examples=150, deadline=None)
@given(with_refusals(), FOUND, UNREAD, POLICIES)
def test_with_refuse_the_policies_decide_at_once(
    made: Recipe, found: dict[str, float | None], unread: set[str], policies: dict[str, Reading]
) -> None:
    compiled = prepare(made)
    resolution = Overload(compiled, policies).resolve(provisional(found, unread), unread, "refuse")
    stood_for = {name: reading for name, reading in policies.items() if name in unread}
    assert resolution.outcome == decide(compiled, {**provisional(found, unread), **stood_for})


@settings(max_examples=150, deadline=None)
@given(with_refusals(), FOUND, POLICIES, st.sampled_from(["refuse", "retry"]))
def test_without_overload_nothing_changes(
    made: Recipe, found: dict[str, float | None], policies: dict[str, Reading], action: str
) -> None:
    compiled = prepare(made)
    resolution = Overload(compiled, policies).resolve(readings(found), (), action)  # type: ignore[arg-type]
    assert resolution.outcome == decide(compiled, readings(found))
    assert (resolution.unread, resolution.failed_closed) == ((), ())
