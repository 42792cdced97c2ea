"""Why a decision matched or not: its rule as a tree of truths, for previews, replays and `explain`.

A trace is made from the same conditions and operators as the decision itself, and only when somebody asks. It holds
names, numbers and reasons, never request text.

Sources: `reference.md` 7.5 (evaluation trace).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from router.config.plan import Leaf, OnUnknown, Operator, Rule
from router.deciding import kleene
from router.deciding.compiling import Facts, Names, compile_leaf
from router.deciding.kleene import Truth, Verdict
from router.deciding.projections import Range
from router.questions import UnknownReason


@dataclass(frozen=True, slots=True)
class TraceNode:
    """One node of a rule: an operator over `children`, or a condition on a rule or projection output.

    `node` is AND, OR, NOT, or the family of what a condition reads, and `name` its key.
    `value` is the number that a condition read (None: unknown, or it reads none); `reason` says why it is unknown.
    `on_error` marks a truth that a condition's policy stands for.
    """

    node: str
    truth: Truth
    confidence: float
    scored: bool
    on_error: bool
    name: str | None = None
    label: str | None = None
    value: float | None = None
    reason: UnknownReason | None = None
    children: tuple[TraceNode, ...] = ()


@dataclass(frozen=True, slots=True)
class DecisionTrace:
    """One decision: the truth of its rule, what its policy made of an unknown, and whether it was selected.

    `policy` is the `on_unknown` that was applied, None when the rule was known. `fails` is true when the request fails
    because this decision's unknown could still change which decision is selected.
    """

    decision: str
    truth: Truth
    matched: bool
    confidence: float
    policy: OnUnknown | None
    fails: bool
    selected: bool
    root: TraceNode


def trace_rule(rule: Rule, facts: Facts, names: Names, scores: Mapping[str, Range]) -> TraceNode:
    """The rule's tree with the truth of every node, including those that evaluation skips."""
    return _trace(rule, facts, names, scores)[0]


def _trace(rule: Rule, facts: Facts, names: Names, scores: Mapping[str, Range]) -> tuple[TraceNode, Verdict]:
    if isinstance(rule, Leaf):
        return _trace_leaf(rule, facts, names, scores)
    parts = [_trace(child, facts, names, scores) for child in rule.children]
    verdicts = [verdict for _, verdict in parts]
    if rule.operator is Operator.NOT:
        verdict = kleene.negated(verdicts[0])
    else:
        verdict = kleene.every(verdicts) if rule.operator is Operator.AND else kleene.some(verdicts)
    children = tuple(node for node, _ in parts)
    node = TraceNode(
        rule.operator.value, verdict.truth, verdict.confidence, verdict.scored, verdict.on_error, children=children
    )
    return node, verdict


def _trace_leaf(leaf: Leaf, facts: Facts, names: Names, scores: Mapping[str, Range]) -> tuple[TraceNode, Verdict]:
    verdict = compile_leaf(leaf, names)(facts)
    value: float | None = None
    reason: UnknownReason | None = None
    if leaf.family == "projection":
        score = scores[names.outputs[leaf.name]]
        value = score.low if score.known else None
    else:
        reading = facts.readings.get(leaf.name)
        value = reading.value(leaf.label) if reading is not None else None
        if reading is None:
            reason = UnknownReason.NOT_ASKED
        elif verdict.truth is Truth.UNKNOWN or verdict.on_error:
            # A known reading that lacks this one label is an answer that does not fit its question.
            reason = reading.reason or UnknownReason.INVALID_ANSWER
    node = TraceNode(
        leaf.family,
        verdict.truth,
        verdict.confidence,
        verdict.scored,
        verdict.on_error,
        leaf.name,
        leaf.label,
        value,
        reason,
    )
    return node, verdict
