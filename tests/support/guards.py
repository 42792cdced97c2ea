"""Configurations with guard rules."""

from __future__ import annotations

import textwrap
from typing import Any

from router.config.deployments import Deployment
from router.config.guards import GuardRule
from router.config.load import Loaded, load
from router.config.plan import Recipe
from router.config.problems import ConfigError
from router.questions import Capabilities, QuestionType

CAN = Capabilities(
    question_types=frozenset({QuestionType.NOUL, QuestionType.CHOICE, QuestionType.SCORE, QuestionType.SET}),
    presets={"jailbreak": QuestionType.NOUL, "safety": QuestionType.NOUL, "pii": QuestionType.SPAN},
    preset_labels={"pii": ("PERSON", "EMAIL_ADDRESS", "PHONE_NUMBER")},
    preset_thresholds={"jailbreak": 0.9, "pii": 0.6},
    max_input_tokens=32_768,
)
"""A model with a calibrated threshold for two of three presets."""

TEXT = """\
version: v0.5
listeners: [{name: public, address: 127.0.0.1, port: 8801}]
providers: {models: [{name: m, backend_refs: [{endpoint: "http://127.0.0.1:1/v1"}]}]}
recipes:
  - name: r
    signals:
      SIGNALS
    projections: PROJECTIONS
    decisions:
      - name: d
        rules: {operator: OR, conditions: [CONDITIONS]}
        modelRefs: [{model: m}]
      - {name: rest, rules: {}, modelRefs: [{model: m}]}
entrypoints: [{model_names: [auto], recipe: r, default: true}]
"""

REMOTE = """\
global:
  model_catalog:
    deployments:
      far: {provider: systemone, endpoint: "https://x/v1/systemone", model: y, MORE}
    system: {decision_model: far}
"""
SPANS = "capabilities: {question_types: [noul, set, span]}"


def document(signals: str, conditions: str, projections: str = "{}", more: str = "") -> str:
    """`signals` is one line of the block: a family with its rules in flow style."""
    text = TEXT.replace("SIGNALS", signals).replace("CONDITIONS", conditions).replace("PROJECTIONS", projections)
    return text + textwrap.dedent(more)


def loaded(*arguments: str, can: Capabilities | None = CAN, **more: str) -> Loaded:
    """Read it as an operator's router does."""
    text = document(*arguments, **more)
    return load(text, environ={}, describe=lambda _: can, serving=True, file="c")


def recipe(*arguments: Any, **more: Any) -> Recipe:
    return loaded(*arguments, **more).plan.recipes["r"]


def guard(signals: str, conditions: str, *arguments: Any, **more: Any) -> GuardRule:
    """The only guard rule."""
    (rule,) = recipe(signals, conditions, *arguments, **more).guards
    return rule


def jailbreak(keys: str = "", **more: Any) -> GuardRule:
    return guard(f"jailbreak: [{{name: n, {keys}}}]", "{type: jailbreak, name: n}", **more)


def far(more: str = "") -> Deployment:
    """A remote deployment with these keys."""
    found = loaded("jailbreak: [{name: n, threshold: 0.5}]", "{type: jailbreak, name: n}", more=remote(more))
    return found.plan.deployments["far"]


def remote(more: str = "") -> str:
    return REMOTE.replace(", MORE", f", {more}" if more else "")


def mistakes(*arguments: Any, **more: Any) -> list[str]:
    """All errors with their places."""
    try:
        loaded(*arguments, **more)
    except ConfigError as error:
        return [problem.render() for problem in error.problems if problem.severity == "error"]
    return []
