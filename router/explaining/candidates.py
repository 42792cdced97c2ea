"""How the candidates of a decision stood when one was picked by what was measured of them: as JSON, and in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from router.acting.standing import Contestants, Part, Standing, Why

_WORDS: Final[Mapping[Why, str]] = {
    Why.UNMEASURED: "it is not measured yet, so it is tried",
    Why.BEST: "its score is the best",
    Why.CHEAPEST: "no candidate keeps to the limits, and it is the cheapest",
    Why.FIRST: "no candidate keeps to the limits, and it is the first",
    Why.NONE: "no candidate keeps to the limits",
    Why.CONVERSATION: "the conversation has this model already",
}


def why_picked(contestants: Contestants) -> str:
    """In words: why the picked candidate was picked, or why none was."""
    return _WORDS[contestants.why]


def candidates_json(contestants: Contestants) -> dict[str, Any]:
    """Every candidate with its factors, weights and score, and why the picked one was picked.

    Times are seconds, prices those of a million tokens.
    """
    picked = contestants.picked
    return {
        "picked": None if picked is None else contestants.all[picked].model,
        "why": contestants.why.value,
        "reason": why_picked(contestants),
        "candidates": [_candidate(one) for one in contestants.all],
    }


def _candidate(one: Standing) -> dict[str, Any]:
    return {
        "model": one.model,
        "measured": not one.unmeasured,
        "answers": one.asked,
        "in_flight": one.in_flight,
        "error_rate": _short(one.error_rate),
        "factors": {name: _part(part) for name, part in one.parts.items()},
        "exceeds": list(one.exceeds),
        "score": _short(one.score),
    }


def _part(part: Part) -> dict[str, Any]:
    return {"value": _short(part.value), "comes_to": _short(part.comes_to), "weight": _short(part.weight)}


def _short(value: float | None) -> float | None:
    return None if value is None else round(value, 6)
