"""What can still be selected, and what is needed, against trying every completion."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Literal

from hypothesis import given, settings
from hypothesis import strategies as st

from router.config.plan import Leaf, Recipe, Rule
from router.config.projections import BandMapping, Output, Partition, Score, ScoreInput
from router.deciding.engine import Outcome, decide, prepare
from router.deciding.possible import Outlook
from router.questions import NoulAnswer, Predicate
from router.signals.reading import Reading, read
from tests.support.recipes import LATE, all_of, any_of, band, decision, not_, nouls, on

NAMES = ("a", "b", "c", "d")
QUESTIONS = nouls(*NAMES)
RULE_OF = {rule.name: rule for rule in QUESTIONS}
# Enough different numbers for every order that confidences can have among two decisions, and for both sides of 0.5.
VALUES: tuple[float | None, ...] = (None, 0.1, 0.6, 0.9)

SCORE = Score(
    "s",
    (
        ScoreInput("systemone", "a", None, 0.6, "raw", 1.0, 0.0),
        ScoreInput("systemone", "b", None, 0.4, "raw", 1.0, 0.0),
        ScoreInput("systemone", "d", None, 0.0, "raw", 1.0, 0.0),
    ),
)
BANDS = BandMapping(
    "m", "s", "threshold_bands", 10.0, (Output("high", Predicate(gte=0.7)), Output("low", Predicate(lt=0.3)))
)
RIVALS = Partition("p", ("b", "c"), "c")


def reading(name: str, value: float | None) -> Reading:
    return read(RULE_OF[name], LATE if value is None else NoulAnswer(value))


ERRORS = st.sampled_from([None, None, None, "match", "no_match"])
LEAVES: st.SearchStrategy[Rule] = st.one_of(
    st.builds(on, st.sampled_from(NAMES), st.none(), st.sampled_from([None, None, Predicate(lt=0.5)]), ERRORS),
    st.builds(band, st.sampled_from(["high", "low"]), ERRORS),
)


def _grow(children: st.SearchStrategy[Rule]) -> st.SearchStrategy[Rule]:
    several = st.lists(children, min_size=0, max_size=3).map(tuple)
    return st.one_of(
        several.map(lambda rules: all_of(*rules)), several.map(lambda rules: any_of(*rules)), children.map(not_)
    )


RULES = st.recursive(LEAVES, _grow, max_leaves=4)


@st.composite
def recipes(draw: st.DrawFn) -> Recipe:
    count = draw(st.integers(1, 4))
    decisions = tuple(
        decision(
            "vwxyz"[i],
            draw(RULES),
            priority=draw(st.integers(0, 2)),
            tier=draw(st.sampled_from([0, 0, 1])),
            on_unknown=draw(st.sampled_from(["no_match", "match", "fail_request"])),
        )
        for i in range(count)
    )
    strategy: Literal["priority", "confidence"] = draw(st.sampled_from(["priority", "confidence"]))
    partitions = draw(st.sampled_from([(), (RIVALS,)]))
    return Recipe("r", strategy, QUESTIONS, (SCORE,), (BANDS,), decisions, (), partitions)


KNOWN = st.dictionaries(st.sampled_from(NAMES), st.sampled_from(VALUES), max_size=4)


def completions(known: Mapping[str, float | None]) -> Iterator[dict[str, float | None]]:
    missing = [name for name in NAMES if name not in known]
    for values in itertools.product(VALUES, repeat=len(missing)):
        yield {**known, **dict(zip(missing, values, strict=True))}


def readings(values: Mapping[str, float | None]) -> dict[str, Reading]:
    return {name: reading(name, value) for name, value in values.items()}


def result(outcome: Outcome) -> tuple[str | None, bool]:
    return outcome.selected.name if outcome.selected else None, bool(outcome.failed)


@settings(max_examples=150, deadline=None)
@given(recipes(), KNOWN)
def test_whatever_is_selected_was_possible(made: Recipe, known: dict[str, float | None]) -> None:
    compiled = prepare(made)
    possible = Outlook(compiled).can_still_be_selected(readings(known))
    reached = {result(decide(compiled, readings(full)))[0] for full in completions(known)} - {None}
    assert reached <= possible


@settings(max_examples=250, deadline=None)
@given(recipes(), KNOWN)
def test_leaving_out_what_is_not_needed_changes_nothing(made: Recipe, known: dict[str, float | None]) -> None:
    compiled = prepare(made)
    needed = Outlook(compiled).needed_rules(readings(known))
    assert needed <= set(NAMES) - known.keys()
    for full in completions(known):
        asked = {name: value for name, value in full.items() if name in needed or name in known}
        assert result(decide(compiled, readings(asked))) == result(decide(compiled, readings(full)))


@settings(max_examples=150, deadline=None)
@given(st.permutations(NAMES), st.lists(st.sampled_from(["and", "or", "not"]), min_size=2, max_size=2), KNOWN)
def test_it_is_exact_where_nothing_is_read_twice(
    names: list[str], shapes: list[str], known: dict[str, float | None]
) -> None:
    def rule(shape: str, first: str, second: str) -> Rule:
        parts: tuple[Leaf, Leaf] = (on(first), on(second))
        return {"and": all_of(*parts), "or": any_of(*parts), "not": all_of(parts[0], not_(parts[1]))}[shape]

    made = Recipe(
        "r",
        "priority",
        QUESTIONS,
        (),
        (),
        (
            decision("first", rule(shapes[0], names[0], names[1]), priority=2),
            decision("second", rule(shapes[1], names[2], names[3]), priority=1),
            decision("rest", all_of()),
        ),
    )
    compiled = prepare(made)
    reached = {result(decide(compiled, readings(full)))[0] for full in completions(known)}
    assert Outlook(compiled).can_still_be_selected(readings(known)) == reached
