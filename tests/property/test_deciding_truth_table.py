"""Every rule to depth 3 over three conditions that are true, false or unknown, against a naive evaluator."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from hypothesis import given, settings
from hypothesis import strategies as st

from router.config.plan import Leaf, Operator, Rule
from router.deciding.compiling import Facts, Names, compile_rule
from router.deciding.kleene import Truth
from router.questions import Answer, NoulAnswer
from router.signals.reading import Reading, read_all
from router.signals.traits import Trait, trait_of
from tests.support.recipes import LATE, all_of, any_of, not_, nouls, on

RULES = nouls("a", "b", "c")
NAMES = Names({rule.name: trait_of(rule) for rule in RULES}, {})
VALUES: dict[Truth, Answer] = {Truth.TRUE: NoulAnswer(0.9), Truth.FALSE: NoulAnswer(0.1), Truth.UNKNOWN: LATE}
CASES = [dict(zip("abc", truths, strict=True)) for truths in itertools.product(Truth, repeat=3)]
ORDER = {Truth.FALSE: 0, Truth.UNKNOWN: 1, Truth.TRUE: 2}
TRUTHS = {number: truth for truth, number in ORDER.items()}


def naive(rule: Rule, case: dict[str, Truth]) -> Truth:
    """Łukasiewicz's and Kleene's tables as arithmetic: NOT mirrors, AND is the least, OR the greatest."""
    if isinstance(rule, Leaf):
        return case[rule.name]
    numbers = [ORDER[naive(child, case)] for child in rule.children]
    if rule.operator is Operator.NOT:
        return TRUTHS[2 - numbers[0]]
    if rule.operator is Operator.AND:
        return TRUTHS[min(numbers, default=2)]
    return TRUTHS[max(numbers, default=0)]


def grown(smaller: list[Rule]) -> Iterator[Rule]:
    yield from (not_(child) for child in smaller)
    for combine in (all_of, any_of):
        for pair in itertools.combinations_with_replacement(smaller, 2):
            yield combine(*pair)


def trees() -> list[Rule]:
    """All trees of depth 1 and 2, and of depth 3 with each combination of a condition and a tree of depth 2."""
    leaves: list[Rule] = [on(name) for name in "abc"]
    second = list(grown(leaves))
    third = [not_(child) for child in second]
    third += [combine(leaf, child) for combine in (all_of, any_of) for leaf in leaves for child in second]
    return [*leaves, *second, *third, all_of(), all_of(*leaves), any_of(*leaves)]


def facts_of(case: dict[str, Truth]) -> Facts:
    readings: dict[str, Reading] = read_all(RULES, {name: VALUES[truth] for name, truth in case.items()})
    return Facts(readings, {})


def test_the_truth_table_to_depth_three() -> None:
    known = [(case, facts_of(case)) for case in CASES]
    checked = 0
    for rule in trees():
        test = compile_rule(rule, NAMES)
        for case, facts in known:
            assert test(facts).truth is naive(rule, case), (rule, case)
            checked += 1
    assert checked > 3_000


LEAVES: st.SearchStrategy[Rule] = st.sampled_from([on(name) for name in "abc"])


def _nodes(children: st.SearchStrategy[Rule]) -> st.SearchStrategy[Rule]:
    several = st.lists(children, max_size=4).map(tuple)
    return st.one_of(
        several.map(lambda rules: all_of(*rules)), several.map(lambda rules: any_of(*rules)), children.map(not_)
    )


@settings(max_examples=200, deadline=None)
@given(st.recursive(LEAVES, _nodes, max_leaves=12), st.sampled_from(CASES))
def test_any_tree_agrees_with_the_naive_evaluator(rule: Rule, case: dict[str, Truth]) -> None:
    assert compile_rule(rule, NAMES)(facts_of(case)).truth is naive(rule, case)


def test_a_rule_of_any_family_is_a_condition() -> None:
    names = Names({"keyword:k": Trait(False, None, 1.0)}, {})
    leaf = Leaf("keyword", "keyword:k")
    for matched, truth in ((True, Truth.TRUE), (False, Truth.FALSE), (None, Truth.UNKNOWN)):
        verdict = compile_rule(leaf, names)(Facts({"keyword:k": Reading(None, matched)}, {}))
        assert verdict.truth is truth
        assert not verdict.scored
