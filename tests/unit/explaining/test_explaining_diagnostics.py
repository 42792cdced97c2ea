"""The bounds of what dynamic metadata says about a decision."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from router.acting.target import Target
from router.config.actions import Diagnostics
from router.config.plan import ApiFormat, ProviderModel
from router.explaining.diagnostics import diagnostics
from router.explaining.notes import Notes
from router.questions import QuestionType, UnknownReason
from router.signals.reading import Reading

TARGET = Target(ProviderModel("m", ApiFormat.CHAT, "m", ()), "d" * 40, {})
READINGS = {f"rule-{number:03}": Reading(QuestionType.NOUL, True, 0.9, {"": 0.9}) for number in range(200)}


def told(limits: Diagnostics) -> Any:
    return diagnostics(TARGET, Notes(readings=READINGS), limits)["vllm.semantic_router"]["decision_diagnostics"]


def test_numbers_of_entries() -> None:
    found = told(Diagnostics(max_signals=3))
    assert ([one["name"] for one in found["signals"]], found["truncated"]) == (
        ["rule-000", "rule-001", "rule-002"],
        True,
    )


def test_lengths_of_texts() -> None:
    found = told(Diagnostics(max_text_runes=6))
    assert (found["decision"], found["truncated"]) == ("d" * 6, True)


@pytest.mark.parametrize("most", [512, 1000, 4096])
def test_the_whole(most: int) -> None:
    found = told(Diagnostics(max_signals=128, max_payload_bytes=most))
    assert len(orjson.dumps(found)) <= most
    assert found["signals"]
    assert found["truncated"]


def test_a_rule_that_was_not_asked() -> None:
    notes = Notes(readings={"keyword:a": Reading(QuestionType.NOUL, None, reason=UnknownReason.NOT_ASKED)})
    found = diagnostics(TARGET, notes, Diagnostics())["vllm.semantic_router"]["decision_diagnostics"]
    assert found["signals"] == [
        {"key": "keyword:a", "type": "keyword", "name": "a", "executed": False, "matched": False}
    ]


def test_a_guard_that_failed_closed_has_detected_nothing() -> None:
    notes = Notes(readings={"pii:a": Reading(QuestionType.SPAN, True, by_policy=True)})
    found = diagnostics(TARGET, notes, Diagnostics())["vllm.semantic_router"]["decision_diagnostics"]
    assert found["signals"] == [
        {"key": "pii:a", "type": "pii", "name": "a", "executed": True, "matched": True, "failedClosed": True}
    ]
