"""Why a decision was selected, in short, for Envoy's dynamic metadata (plugin `decision_diagnostics`).

Names, numbers and truths; never text of a request. Source: reference.md 5.10.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import orjson

from router.acting.target import Target
from router.config.actions import Diagnostics
from router.config.families import family_of, written_name
from router.deciding.kleene import Truth
from router.explaining.notes import Notes
from router.questions import UnknownReason

NAMESPACE: Final = "vllm.semantic_router"
KEY: Final = "decision_diagnostics"
SCHEMA_VERSION: Final = 1

_Json = dict[str, Any]


def diagnostics(target: Target, notes: Notes, limits: Diagnostics) -> Mapping[str, Mapping[str, Any]]:
    """Metadata by namespace. What does not fit is left out from the end, and `truncated` says so."""
    cut = _Cut(limits.max_text_runes)
    signals = list(_signals(notes, cut))
    projections = list(_projections(notes, cut))
    told: _Json = {
        "schemaVersion": SCHEMA_VERSION,
        "decision": cut(target.decision or ""),
        "selectedModel": cut(target.model.name),
        "matchedRules": [cut(rule) for rule in (notes.outcome.matched_rules if notes.outcome else ())],
        "signals": signals[: limits.max_signals],
        "projections": projections[: limits.max_projections],
    }
    for key, name in (("selectionAlgorithm", "algorithm"), ("decisionConfidence", "confidence")):
        if name in target.told:
            told[key] = target.told[name]
    if "decisionConfidence" in told:
        told["decisionConfidence"] = float(told["decisionConfidence"])
    told["matchedRules"] = told["matchedRules"][: limits.max_signals]
    short = len(signals) > limits.max_signals or len(projections) > limits.max_projections
    told["truncated"] = cut.happened or short
    while len(orjson.dumps(told)) > limits.max_payload_bytes:
        rest = next((told[key] for key in ("projections", "signals", "matchedRules") if told[key]), None)
        if rest is None:
            break
        rest.pop()
        told["truncated"] = True
    return {NAMESPACE: {KEY: told}}


class _Cut:
    """Texts of a bounded length; `happened` when one was longer."""

    def __init__(self, most: int) -> None:
        self._most = most
        self.happened = False

    def __call__(self, text: str) -> str:
        self.happened = self.happened or len(text) > self._most
        return text[: self._most]


def _signals(notes: Notes, cut: _Cut) -> Iterator[_Json]:
    for rule, reading in notes.readings.items():
        family, name = family_of(rule), written_name(rule)
        told: _Json = {
            "key": cut(f"{family}:{name}"),
            "type": family,
            "name": cut(name),
            "executed": reading.reason is not UnknownReason.NOT_ASKED,
            "matched": reading.matched is True,
        }
        if reading.by_policy and reading.matched:
            told["failedClosed"] = True  # a match without evidence must not be taken for a detection
        if (value := reading.values.get("")) is not None:
            told["value"] = value
        if reading.confidence is not None:
            told["confidence"] = reading.confidence
        yield told


def _projections(notes: Notes, cut: _Cut) -> Iterator[_Json]:
    if notes.outcome is None:
        return
    for name, verdict in notes.outcome.projected.outputs.items():
        told: _Json = {"name": cut(name), "matched": verdict.truth is Truth.TRUE}
        if verdict.truth is Truth.TRUE:
            told["score"] = verdict.confidence
        yield told
