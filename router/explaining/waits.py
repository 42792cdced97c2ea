"""How a request waited for room in decision models, for those who read about it later."""

from __future__ import annotations

from typing import Any

from router.asking.report import WaitReport


def wait_json(waited: WaitReport | None) -> dict[str, Any] | None:
    """The wait as JSON; None for a request that did not wait."""
    if waited is None:
        return None
    calls = [
        {
            "deployment": each.deployment,
            "outcome": None if each.outcome is None else each.outcome.value,
            "calls": each.calls,
            "asked_again": each.asked_again,
        }
        for each in waited.waited_for
    ]
    return {"ms": round(waited.seconds * 1000, 3), "ended": waited.ended, "calls": calls}
