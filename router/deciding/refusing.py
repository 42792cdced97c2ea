"""Whether a match of one rule refuses a request, whatever the rules that are not known yet turn out to be.

A scan that has found something asks this in order to stop, and an overload in order to know what is at stake.

Source: `reference.md` 3.6.
"""

from __future__ import annotations

from router.config.guards import GuardRule
from router.config.plan import QuestionRule
from router.deciding.engine import CompiledRecipe, Readings
from router.deciding.possible import Outlook
from router.questions import QuestionType
from router.signals.guards import certain
from router.signals.reading import Reading


def match_alone_refuses(
    compiled: CompiledRecipe, readings: Readings, rule: str, outlook: Outlook | None = None
) -> bool:
    """Whether a match of the rule of this key settles that a decision that answers by itself is selected.

    `readings` are those known so far. The rule's own is taken from them when it is a match; else a certain match is
    supposed, of every label. Rules without a reading may turn out anything. `outlook`: the recipe's, if it is at hand.
    """
    found = (outlook or Outlook(compiled)).contenders(_supposing(compiled, readings, rule))
    return len(found) == 1 and found[0][1] and found[0][0].refuses


def could_refuse(compiled: CompiledRecipe, readings: Readings, rule: str) -> bool:
    """Whether a decision that answers by itself could be selected if the rule of this key matched."""
    supposed = _supposing(compiled, readings, rule)
    possible = Outlook(compiled).can_still_be_selected(supposed)
    return any(decision.refuses and decision.name in possible for decision in compiled.recipe.decisions)


def _supposing(compiled: CompiledRecipe, readings: Readings, key: str) -> Readings:
    known = readings.get(key)
    if known is not None and known.matched:
        return readings
    (rule,) = (rule for rule in compiled.recipe.rules if rule.name == key)
    if isinstance(rule, GuardRule):
        return {**readings, key: certain(rule)}
    if not isinstance(rule, QuestionRule):
        return {**readings, key: Reading(None, True, None, {"": 1.0})}
    kind = rule.question.type
    labels = dict.fromkeys((option.key for option in rule.question.options), 1.0)
    if kind is QuestionType.SCORE:
        return {**readings, key: Reading(kind, True, None, {"": float(max(len(labels) - 1, 1))})}
    own = {} if kind in (QuestionType.NOUL, QuestionType.SIMILARITY) else labels
    return {**readings, key: Reading(kind, True, 1.0, {**own, "": 1.0}, own)}
