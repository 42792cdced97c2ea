"""What conditions and projections can expect of a rule's readings, whichever family it is of."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from router.config.heuristics import AuthzRule, EventRule, HeuristicRule, LanguageRule, MetadataRule
from router.config.plan import QuestionRule
from router.questions import QuestionType
from router.signals.reading import Measure, highest_level

_LABELLED: Final = frozenset({QuestionType.CHOICE, QuestionType.SET, QuestionType.SPAN})


@dataclass(frozen=True, slots=True)
class Trait:
    """Whether a rule has labels, what the confidence of its match measures (None: nothing), and its highest value.

    The lowest value is 0 for all rules.
    """

    labelled: bool
    measure: Measure | None
    highest: float


def trait_of(rule: QuestionRule | HeuristicRule) -> Trait:
    """The trait of a rule."""
    if isinstance(rule, QuestionRule):
        kind = rule.question.type
        if kind is QuestionType.SCORE:
            return Trait(False, None, highest_level(rule.question))
        return Trait(kind in _LABELLED, Measure.PROBABILITY, 1.0)
    match rule:
        case LanguageRule():
            return Trait(False, Measure.PROBABILITY, 1.0)
        case EventRule():
            return Trait(False, Measure.SHARE, float(rule.criteria))
        case MetadataRule() | AuthzRule():
            return Trait(False, None, 1.0)
        case _:
            return Trait(False, None, math.inf)
