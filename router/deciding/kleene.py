"""Three-valued logic with confidences: what NOT, AND and OR make of true, false and unknown.

Unknown is not false. A combination is true or false only if it would be so whatever the unknown parts turned out to be.

Sources: `reference.md` 3.2 (Kleene combination).
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Final, NamedTuple


class Truth(StrEnum):
    """A three-valued truth."""

    TRUE = "true"
    FALSE = "false"
    UNKNOWN = "unknown"


class ScoreKind(StrEnum):
    """What a confidence measures. Confidences of different kinds are different quantities and are never compared."""

    PROBABILITY = "probability"
    DISTANCE = "distance"
    """How far inside a projection's band its score lies, squashed to 0..1."""
    SIMILARITY = "similarity"
    """How alike a text is to the candidates of an embedding rule."""
    SHARE = "share"
    """How many of an event's criteria were found."""


class Verdict(NamedTuple):
    """The truth of a condition or rule, and how sure a true one is (0..1).

    `kind` is None when the confidence is not a measurement ("unscored"), like the 1.0 of a negation. `on_error` marks a
    result that a condition's `on_error` policy stands for, not evidence.
    """

    truth: Truth
    confidence: float = 0.0
    kind: ScoreKind | None = None
    on_error: bool = False

    @property
    def scored(self) -> bool:
        """Whether the confidence is a measurement."""
        return self.kind is not None


FALSE: Final = Verdict(Truth.FALSE)
UNKNOWN: Final = Verdict(Truth.UNKNOWN)
TRUE_UNSCORED: Final = Verdict(Truth.TRUE, 1.0)
TRUE_ON_ERROR: Final = Verdict(Truth.TRUE, 1.0, on_error=True)
FALSE_ON_ERROR: Final = Verdict(Truth.FALSE, on_error=True)
TRUE_OF_NOTHING: Final = Verdict(Truth.TRUE, 0.0)


def negated(verdict: Verdict) -> Verdict:
    """NOT. A true negation is certain (1.0) and unscored: no model measured it."""
    if verdict.truth is Truth.UNKNOWN:
        return UNKNOWN
    if verdict.truth is Truth.TRUE:
        return FALSE_ON_ERROR if verdict.on_error else FALSE
    return TRUE_ON_ERROR if verdict.on_error else TRUE_UNSCORED


def every(verdicts: Iterable[Verdict]) -> Verdict:
    """AND: the mean of the parts' confidences, scored when all parts are and measure one thing. Of nothing: true, 0.

    Stops at the first false that is evidence; a false that a policy stands for waits, because evidence outranks it.
    """
    total, count = 0.0, 0
    kind: ScoreKind | None = None
    on_error = unknown = refused = False
    for verdict in verdicts:
        if verdict.truth is Truth.FALSE:
            if not verdict.on_error:
                return FALSE
            refused = True
        elif verdict.truth is Truth.UNKNOWN:
            unknown = True
        else:
            kind = verdict.kind if count == 0 or verdict.kind is kind else None
            total += verdict.confidence
            count += 1
            on_error = on_error or verdict.on_error
    if refused:
        return FALSE_ON_ERROR
    if unknown:
        return UNKNOWN
    return Verdict(Truth.TRUE, total / count, kind, on_error) if count else TRUE_OF_NOTHING


def some(verdicts: Iterable[Verdict]) -> Verdict:
    """OR: the best true part, where evidence beats a policy's match, then the higher confidence. Of nothing: false."""
    best: Verdict | None = None
    on_error = unknown = False
    for verdict in verdicts:
        if verdict.truth is Truth.TRUE:
            if best is None or _strength(verdict) > _strength(best):
                best = verdict
        elif verdict.truth is Truth.UNKNOWN:
            unknown = True
        else:
            on_error = on_error or verdict.on_error
    if best is not None:
        return best
    if unknown:
        return UNKNOWN
    return FALSE_ON_ERROR if on_error else FALSE


def _strength(verdict: Verdict) -> tuple[bool, float, bool]:
    return not verdict.on_error, verdict.confidence, verdict.kind is not None
