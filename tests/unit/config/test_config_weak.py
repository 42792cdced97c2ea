"""Decisions that refuse by what a model's card calls weak."""

from __future__ import annotations

from dataclasses import replace

import pytest

from router.config.load import load
from router.questions import Capabilities, QuestionType
from tests.support.guards import CAN

WEAK = replace(CAN, weak_types=frozenset({QuestionType.NOUL, QuestionType.CHOICE}), weak_presets=frozenset({"safety"}))

TEXT = """\
version: v0.5
listeners: [{name: public, address: 127.0.0.1, port: 8801, models: [auto]}]
providers: {models: [{name: m, backend_refs: [{endpoint: "http://127.0.0.1:1/v1"}]}]}
recipes:
  - name: r
    signals:
      systemone: [{name: n, question: {type: noul, instructions: "Is it late?"}}]
      safety: [{name: s, threshold: 0.7}]
      jailbreak: [{name: j}]
    projections:
      scores: [{name: risk, method: weighted_sum, inputs: [{type: systemone, name: n, weight: 1}]}]
      mappings: [{name: bands, source: risk, method: threshold_bands, outputs: [{name: high, gte: 0.5}]}]
    decisions:
      - {name: d, rules: {operator: OR, conditions: [CONDITION]}, ACTION}
      - name: rest
        rules: {operator: OR, conditions: [{type: systemone, name: n}, {type: safety, name: s},
          {type: jailbreak, name: j}, {type: projection, name: high}]}
        modelRefs: [{model: m}]
      - {name: last, rules: {}, modelRefs: [{model: m}]}
entrypoints: [{model_names: [auto], recipe: r, default: true}]
"""
REFUSES = "plugins: [{type: fast_response, configuration: {message: No.}}]"


def warnings(condition: str, action: str = REFUSES, can: Capabilities = WEAK) -> list[str]:
    text = TEXT.replace("CONDITION", condition).replace("ACTION", action)
    found = load(text, environ={}, describe=lambda _: can, serving=True, file="c")
    return [problem.render() for problem in found.warnings if "weak" in problem.message]


@pytest.mark.parametrize(
    ("condition", "says"),
    [
        (
            "{type: systemone, name: n}",
            'rule "n", and the model of deployment builtin calls its answers to noul',
        ),
        ("{type: projection, name: high}", 'rule "n", and the model of deployment builtin calls its answers to noul'),
        ("{type: safety, name: s}", 'rule "s", and the model of deployment builtin calls its answers to safety weak'),
    ],
)
def test_a_decision_that_refuses_by_a_weak_answer_is_warned_about(condition: str, says: str) -> None:
    (warning,) = warnings(condition)
    assert says in warning
    assert "decisions" in warning


def test_neither_a_calibrated_guard_nor_a_decision_that_routes_is_warned_about() -> None:
    assert warnings("{type: jailbreak, name: j}") == []
    assert warnings("{type: systemone, name: n}", "modelRefs: [{model: m}]") == []


def test_a_card_that_says_nothing_warns_of_nothing() -> None:
    assert warnings("{type: systemone, name: n}", can=CAN) == []
