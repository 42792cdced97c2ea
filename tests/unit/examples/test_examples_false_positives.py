"""The public false positives against the keyword rules that operators copy from the examples.

A known miss holds what would be right, and fails as soon as it is: then its mark must go.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from router.config.heuristics import HeuristicRule
from router.config.load import load
from router.runtime.artifact import describe
from tests.support.examples import EXAMPLES
from tests.support.signals import matches

CASES = [json.loads(line) for line in Path("tests/data/false_positives_examples.jsonl").read_text("utf-8").splitlines()]


@cache
def keyword_rules(example: str) -> dict[str, HeuristicRule]:
    plan = load(EXAMPLES / example / "pointsman.yaml", environ={}, describe=describe, serving=True).plan
    (recipe,) = plan.recipes.values()
    return {rule.name: rule for rule in recipe.heuristics}


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['recipe']} {case['rule']}: {case['text'][:30]}")
def test_keywords_of_the_examples(case: dict[str, Any]) -> None:
    found = matches(keyword_rules(case["recipe"])[f"keyword:{case['rule']}"], case["text"])
    assert (found is case["matches"]) is not case.get("known_miss", False)
