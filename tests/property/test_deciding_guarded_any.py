"""Whatever the recipe and whatever stands in the windows: to stop reading early never changes what is decided."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from router.config.actions import Actions
from router.config.candidates import ModelRef
from router.config.guards import GuardRule
from router.config.plan import Decision, Leaf, Node, OnUnknown, Operator, Recipe, Rule, StateKind, leaves_of
from router.deciding.engine import decide, prepare
from router.deciding.guarded import Refusals
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
    UnknownReason,
)
from router.scan.evidence import Evidence
from router.scan.rules import WatchedRule
from router.signals.guards import read_guard
from router.signals.reading import Reading, read_all
from tests.support.recipes import question

LABELS = ("a", "b")
GUARDS = {
    "jailbreak:j": QuestionType.NOUL,
    "pii:p": QuestionType.SPAN,
    "s": QuestionType.SET,
}
ASKED = question("q", QuestionType.NOUL, predicate=Predicate(gte=0.5))
FAMILY = {"jailbreak:j": "jailbreak", "pii:p": "pii", "s": "systemone", "q": "systemone"}
VALUES = (0.1, 0.6, 0.95)

leaves = st.builds(
    lambda name, label, predicate: Leaf(FAMILY[name], name, label if name in ("pii:p", "s") else None, predicate),
    st.sampled_from([*GUARDS, "q"]),
    st.sampled_from([None, *LABELS]),
    st.sampled_from([None, None, Predicate(gte=0.9), Predicate(lt=0.7)]),
)
trees = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.builds(lambda rules: Node(Operator.AND, tuple(rules)), st.lists(inner, min_size=1, max_size=2)),
        st.builds(lambda rules: Node(Operator.OR, tuple(rules)), st.lists(inner, min_size=1, max_size=2)),
        st.builds(lambda rule: Node(Operator.NOT, (rule,)), inner),
    ),
    max_leaves=3,
)
policies: st.SearchStrategy[OnUnknown] = st.sampled_from(("no_match", "match", "fail_request"))


@st.composite
def recipes(draw: st.DrawFn) -> Recipe:
    decisions: list[Decision] = []
    for number, rule in enumerate(draw(st.lists(trees, min_size=1, max_size=3))):
        answers = draw(st.booleans())
        decisions.append(
            Decision(
                name=f"d{number}",
                priority=draw(st.integers(0, 2)),
                tier=draw(st.integers(0, 1)),
                rule=rule,
                on_unknown=draw(policies),
                model_refs=() if answers else (ModelRef("m"),),
                order=number,
                actions=Actions(fast_response="No.") if answers else Actions(),
            )
        )
    strategy: Any = draw(st.sampled_from(["priority", "confidence"]))
    return Recipe(
        "r", strategy, (ASKED,), (), (), tuple(decisions), guards=guards_of([each.rule for each in decisions])
    )


def guards_of(rules: list[Rule]) -> tuple[GuardRule, ...]:
    read = {leaf.name for rule in rules for leaf in leaves_of(rule) if leaf.label or leaf.predicate}
    return tuple(
        GuardRule(
            name=name,
            family=FAMILY[name],
            deployment="d",
            question=Question(kind, "?", () if kind is QuestionType.NOUL else tuple(map(Option, LABELS))),
            state=StateKind.FRESH,
            predicate=Predicate(gte=0.5) if kind is QuestionType.NOUL else None,
            threshold=0.5,
            whole=name in read,
        )
        for name, kind in GUARDS.items()
    )


probabilities = st.sampled_from(VALUES)


@st.composite
def windows(draw: st.DrawFn) -> Mapping[str, Answer]:
    found = {label: draw(probabilities) for label in LABELS}
    selected = frozenset(label for label, value in found.items() if value >= 0.5)
    spans = tuple(Span(label, 0, 1, found[label]) for label in sorted(selected) if draw(st.booleans()))
    return {
        "jailbreak:j": NoulAnswer(draw(probabilities)),
        "pii:p": SpanAnswer(spans, max(found.values())),
        "s": SetAnswer(selected, found),
    }


def answers(evidence: Mapping[str, Evidence]) -> dict[str, Answer]:
    return {name: each.answer for name, each in evidence.items() if each.answer is not None}


def told(guard: GuardRule) -> WatchedRule:
    return WatchedRule(guard.name, guard.predicate, guard.labels, guard.threshold, whole=guard.whole)


@settings(max_examples=400, deadline=None)
@given(recipes(), st.lists(windows(), min_size=1, max_size=4), probabilities, st.booleans())
def test_an_early_end_decides_as_reading_on_would(
    made: Recipe, seen: list[Mapping[str, Answer]], asked: float, known: bool
) -> None:
    compiled, refusals = prepare(made), Refusals(prepare(made))
    evidence = {guard.name: Evidence(guard.question.type) for guard in made.guards}
    matched: set[str] = set()
    routing = read_all([ASKED], {"q": NoulAnswer(asked)})
    stopped: list[str | None] = []
    for window in seen:
        for guard in made.guards:
            answer: Any = window[guard.name]
            evidence[guard.name].add(answer, lambda start, end: (start, end))
            if told(guard).matches(answer):
                matched.add(guard.name)
        found = answers({name: evidence[name] for name in matched})
        if any(refusals.settled(name, found, routing if known else {}) for name in matched):
            stopped.append(_selected(compiled, made, found, routing if known else read_all([ASKED], {})))
    whole = answers(evidence)
    last = _selected(compiled, made, whole, routing)
    for early in stopped:
        assert early == last
        assert next(each for each in made.decisions if each.name == last).refuses


def _selected(compiled: Any, made: Recipe, found: Mapping[str, Answer], routing: Mapping[str, Reading]) -> str | None:
    readings = dict(routing)
    for guard in made.guards:
        if guard.name in found:
            readings[guard.name] = read_guard(guard, found[guard.name])
        else:
            readings[guard.name] = Reading(guard.question.type, None, reason=UnknownReason.NOT_ASKED)
    outcome = decide(compiled, readings)
    return None if outcome.failed or outcome.selected is None else outcome.selected.name


def test_the_property_is_about_something() -> None:
    """A label that refuses ends the reading at once; one that another decision waits for does not."""
    refuse = Decision("no", 1, 0, Leaf("pii", "pii:p", "a"), "no_match", (), 0, Actions(fast_response="No."))
    above = Decision("other", 2, 0, Leaf("pii", "pii:p", "b"), "no_match", (ModelRef("m"),), 1)
    spans = {"pii:p": SpanAnswer((Span("a", 0, 1, 0.9),), 0.9)}
    for decisions, settled in (((refuse,), True), ((refuse, above), False)):
        made = Recipe("r", "priority", (), (), (), decisions, guards=guards_of([each.rule for each in decisions]))
        made = replace(made, guards=tuple(guard for guard in made.guards if guard.name == "pii:p"))
        assert Refusals(prepare(made)).settled("pii:p", spans, {}) is settled
