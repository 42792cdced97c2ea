"""Rules as functions: a decision's tree turned, once per recipe, into nested calls over one request's facts.

Sources: `reference.md` 3.1 (leaf evaluation), `rulings.md` 5.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from router.config.plan import Leaf, Operator, Rule
from router.deciding import kleene
from router.deciding.kleene import ScoreKind, Truth, Verdict
from router.questions import Predicate
from router.signals.reading import Measure, Reading
from router.signals.traits import Trait

_KINDS = {
    Measure.PROBABILITY: ScoreKind.PROBABILITY,
    Measure.SIMILARITY: ScoreKind.SIMILARITY,
    Measure.SHARE: ScoreKind.SHARE,
    None: None,
}


class Facts(NamedTuple):
    """What is known about one request: readings by rule name, and projection outputs by name."""

    readings: Mapping[str, Reading]
    outputs: Mapping[str, Verdict]


Test = Callable[[Facts], Verdict]


class Names(NamedTuple):
    """What a recipe's conditions can refer to. `defaults` are rules that a partition may make match by default."""

    rules: Mapping[str, Trait]
    outputs: Mapping[str, str]
    defaults: frozenset[str] = frozenset()


def compile_rule(rule: Rule, names: Names) -> Test:
    """The rule as a function of a request's facts. Raises ValueError for a reference that nothing defines."""
    if isinstance(rule, Leaf):
        return compile_leaf(rule, names)
    children = tuple(compile_rule(child, names) for child in rule.children)
    if rule.operator is Operator.NOT:
        (child,) = children
        return lambda facts: kleene.negated(child(facts))
    if rule.operator is Operator.AND:
        # Lazily: an AND looks no further than its first false.
        return lambda facts: kleene.every(child(facts) for child in children)
    return lambda facts: kleene.some([child(facts) for child in children])


def compile_leaf(leaf: Leaf, names: Names) -> Test:
    """One condition, with its own `on_error` applied to an unknown result before any operator sees it."""
    test = _projection_test(leaf, names) if leaf.family == "projection" else _signal_test(leaf, names)
    if leaf.on_error is None:
        return test
    instead = kleene.TRUE_ON_ERROR if leaf.on_error == "match" else kleene.FALSE_ON_ERROR

    def resolved(facts: Facts) -> Verdict:
        verdict = test(facts)
        return instead if verdict.truth is Truth.UNKNOWN else verdict

    return resolved


def possible_kinds(rule: Rule, names: Names) -> frozenset[ScoreKind | None]:
    """Everything that the confidence of a true result can turn out to measure (None: nothing)."""
    if isinstance(rule, Leaf):
        return _leaf_kinds(rule, names)
    children = [possible_kinds(child, names) for child in rule.children]
    if rule.operator is Operator.NOT or not children:
        return frozenset({None})
    if rule.operator is Operator.OR:
        return frozenset().union(*children)
    shared = frozenset.intersection(*children)
    # All children measuring one thing keep it; any other combination of theirs is unscored.
    return shared if all(child == shared and len(child) == 1 for child in children) else shared | {None}


def _leaf_kinds(leaf: Leaf, names: Names) -> frozenset[ScoreKind | None]:
    kinds: set[ScoreKind | None] = set()
    if leaf.family == "projection":
        kinds = {ScoreKind.DISTANCE, None}
    elif leaf.predicate is None:
        rule = names.rules[leaf.name]
        kinds = {_KINDS[rule.measure], None} if rule.by_policy else {_KINDS[rule.measure]}
    else:
        kinds = {None}
    if leaf.name in names.defaults:
        kinds.add(None)
    if leaf.on_error == "match":
        kinds.add(None)
    return frozenset(kinds)


def _projection_test(leaf: Leaf, names: Names) -> Test:
    name = leaf.name
    if name not in names.outputs:
        raise ValueError(f"a condition reads the projection output {name!r}, which no mapping of the recipe makes")
    if leaf.label is not None or leaf.predicate is not None:
        raise ValueError(f"a condition on the projection output {name!r} takes neither a label nor a predicate")
    return lambda facts: facts.outputs[name]


def _signal_test(leaf: Leaf, names: Names) -> Test:
    rule = names.rules.get(leaf.name)
    if rule is None:
        raise ValueError(f"a condition reads the rule {leaf.name!r}, which the recipe does not ask")
    if leaf.label is not None and not rule.labelled:
        raise ValueError(f"a condition gives a label to the rule {leaf.name!r}, whose question has none")
    if leaf.predicate is not None:
        return _value_test(leaf.name, leaf.label, leaf.predicate)
    return _match_test(leaf.name, leaf.label, _KINDS[rule.measure])


def _value_test(name: str, label: str | None, predicate: Predicate) -> Test:
    """A condition's own predicate reads the value and nothing else: neither the rule's predicate nor the selection."""
    holds = predicate.holds

    def test(facts: Facts) -> Verdict:
        reading = facts.readings.get(name)
        value = reading.value(label) if reading is not None else None
        if value is None:
            return kleene.UNKNOWN
        return kleene.TRUE_UNSCORED if holds(value) else kleene.FALSE

    return test


def _match_test(name: str, label: str | None, kind: ScoreKind | None) -> Test:
    def test(facts: Facts) -> Verdict:
        reading = facts.readings.get(name)
        matched = reading.matches(label) if reading is not None else None
        if reading is None or matched is None:
            return kleene.UNKNOWN
        if not matched:
            return kleene.FALSE
        confidence = reading.sureness(label)
        if confidence is None:
            return kleene.TRUE_UNSCORED
        return Verdict(Truth.TRUE, confidence, kind)

    return test
