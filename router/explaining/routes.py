"""What a record keeps of how a request's route came about: projections step by step, and what stood in its way.

Sources: `reference.md` 7.5 (`projection_trace`, `route_diagnostics`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from router.asking.report import WaitReport
from router.config.families import family_of, written_name
from router.config.plan import Plan
from router.deciding.engine import Outcome
from router.explaining.waits import wait_json
from router.signals.reading import Reading


def projection_trace(plan: Plan, recipe: str | None, outcome: Outcome | None) -> list[dict[str, Any]]:
    """Each output of a mapping with the score that it is read from, and how sure it is.

    `value` is null where an input was unknown: then the score is somewhere from `low` to `high`.
    """
    if recipe is None or outcome is None:
        return []
    scores, outputs = outcome.projected.scores, outcome.projected.outputs
    found: list[dict[str, Any]] = []
    for mapping in plan.recipes[recipe].mappings:
        if (score := scores.get(mapping.source)) is None:
            continue
        read = {
            "mapping": mapping.name,
            "method": mapping.method,
            "score": mapping.source,
            "value": score.low if score.known else None,
            "low": score.low,
            "high": score.high,
        }
        for output in mapping.outputs:
            if (verdict := outputs.get(output.name)) is not None:
                told = {"output": output.name, "state": verdict.truth, "confidence": verdict.confidence}
                found.append(read | told)
    return found


def route_diagnostics(
    readings: Mapping[str, Reading], outcome: Outcome | None, waited: WaitReport | None
) -> dict[str, Any]:
    """Rules without an answer and why, those that matched for want of one, decisions whose policy for the unknown was
    applied, and the wait for room in models."""
    keys = {name: f"{family_of(name)}:{written_name(name)}" for name in readings}
    return {
        "signal_errors": {keys[name]: one.reason for name, one in readings.items() if one.reason is not None},
        "failed_closed": [keys[name] for name, one in readings.items() if one.matched and one.by_policy],
        "applied_unknown_policy": list(outcome.applied) if outcome is not None else [],
        "overload_wait": wait_json(waited),
    }
