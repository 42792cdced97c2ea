"""How much guards read of a request, as JSON: windows and places in bytes, never what stands there.

Source: "Long inputs" (Coverage and failures).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from router.config.families import family_of, written_name
from router.deciding.guarded import GuardResult


def coverages(guards: Mapping[str, GuardResult]) -> dict[str, str]:
    """`full`, `partial n/m` or `none` of every guard that had something to read and was asked, by `family:name`."""
    return {
        f"{family_of(name)}:{written_name(name)}": str(result.coverage)
        for name, result in guards.items()
        if result.coverage is not None
    }


def scan_json(result: GuardResult | None) -> dict[str, Any] | None:
    """The reading of one guard: None of a rule that is none, or had nothing to read."""
    if result is None or result.coverage is None:
        return None
    coverage = result.coverage
    return {
        "windows": coverage.of_windows,
        "windows_read": coverage.windows,
        "unread": [list(stretch) for stretch in coverage.unread],
        "unread_reason": result.unread,
        "decided": result.decided,
        "failed_closed": result.failed_closed,
    }
