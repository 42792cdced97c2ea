"""Public false positives of personal data, against the embedded model's spans.

A known miss holds what would be right, and fails as soon as it is: then its mark must go. The model takes long numbers
for those of persons; whoever masks or refuses by its spans has to know.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from router.runtime.two_tower import TwoTower
from tests.unit.runtime.conftest import Ask

CASES = [json.loads(line) for line in Path("tests/data/false_positives_pii.jsonl").read_text("utf-8").splitlines()]
PII = {"pii": {"type": "span", "preset": "pii"}}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["text"][:30])
def test_kinds_of_personal_data(builtin: TwoTower, ask: Ask, case: dict[str, Any]) -> None:
    spans = ask(builtin, case["text"], PII)["spans"]["pii"]
    assert all(case["text"][span["start"] : span["end"]] == span["text"] for span in spans)
    right = sorted({span["label"] for span in spans}) == case["kinds"]
    assert right is not case.get("known_miss", False)
