"""What is found in an input means to routing: guard rules as conditions and projections read them.

A guard matches on evidence, by a policy, or not at all. A policy's match counts for every label and as the value 1, so
that no condition, whatever it asks of the rule, lets through what the policy refuses; it carries no confidence.

Sources: `rulings.md` 6, "Long inputs" (Coverage and failures), `reference.md` 4.1, 4.2.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from router.config.guards import GuardPolicy, GuardRule, Hazard
from router.config.plan import QuestionRule
from router.questions import Answer, SetAnswer, SpanAnswer, Unknown, UnknownReason
from router.signals.reading import Reading, bounded, read

_HAZARD: Final = "#hazard"


def hazard_key(rule: str) -> str:
    """What stands for the second question of the rule of this key wherever questions are told apart by rule."""
    return rule + _HAZARD


def rule_of(key: str) -> str:
    """The key of the rule that a question is of."""
    return key.removesuffix(_HAZARD)


def read_guard(rule: GuardRule, answer: Answer, hazard: Answer | None = None) -> Reading:
    """What the windows that were read say together, however many they were. Never raises.

    `hazard` answers the rule's second question, where it has one; what is safe needs no kinds to be known. An unknown
    answer, and one that contradicts its question, is an unknown reading. Values are those of any other rule of the
    question's type, except that those of `pii` leave out allowed types: each label's and the rule's own are that of the
    best span that counts, 0 where none does.
    """
    if rule.family == "pii" and isinstance(answer, SpanAnswer):
        return _read_pii(rule, answer)
    reading = read(QuestionRule(rule.name, rule.deployment, rule.question, rule.state, rule.predicate, 0), answer)
    if rule.hazard is None or reading.matched is None:
        return reading
    return _read_hazard(rule.hazard, reading, hazard)


def certain(rule: GuardRule) -> Reading:
    """A match of the rule with every label."""
    labels = dict.fromkeys(rule.counted, 1.0)
    return Reading(rule.question.type, True, 1.0, {**labels, "": 1.0}, labels)


def by_policy(rule: GuardRule, policy: GuardPolicy) -> Reading:
    """The reading that a policy stands for where there is no evidence. A match of it is no detection."""
    return Reading(rule.question.type, policy == "match", by_policy=True)


def policies(rules: tuple[GuardRule, ...]) -> Mapping[str, Reading]:
    """What an unknown of each rule with an `on_unknown` of its own counts as, by the rule's key."""
    return {rule.name: by_policy(rule, rule.on_unknown) for rule in rules if rule.on_unknown is not None}


def _read_hazard(about: Hazard, unsafe: Reading, answer: Answer | None) -> Reading:
    """Safety by kinds of harm: unsafe, and one of the kinds."""
    kinds = _kinds(about, answer) if isinstance(answer, SetAnswer) else None
    if kinds:
        matched = {label: value for label, value in kinds.items() if unsafe.matched and value >= about.threshold}
        values = {**kinds, **unsafe.values}
        return Reading(unsafe.type, bool(matched), max(matched.values(), default=None), values, matched)
    if not unsafe.matched:
        return unsafe
    reason = answer.reason if isinstance(answer, Unknown) else UnknownReason.INVALID_ANSWER
    return Reading(unsafe.type, None, reason=reason)


def _kinds(about: Hazard, answer: SetAnswer) -> dict[str, float] | None:
    """How probable each kind is that counts; None when one is no probability."""
    kinds: dict[str, float] = {}
    for label in about.labels & answer.probabilities.keys():
        value = bounded(answer.probabilities[label], 1.0)
        if value is None:
            return None
        kinds[label] = value
    return kinds


def _read_pii(rule: GuardRule, answer: SpanAnswer) -> Reading:
    best: dict[str, float] = {}
    for span in answer.spans:
        probability = bounded(span.probability, 1.0)
        if probability is None:
            return Reading(rule.question.type, None, reason=UnknownReason.INVALID_ANSWER)
        if span.label not in rule.allowed:
            best[span.label] = max(probability, best.get(span.label, 0.0))
    top = max(best.values(), default=None)
    values = {**dict.fromkeys(rule.counted, 0.0), **best, "": top or 0.0}
    return Reading(rule.question.type, bool(best), top, values, best)
