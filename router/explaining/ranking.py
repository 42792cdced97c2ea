"""Why the decision that was selected was selected, and what would have been without it.

Both are found by deciding again: without the winner, or with the winner put at a disadvantage. So they cannot say
anything else than what the engine does, whatever it ranks by.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from router.config.plan import Decision, Recipe
from router.deciding.engine import Outcome, decide, prepare
from router.signals.reading import Reading

MOST_RANKED = 16
_LAST_NAME = "\U0010ffff"

Readings = Mapping[str, Reading]


class Because(StrEnum):
    """What put the winner before the next in rank, or why there is none."""

    ONLY_MATCH = "only_match"
    CATCH_ALL_LAST = "catch_all_last"
    TIER = "tier"
    PRIORITY = "priority"
    CONFIDENCE = "confidence"
    NAME = "name"
    NO_MATCH = "no_match"
    UNRESOLVED = "unresolved"


@dataclass(frozen=True, slots=True)
class Ranked:
    """One decision that would have been selected, were those before it not there. `confidence` is 0..1.

    `fails` means that without those before it the request would have failed, because `name` is unknown and could have
    changed what is selected.
    """

    name: str
    confidence: float | None
    fails: bool = False


@dataclass(frozen=True, slots=True)
class Choice:
    """What was selected and what else would have been, in order: the winner first. At most `MOST_RANKED` are told."""

    because: Because
    ranked: tuple[Ranked, ...]

    @property
    def otherwise(self) -> Ranked | None:
        """What would have been selected without the winner."""
        return self.ranked[1] if len(self.ranked) > 1 else None


def choice_of(recipe: Recipe, readings: Readings, outcome: Outcome) -> Choice:
    """Explain the selection of `outcome`, which `decide` made of these readings."""
    if outcome.failed:
        return Choice(Because.UNRESOLVED, tuple(Ranked(name, None, True) for name in outcome.failed))
    if outcome.selected is None:
        return Choice(Because.NO_MATCH, ())
    winner = outcome.selected
    ranked = [Ranked(winner.name, outcome.confidence)]
    rest, second = recipe, outcome
    runner_up: Decision | None = None
    while second.selected is not None and len(ranked) < MOST_RANKED:
        rest = _without(rest, second.selected)
        second = decide(prepare(rest), readings)
        ranked += [Ranked(name, None, True) for name in second.failed]
        if second.selected is not None:
            runner_up = runner_up or second.selected
            ranked.append(Ranked(second.selected.name, second.confidence))
    return Choice(_because(recipe, readings, winner, runner_up), tuple(ranked))


def _because(recipe: Recipe, readings: Readings, winner: Decision, second: Decision | None) -> Because:
    if second is None:
        return Because.ONLY_MATCH
    if second.catch_all and not winner.catch_all:
        return Because.CATCH_ALL_LAST
    if winner.tier != second.tier:
        return Because.TIER
    because = Because.NAME
    last = replace(winner, name=_LAST_NAME)
    if recipe.strategy == "confidence" and _wins(recipe, readings, winner, _behind(last, second)):
        because = Because.CONFIDENCE
    elif winner.priority != second.priority:
        because = Because.PRIORITY
    elif recipe.strategy == "priority" and _wins(recipe, readings, winner, last):
        because = Because.CONFIDENCE
    return because


def _behind(decision: Decision, other: Decision) -> Decision:
    return replace(decision, priority=min(decision.priority, other.priority) - 1)


def _wins(recipe: Recipe, readings: Readings, winner: Decision, handicapped: Decision) -> bool:
    """Whether the winner is still selected in the form `handicapped`."""
    decisions = tuple(handicapped if decision is winner else decision for decision in recipe.decisions)
    selected = decide(prepare(replace(recipe, decisions=decisions)), readings).selected
    return selected is not None and selected.name == handicapped.name


def _without(recipe: Recipe, gone: Decision) -> Recipe:
    return replace(recipe, decisions=tuple(decision for decision in recipe.decisions if decision is not gone))
