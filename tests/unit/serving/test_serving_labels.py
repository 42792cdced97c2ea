"""Labels that an attached model turns out not to have: refused, for every family that has labels."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from router.asking.fleet import Fleet
from router.config.plan import Plan
from router.config.presets import public_presets
from router.questions import Capabilities, QuestionType
from router.serving.errors import NotServable
from router.serving.labels import impossible_labels
from router.serving.prepare import connect
from tests.support.fake_systemone import FakeSystemOne, default_card
from tests.support.plans import plan_of

CONFIG = """\
version: v0.5
listeners: [{name: public, address: 127.0.0.1, port: 8801}]
providers: {models: [{name: m, backend_refs: [{endpoint: "http://127.0.0.1:1/v1"}]}]}
recipes:
  - name: r
    signals: {SIGNALS}
    projections: {PROJECTIONS}
    decisions:
      - name: d
        rules: {operator: OR, conditions: [{operator: NOT, conditions: [CONDITION]}]}
        modelRefs: [{model: m}]
      - {name: rest, rules: {}, modelRefs: [{model: m}]}
entrypoints: [{model_names: [auto], recipe: r, default: true}]
global:
  model_catalog:
    deployments: {far: {provider: model_runtime, endpoint: "unix:///nowhere", served_name: fake}}
    system: {decision_model: far}
"""


def attached(signals: str, condition: str, projections: str = "") -> Plan:
    text = CONFIG.replace("SIGNALS", signals).replace("CONDITION", condition).replace("PROJECTIONS", projections)
    return plan_of(text)


def described(plan: Plan, preset: str, *labels: str) -> Plan:
    """The plan when the attached model has said that its preset gives these labels."""
    kind = public_presets()[preset].type
    known = Capabilities(frozenset(QuestionType), {preset: kind}, {preset: labels} if labels else {})
    return replace(plan, deployments={"far": replace(plan.deployments["far"], capabilities=known)})


@pytest.mark.parametrize(
    ("signals", "condition", "preset", "label"),
    [
        ("domains: [{name: n}]", "{type: domain, name: n, label: physics}", "domains", "physics"),
        ("domains: [{name: n, mmlu_categories: [physics]}]", "{type: domain, name: n}", "domains", "physics"),
        ("domains: [{name: physics}]", "{type: domain, name: physics}", "domains", "physics"),
        ("complexity: [{name: n}]", "{type: complexity, name: n, label: hard}", "complexity", "hard"),
        ("modality: [{name: n}]", "{type: modality, name: n, label: BOTH}", "modality", "BOTH"),
        (
            "user_feedbacks: [{name: n}]",
            "{type: user_feedback, name: n, label: want_different}",
            "user_feedback",
            "want_different",
        ),
        ("turn_relation: [{name: n}]", "{type: turn_relation, name: n, label: repeat}", "turn_relation", "repeat"),
        ("systemone: [{name: n, preset: domains}]", "{type: systemone, name: n, label: physics}", "domains", "physics"),
        ("systemone: [{name: n, preset: pii}]", "{type: systemone, name: n, label: AGE}", "pii", "AGE"),
    ],
)
def test_every_family_with_labels(signals: str, condition: str, preset: str, label: str) -> None:
    plan = attached(signals, condition)
    (problem,) = impossible_labels(described(plan, preset, "one", "two"))
    assert f"decision model 'far' cannot give the label '{label}'; it has: one, two" in problem
    assert problem.startswith("recipe 'r', rule ")
    assert list(impossible_labels(described(plan, preset, "one", label))) == []
    assert list(impossible_labels(described(plan, preset))) == [], "a model that does not list its labels"
    assert list(impossible_labels(plan)) == [], "a model that says nothing"


def test_inputs_of_scores() -> None:
    scores = "scores: [{name: s, method: weighted_sum, inputs: [{type: complexity, name: 'n:hard', weight: 1}]}]"
    bands = "mappings: [{name: b, source: s, method: threshold_bands, outputs: [{name: o, gte: 0.5}]}]"
    plan = attached("complexity: [{name: n}]", "{type: projection, name: o}", f"{scores}, {bands}")
    (problem,) = impossible_labels(described(plan, "complexity", "short", "long"))
    assert "cannot give the label 'hard'; it has: short, long" in problem


def test_any_feedback_asks_for_no_label_by_name() -> None:
    plan = attached("user_feedbacks: [{name: n}]", "{type: user_feedback, name: n}")
    assert list(impossible_labels(described(plan, "user_feedback", "good", "bad"))) == []


async def test_such_a_plan_is_not_served(tmp_path: Path) -> None:
    async with FakeSystemOne() as fake, Fleet(tmp_path) as fleet:
        fake.listing = {"data": [default_card("fake")]}
        plan = attached("domains: [{name: n}]", "{type: domain, name: n, label: physics}")
        plan = replace(plan, deployments={"far": replace(plan.deployments["far"], endpoint=fake.endpoint)})
        with pytest.raises(NotServable, match="'far' cannot give the label 'physics'; it has: code, other"):
            await connect(plan, fleet, Ignored())


class Ignored:
    """An observer whom nothing interests."""

    def __getattr__(self, name: str) -> Any:
        return lambda *anything: None


@pytest.mark.parametrize(
    ("rule", "preset", "label"),
    [
        ("pii: [{name: n, threshold: 0.5, pii_types_allowed: [GPE]}]", "pii", "GPE"),
        ("safety: [{name: n, threshold: 0.5, hazard: {labels: [hate], threshold: 0.5}}]", "hazard", "hate"),
    ],
)
def test_labels_of_guards(rule: str, preset: str, label: str) -> None:
    family = rule.partition(":")[0]
    plan = attached(rule, f"{{type: {family}, name: n}}")
    (problem,) = impossible_labels(described(plan, preset, "one", "two"))
    assert f"decision model 'far' cannot give the label '{label}'; it has: one, two" in problem
    assert list(impossible_labels(described(plan, preset, "one", label))) == []
    assert list(impossible_labels(plan)) == []
