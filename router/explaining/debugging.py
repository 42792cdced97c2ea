"""What a caller who asked for it is told, in headers of the answer: the decision in short, and the rules that matched.

Envoy lets the wish through only on listeners that allow it (`debug: {allow: true}`).

Sources: `rulings.md` 18 (`x-vsr-trace`), `reference.md` 7.3 (`x-vsr-matched-*`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from router.config.families import family_of, written_name
from router.config.plan import Plan
from router.config.services import DEBUG_HEADER, MATCHED_NAMES
from router.deciding.engine import decide
from router.deciding.kleene import Truth
from router.explaining.notes import Notes
from router.explaining.scans import coverages
from router.wire.http import Head

LONGEST_TRACE: Final = 4096
_LONGEST_LIST: Final = 1024


class Debugger:
    """Tells those who ask. A watcher of the pipeline."""

    def seen(self, plan: Plan, head: Head, body: bytes, notes: Notes) -> Mapping[str, str]:
        """The headers' values by key; nothing for a caller who did not ask, or may not."""
        if head.headers.get(DEBUG_HEADER) != "true" or not any(listener.debug for listener in plan.listeners):
            return {}
        return {"trace": trace_of(plan, notes), **_matched(notes)}


def trace_of(plan: Plan, notes: Notes) -> str:
    """How the request was decided, as compact ASCII JSON of at most `LONGEST_TRACE` bytes.

    When it would be longer the rules go first, then the decisions; `truncated` says so.
    """
    decided = notes.outcome.selected if notes.outcome is not None else None
    whole: dict[str, Any] = {
        "recipe": notes.recipe,
        # A recipe without rules has no outcome of this request: what it comes to was known beforehand.
        "decision": decided.name if decided is not None else notes.target and notes.target.decision,
        "error": notes.code.value if notes.code is not None else None,
        "ms": round(max(notes.ended - notes.started, 0.0) * 1000, 1),
        "revision": plan.revision,
    }
    if notes.waited is not None:
        whole["overload_wait"] = {"ms": round(notes.waited.seconds * 1000, 1), "ended": notes.waited.ended}
    details: dict[str, Any] = {}
    if notes.compiled is not None and notes.outcome is not None:
        outcome = decide(notes.compiled, notes.readings, trace=True)
        details["decisions"] = {trace.decision: _short(trace.truth) for trace in outcome.traces}
        details["signals"] = {
            f"{family_of(key)}:{written_name(key)}": _reading(reading.matched, reading.values.get(""), reading.reason)
            for key, reading in notes.readings.items()
        }
        details["scan_coverage"] = {
            f"{family_of(key)}:{written_name(key)}": "none"
            for key, reading in notes.readings.items()
            if reading.matched is None
        } | coverages(notes.guards)
    for left in (details, {"decisions": details.get("decisions")}, {}):
        shorter = {} if left is details else {"truncated": True}
        text = json.dumps({**whole, **left, **shorter}, separators=(",", ":"))
        if len(text) <= LONGEST_TRACE:
            return text
    return '{"truncated":true}'


def _short(truth: Truth) -> str:
    return truth.value[0]


def _reading(matched: bool | None, value: float | None, reason: str | None) -> list[Any]:
    return [matched, reason if matched is None else None if value is None else round(value, 4)]


def _matched(notes: Notes) -> dict[str, str]:
    found: dict[str, list[str]] = {}
    for key in notes.outcome.matched_rules if notes.outcome is not None else ():
        if (reading := notes.readings.get(key)) is not None and reading.by_policy:
            continue  # a guard that failed closed has found nothing
        if (name := MATCHED_NAMES.get(family_of(key))) is not None:
            found.setdefault(name, []).append(written_name(key))
    if notes.outcome is not None:
        outputs = notes.outcome.projected.outputs.items()
        if matched := [name for name, verdict in outputs if verdict.truth is Truth.TRUE]:
            found["projections"] = matched
    return {f"matched_{name.replace('-', '_')}": _list(names) for name, names in found.items()}


def _list(names: list[str]) -> str:
    text = ",".join(names)
    return text if len(text) <= _LONGEST_LIST else text[:_LONGEST_LIST].rpartition(",")[0]
