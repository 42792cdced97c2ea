"""Which of several matching decisions is selected.

Catch-alls come last. Before that a lower tier wins outright; inside a tier the strategy says whether priority or
confidence is asked first, and the name settles what is left, so that the order never depends on the document's. One
tier's confidences are compared only if every real match in it measured one, and all measured the same kind of thing.

Sources: `rulings.md` 9, `reference.md` 3.5.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from router.config.plan import Decision
from router.deciding.kleene import ScoreKind, Verdict

Strategy = Literal["priority", "confidence"]


class Match(NamedTuple):
    """A decision that matches, with the verdict of its rule (or of its policy)."""

    decision: Decision
    verdict: Verdict
    catch_all: bool


def best(matches: Sequence[Match], strategy: Strategy) -> Match | None:
    """The match that ranks first; None when there is none."""
    if len(matches) < 2:
        return matches[0] if matches else None
    tiers = _comparable_tiers(matches)

    def rank(match: Match) -> tuple[bool, int, float, float, str]:
        decision = match.decision
        confidence = match.verdict.confidence if decision.tier in tiers else 0.0
        first, second = float(-decision.priority), -confidence
        if strategy == "confidence":
            first, second = second, first
        return match.catch_all, decision.tier, first, second, decision.name

    return min(matches, key=rank)


def _comparable_tiers(matches: Sequence[Match]) -> set[int]:
    kinds: dict[int, set[ScoreKind | None]] = {}
    for match in matches:
        if not match.catch_all:
            kinds.setdefault(match.decision.tier, set()).add(match.verdict.kind)
    return {tier for tier, found in kinds.items() if len(found) == 1 and None not in found}
