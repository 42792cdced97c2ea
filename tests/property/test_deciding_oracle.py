"""The engine against slow, obvious oracles."""

from __future__ import annotations

import functools
import itertools

from hypothesis import given, settings
from hypothesis import strategies as st

from router.config.plan import Decision, Leaf, Node, Operator, Recipe, Rule
from router.deciding.engine import decide, prepare
from router.deciding.kleene import Truth
from router.questions import Predicate, QuestionType
from router.signals.reading import Reading
from tests.support.recipes import all_of, any_of, decision, not_, nouls, on, readings, recipe

NAMES = ("a", "b", "c", "d")
FULL = 4

LEAVES: st.SearchStrategy[Rule] = st.builds(
    on,
    st.sampled_from(NAMES),
    st.none(),
    st.sampled_from([None, None, Predicate(gte=0.4, lt=0.8)]),
    st.sampled_from([None, None, None, "match", "no_match"]),
)


def _grow(children: st.SearchStrategy[Rule]) -> st.SearchStrategy[Rule]:
    several = st.lists(children, min_size=0, max_size=3).map(tuple)
    return st.one_of(
        several.map(lambda rules: all_of(*rules)), several.map(lambda rules: any_of(*rules)), children.map(not_)
    )


RULES: st.SearchStrategy[Rule] = st.recursive(LEAVES, _grow, max_leaves=6)
PLAIN: st.SearchStrategy[Rule] = st.recursive(st.builds(on, st.sampled_from(NAMES)), _grow, max_leaves=6)
PROBABILITIES = st.sampled_from([0.0, 0.2, 0.5, 0.7, 0.9, 1.0])
ANSWERS = st.dictionaries(st.sampled_from(NAMES), PROBABILITIES, max_size=FULL)
ALL_ANSWERS = st.fixed_dictionaries({name: PROBABILITIES for name in NAMES})
STRATEGIES = st.sampled_from(["priority", "confidence"])


def _truth(rule: Rule, seen: dict[str, float], guess: dict[int, bool]) -> bool:
    """Two-valued evaluation, where every unknown leaf takes the value that `guess` has for it."""
    if isinstance(rule, Leaf):
        if rule.name in seen:
            return (rule.predicate or Predicate(gte=0.5)).holds(seen[rule.name])
        return rule.on_error == "match" if rule.on_error else guess[id(rule)]
    values = [_truth(child, seen, guess) for child in rule.children]
    if rule.operator is Operator.NOT:
        return not values[0]
    return all(values) if rule.operator is Operator.AND else any(values)


def _open_leaves(rule: Rule, seen: dict[str, float]) -> set[int]:
    if isinstance(rule, Leaf):
        return {id(rule)} if rule.name not in seen and rule.on_error is None else set()
    return set().union(*(_open_leaves(child, seen) for child in rule.children)) if rule.children else set()


def _evaluate(rule: Rule, seen: dict[str, float]) -> Truth:
    made = recipe(nouls(*NAMES), decision("d", rule))
    return decide(prepare(made), readings(made, dict(seen)), trace=True).traces[0].truth


@settings(max_examples=300, deadline=None)
@given(RULES, ANSWERS)
def test_what_is_known_holds_in_every_completion(rule: Rule, seen: dict[str, float]) -> None:
    truth = _evaluate(rule, seen)
    leaves = sorted(_open_leaves(rule, seen))
    completions = {
        _truth(rule, seen, dict(zip(leaves, values, strict=True)))
        for values in itertools.product([True, False], repeat=len(leaves))
    }
    if truth is not Truth.UNKNOWN:
        assert completions == {truth is Truth.TRUE}
    if not leaves:
        assert truth is not Truth.UNKNOWN


@settings(max_examples=150, deadline=None)
@given(RULES, RULES, ANSWERS)
def test_de_morgan_and_double_negation(left: Rule, right: Rule, seen: dict[str, float]) -> None:
    assert _evaluate(not_(not_(left)), seen) is _evaluate(left, seen)
    assert _evaluate(not_(all_of(left, right)), seen) is _evaluate(any_of(not_(left), not_(right)), seen)
    assert _evaluate(not_(any_of(left, right)), seen) is _evaluate(all_of(not_(left), not_(right)), seen)


@settings(max_examples=150, deadline=None)
@given(RULES, ANSWERS)
def test_the_trace_tells_what_the_engine_did(rule: Rule, seen: dict[str, float]) -> None:
    made = recipe(nouls(*NAMES), decision("d", rule))
    trace = decide(prepare(made), readings(made, dict(seen)), trace=True).traces[0]
    assert trace.root.truth is trace.truth
    assert trace.root.confidence == trace.confidence


