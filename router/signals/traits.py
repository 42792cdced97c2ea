"""What conditions and projections can expect of a rule's readings, whichever family it is of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from router.config.guards import GuardRule
from router.config.heuristics import EventRule, HeuristicRule, LanguageRule, highest_value
from router.config.plan import QuestionRule
from router.questions import QuestionType
from router.signals.reading import Measure, highest_level

_LABELLED: Final = frozenset({QuestionType.CHOICE, QuestionType.SET, QuestionType.SPAN})


@dataclass(frozen=True, slots=True)
class Trait:
    """Whether a rule has labels, what the confidence of its match measures (None: nothing), and its highest value.

    The lowest value is 0 for all rules. `by_policy`: it can also match without a measurement, because a policy says so.
    """

    labelled: bool
    measure: Measure | None
    highest: float
    by_policy: bool = False


def trait_of(rule: QuestionRule | HeuristicRule | GuardRule) -> Trait:
    """The trait of a rule."""
    if isinstance(rule, GuardRule):
        return Trait(rule.labelled, Measure.PROBABILITY, 1.0, by_policy="match" in (rule.on_unknown, rule.on_unscanned))
    if isinstance(rule, QuestionRule):
        kind = rule.question.type
        if kind is QuestionType.SCORE:
            return Trait(False, None, highest_level(rule.question))
        measured = Measure.SIMILARITY if kind is QuestionType.SIMILARITY else Measure.PROBABILITY
        return Trait(kind in _LABELLED, measured, 1.0)
    measure = Measure.PROBABILITY if isinstance(rule, LanguageRule) else None
    return Trait(False, Measure.SHARE if isinstance(rule, EventRule) else measure, highest_value(rule))
