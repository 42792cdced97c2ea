"""Why the winner won: always what the engine would say if it were asked about fewer decisions."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from router.config.plan import Decision, Recipe
from router.deciding.engine import decide, prepare
from router.deciding.ranking import Strategy
from router.explaining.ranking import Because, Choice, choice_of
from tests.support.recipes import all_of, decision, nouls, on, readings, recipe

A, B = on("a"), on("b")
DEFAULT = decision("default", all_of())


def choice(made: Recipe, **answers: float) -> Choice:
    read = readings(made, answers)
    return choice_of(made, read, decide(prepare(made), read))


def first(made: Recipe, **answers: float) -> tuple[Because, list[str]]:
    found = choice(made, **answers)
    return found.because, [one.name for one in found.ranked]


@pytest.mark.parametrize(
    ("one", "two", "strategy", "because"),
    [
        (decision("x", A, priority=9), decision("y", B), "priority", Because.PRIORITY),
        (decision("x", A), decision("y", B), "priority", Because.CONFIDENCE),
        (decision("x", A, tier=1), decision("y", B, tier=2, priority=9), "priority", Because.TIER),
        (decision("x", A), decision("y", A), "priority", Because.NAME),
        (decision("x", A), decision("y", B, priority=9), "confidence", Because.CONFIDENCE),
        (decision("x", A, priority=9), decision("y", A), "confidence", Because.PRIORITY),
        (decision("x", A), decision("y", A), "confidence", Because.NAME),
        (decision("x", A), decision("y", all_of(), priority=9), "priority", Because.CATCH_ALL_LAST),
    ],
)
def test_what_put_the_winner_first(one: Decision, two: Decision, strategy: Strategy, because: Because) -> None:
    made = recipe(nouls("a", "b"), two, one, strategy=strategy)
    assert first(made, a=0.9, b=0.8) == (because, ["x", "y"])


def test_the_only_match() -> None:
    assert first(recipe(nouls("a"), decision("x", A)), a=0.9) == (Because.ONLY_MATCH, ["x"])


def test_no_match() -> None:
    assert first(recipe(nouls("a"), decision("x", A)), a=0.1) == (Because.NO_MATCH, [])


def test_an_unknown_that_fails_the_request() -> None:
    made = recipe(nouls("a"), decision("x", A, on_unknown="fail_request"), DEFAULT)
    found = choice(made)
    assert (found.because, found.ranked[0].name, found.ranked[0].fails) == (Because.UNRESOLVED, "x", True)


def test_an_unknown_that_would_fail_it_without_the_winner() -> None:
    made = recipe(nouls("a", "b"), decision("x", A, priority=9), decision("y", B, on_unknown="fail_request"), DEFAULT)
    found = choice(made, a=0.9)
    assert found.otherwise is not None
    assert (found.otherwise.name, found.otherwise.fails) == ("y", True)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2), st.sampled_from("abc")), min_size=1, max_size=5),
    st.fixed_dictionaries({name: st.sampled_from([0.1, 0.6, 0.7, 0.9]) for name in "abc"}),
    st.sampled_from(["priority", "confidence"]),
)
def test_each_in_rank_is_selected_when_those_before_it_are_gone(
    rows: list[tuple[int, int, str]], answers: dict[str, float], strategy: Strategy
) -> None:
    made = recipe(
        nouls("a", "b", "c"),
        *(
            decision(f"d{index}", on(name), priority=priority, tier=tier)
            for index, (priority, tier, name) in enumerate(rows)
        ),
        strategy=strategy,
    )
    matching = {f"d{index}" for index, (_, _, name) in enumerate(rows) if answers[name] >= 0.5}
    because, ranked = first(made, **answers)
    assert set(ranked) == matching
    assert (because is Because.NO_MATCH) == (not matching)
    left = made.decisions
    for name in ranked:
        selected = decide(prepare(recipe(made.questions, *left, strategy=strategy)), readings(made, answers)).selected
        assert selected is not None
        assert selected.name == name
        left = tuple(each for each in left if each.name != name)