@st.composite
def _decisions(draw: st.DrawFn, rules: st.SearchStrategy[Rule] = PLAIN) -> tuple[Decision, ...]:
    count = draw(st.integers(1, 5))
    names = draw(st.permutations("vwxyz"))
    return tuple(
        decision(names[i], draw(rules), draw(st.integers(0, 2)), draw(st.sampled_from([0, 0, 1, 2])))
        for i in range(count)
    )


def _confidence(rule: Rule, seen: dict[str, float]) -> tuple[float, bool] | None:
    """Confidence and whether it is a measurement, None when false; all answers known, no predicates."""
    if isinstance(rule, Leaf):
        return (seen[rule.name], True) if seen[rule.name] >= 0.5 else None
    parts = [_confidence(child, seen) for child in rule.children]
    if rule.operator is Operator.NOT:
        return (1.0, False) if parts[0] is None else None
    found = [part for part in parts if part is not None]
    if rule.operator is Operator.OR:
        return max(found, default=None)
    if len(found) < len(parts):
        return None
    if not found:
        return 0.0, False
    return sum(part[0] for part in found) / len(found), all(part[1] for part in found)


def _naive(decisions: tuple[Decision, ...], seen: dict[str, float], strategy: str) -> str | None:
    matching = [(one, found) for one in decisions if (found := _confidence(one.rule, seen)) is not None]

    def compare(left: tuple[Decision, tuple[float, bool]], right: tuple[Decision, tuple[float, bool]]) -> int:
        (a, (sure_a, _)), (b, (sure_b, _)) = left, right
        if a.catch_all != b.catch_all:
            return 1 if a.catch_all else -1
        if a.tier != b.tier:
            return a.tier - b.tier
        pool = [found for one, found in matching if one.tier == a.tier and not one.catch_all]
        by_confidence = 0.0 if not all(scored for _, scored in pool) or a.catch_all else sure_b - sure_a
        by_priority = float(b.priority - a.priority)
        order = [by_priority, by_confidence] if strategy == "priority" else [by_confidence, by_priority]
        for step in order:
            if step:
                return 1 if step > 0 else -1
        return -1 if a.name < b.name else 1

    ranked = sorted(matching, key=functools.cmp_to_key(compare))
    return ranked[0][0].name if ranked else None


@settings(max_examples=300, deadline=None)
@given(_decisions(), ALL_ANSWERS, STRATEGIES, st.randoms(use_true_random=False))
def test_selection_equals_a_naive_sort_in_any_document_order(
    decisions: tuple[Decision, ...], seen: dict[str, float], strategy: str, random: object
) -> None:
    expected = _naive(decisions, seen, strategy)
    for shuffled in (decisions, tuple(reversed(decisions))):
        made = recipe(nouls(*NAMES), *shuffled, strategy=strategy)  # type: ignore[arg-type]
        compiled, read = prepare(made), readings(made, dict(seen))
        first = decide(compiled, read)
        assert (first.selected.name if first.selected else None) == expected
        assert decide(compiled, read) == first


@settings(max_examples=150, deadline=None)
@given(st.lists(PLAIN, min_size=1, max_size=4), ANSWERS)
def test_a_request_that_is_not_failed_goes_where_full_answers_would_send_it(
    rules: list[Rule], seen: dict[str, float]
) -> None:
    # Distinct priorities: confidences, which open branches of a true OR could still move, then rank nothing.
    decisions = [decision(f"d{i}", rule, priority=i, on_unknown="fail_request") for i, rule in enumerate(rules)]
    made = recipe(nouls(*NAMES), *decisions)
    compiled = prepare(made)
    result = decide(compiled, readings(made, dict(seen)))
    missing = [name for name in NAMES if name not in seen]
    reached = {
        _selected(compiled.recipe, seen | dict(zip(missing, values, strict=True)))
        for values in itertools.product([0.1, 0.9], repeat=len(missing))
    }
    if not result.failed:
        assert reached == {result.selected.name if result.selected else None}
    else:
        assert result.selected is None


def _selected(made: Recipe, seen: dict[str, float]) -> str | None:
    chosen = decide(prepare(made), readings(made, dict(seen))).selected
    return chosen.name if chosen else None


@settings(max_examples=100, deadline=None)
@given(RULES)
def test_without_any_reading_nothing_raises(rule: Rule) -> None:
    made = recipe(nouls(*NAMES), decision("d", rule, on_unknown="match"))
    empty: dict[str, Reading] = {}
    silent = decide(prepare(made), empty)
    late = decide(prepare(made), readings(made, {}))
    assert (silent.selected, silent.applied) == (late.selected, late.applied)


def test_the_oracle_knows_what_a_node_is() -> None:
    assert isinstance(all_of(), Node)
    assert nouls("a")[0].question.type is QuestionType.NOUL
