"""One conversation's way through decisions and models, from its records.

Sources: `reference.md` 7.5 (`/trajectory?session_id&recipe`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

_TOLD: Final = (
    "id",
    "turn_index",
    "timestamp",
    "recipe",
    "decision",
    "selected_model",
    "selection_method",
    "confidence_score",
    "lifecycle_state",
    "terminal_reason",
    "response_status",
    "duration_ms",
)


def trajectory_json(session: str, recipe: str | None, records: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The turns, the oldest first, and how often decision and model changed from one to the next."""
    turns = [{name: record.get(name) for name in _TOLD} for record in records]
    return {
        "session_id": session,
        "recipe": recipe,
        "total": len(turns),
        "models": list(dict.fromkeys(turn["selected_model"] for turn in turns if turn["selected_model"])),
        "model_changes": _changes(turns, "selected_model"),
        "decision_changes": _changes(turns, "decision"),
        "turns": turns,
    }


def _changes(turns: Sequence[Mapping[str, Any]], key: str) -> int:
    values = [turn[key] for turn in turns if turn[key] is not None]
    return sum(one != other for one, other in pairwise(values))
