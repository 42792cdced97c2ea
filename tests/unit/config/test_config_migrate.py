"""Older dialects become v0.5 by edits that keep the text."""

from __future__ import annotations

from pathlib import Path

import pytest

from router.config.document import parse
from router.config.load import load
from router.config.migrate import migrate, unified_diff
from router.config.problems import ConfigError
from tests.support.config_samples import GOOD
from tests.support.plans import EVERYTHING

ROOT = Path(__file__).parents[3]
EXAMPLES = ROOT / "examples" / "decision-signal"

OLD = """\
# Our policy.
version: v0.3  # for now

routing:  # everything
  strategy: priority
  signals:
    decision:
      # Asked of everybody.
      - name: needs_tools
        question:
          type: noul
          instructions: |
            Does it
              need a tool?

  decisions:
    - name: use-tools   # the only one
      rules:
        operator: AND
        conditions:
          - {type: decision, name: needs_tools}
          - operator: NOT
            conditions: [{type: "decision", name: needs_tools}]
      algorithm: {type: decision, decision: {}}
      modelRefs:
        - model: decision

# The rest.
providers:
  defaults: {default_model: small}
"""

NEW = """\
# Our policy.
version: v0.5  # for now

recipes: # everything
  - name: default
    strategy: priority
    signals:
      systemone:
        # Asked of everybody.
        - name: needs_tools
          question:
            type: noul
            instructions: |
              Does it
                need a tool?

    decisions:
      - name: use-tools   # the only one
        rules:
          operator: AND
          conditions:
            - {type: systemone, name: needs_tools}
            - operator: NOT
              conditions: [{type: systemone, name: needs_tools}]
        algorithm: {type: systemone, systemone: {}}
        modelRefs:
          - model: decision

# The rest.
providers:
  defaults: {model: small}
"""


def test_the_whole_of_an_old_file() -> None:
    text, notes = migrate(OLD, "old.yaml")
    assert text == NEW
    assert notes[-2:] == [
        "listeners is missing: add where Envoy takes requests",
        "entrypoints is missing: add the model names that clients may ask for",
    ]
    assert any(note.startswith("line 4: the top-level routing is now the recipe default") for note in notes)


@pytest.mark.parametrize("text", [NEW, GOOD, "version: v0.5\nlisteners: []\n"])
def test_v0_5_stays_as_it_is(text: str) -> None:
    assert migrate(text) == (text, [])


def test_a_second_time_changes_nothing() -> None:
    once, _ = migrate(OLD)
    assert migrate(once) == (once, [])
    assert unified_diff(once, once) == ""


def test_the_difference_is_a_diff() -> None:
    lines = unified_diff("a: 1\nb: 2\n", "a: 1\nb: 3", "f.yaml").splitlines()
    assert lines[:2] == ["--- f.yaml", "+++ f.yaml (v0.5)"]
    assert "-b: 2" in lines
    assert "+b: 3" in lines


def test_recipes_with_their_own_routing() -> None:
    text, _ = migrate(
        "version: v0.3\nrecipes:\n- name: a\n  routing:  # here\n      signals: {}\n      # c\n      decisions: []\n"
        "- routing:\n    decisions: []\n  name: b\n"
    )
    assert text == (
        "version: v0.5\nrecipes:\n- name: a\n  # here\n  signals: {}\n  # c\n  decisions: []\n"
        "- decisions: []\n  name: b\n"
    )


def test_routing_beside_recipes_becomes_their_first() -> None:
    text, _ = migrate(
        "recipes:\n  # others\n  - name: a\n    signals: {}\nrouting:\n    signals: {}\n    decisions: []"
    )
    assert parse(text, file="x", environ={}).value == {
        "version": "v0.5",
        "recipes": [{"name": "default", "signals": {}, "decisions": []}, {"name": "a", "signals": {}}],
    }
    assert "# others" in text


def test_windows_line_ends_and_empty_routing() -> None:
    text, _ = migrate("routing: {}\r\nproviders: {}\r\n")
    assert parse(text, file="x", environ={}).value["recipes"] == [{"name": "default"}]
    text, _ = migrate("routing:\r\n  signals: {}\r\nproviders: {}\r\n")
    assert parse(text, file="x", environ={}).value["recipes"] == [{"name": "default", "signals": {}}]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("routing: {signals: {}}\n", "cannot be moved safely"),
        ("routing: &x\n  signals: {}\n", "cannot be moved safely"),
        ("routing:\n  signals: {}\nrecipes: [{name: a}]\n", "not a list of lines"),
        ("routing:\n  signals: {}\nrecipes:\n  - name: default\n", "one of them must go"),
        ("a: [", "not readable as YAML"),
        ("a: 1\na: 2\n", "duplicate key"),
    ],
)
def test_what_cannot_be_edited_safely_is_refused(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        migrate(text)


SNIPPETS = {
    "needs-tools.yaml": """\
routing:
  signals:
    decision:
      - name: needs_tools
        question:
          type: noul
          instructions: Does answering this request need a tool call?
        predicate:
          gte: 0.7
""",
    "hard-code.yaml": """\
global:
  model_catalog:
    deployments:
      decision-kai:
        provider: model_runtime
        artifact: vllm-sr/Decision-2.0-Kai-0.6B
        device: auto

routing:
  signals:
    decision:
      - name: needs_reasoning
        deployment: decision-kai
        question:
          type: noul
          instructions: Does answering this request need multi-step reasoning?
        predicate:
          gte: 0.7
        timeout_ms: 1000
      - name: request_kind
        deployment: decision-kai
        question:
          type: choice
          instructions: What kind of request is this?
          choices:
            - key: code
              description: Writing, reviewing or debugging code
            - key: math
              description: Mathematics or quantitative reasoning
            - key: chat
              description: Anything else
      - name: difficulty
        deployment: decision-kai
        question:
          type: score
          instructions: How difficult is this request?
          levels: [Trivial, Moderate, Hard]
        predicate:
          gte: 1.5

  decisions:
    - name: hard-code
      priority: 200
      rules:
        operator: AND
        on_unknown: no_match
        conditions:
          - type: decision
            name: request_kind
            label: code
          - type: decision
            name: needs_reasoning
      modelRefs:
        - model: large-coder
""",
    "effort-projection.yaml": """\
routing:
  signals:
    decision:
      - name: difficulty
        question:
          type: score
          instructions: How much reasoning does a strong expert need to answer well?
          levels: [none, a little, multi-step, expert]
        predicate:
          gte: 2
      - name: needs
        question:
          type: set
          instructions: What does a good answer need?
          labels:
            - key: deliberation
              description: a derivation, proof or careful step-by-step check
            - key: tools
              description: calling external tools or functions
  projections:
    scores:
      - name: effort
        method: weighted_sum
        inputs:
          - type: decision
            name: difficulty
            weight: 0.3
            value_source: raw
          - type: decision
            name: needs:deliberation
            weight: 0.4
            value_source: raw
    mappings:
      - name: effort_band
        source: effort
        method: threshold_bands
        outputs:
          - name: effort_high
            gte: 0.9
  decisions:
    - name: deliberate
      priority: 200
      rules:
        operator: AND
        conditions:
          - type: projection
            name: effort_high
      modelRefs:
        - model: large-reasoner
""",
    "set-and-span.yaml": """\
routing:
  signals:
    decision:
      - name: support_topics
        deployment: vela2
        question:
          type: set
          instructions: Which topics does the request mention?
          labels:
            - key: billing
              description: payments, invoices or refunds
            - key: shipping
              description: deliveries, tracking or returns
      - name: account_ids
        deployment: vela2
        question:
          type: span
          instructions: Which spans are account or order numbers?
          labels:
            - key: account_number
              description: a customer account or order number
          head: router

  decisions:
    - name: billing-with-account
      priority: 200
      rules:
        operator: AND
        conditions:
          - type: decision
            name: support_topics
            label: billing
          - type: decision
            name: account_ids
            label: account_number
      modelRefs:
        - model: support-model
""",
}


@pytest.mark.parametrize("name", SNIPPETS)
def test_snippets_of_the_document_become_the_examples(name: str) -> None:
    """Up to decisions that only the example has, because the document shows signals alone or a single route."""
    text, _ = migrate(SNIPPETS[name])
    migrated = parse(text, file=name, environ={}).value["recipes"][0]
    example = parse((EXAMPLES / name).read_text(encoding="utf-8"), file=name, environ={}).value["recipes"][0]
    assert migrated["name"] == example["name"]
    assert migrated["signals"] == example["signals"]
    assert migrated.get("projections") == example.get("projections")
    decisions = migrated.get("decisions", [])
    assert example["decisions"][: len(decisions)] == decisions


LABELS = """\
version: v0.3
listeners: [{name: public, address: 127.0.0.1, port: 8801}]
providers: {models: [{name: large, backend_refs: [{endpoint: "http://127.0.0.1:9101/v1"}]}]}
routing:
  signals:
    complexity: [{name: effort}]
    keywords: [{name: odd, keywords: [x]}]
  decisions:
    - name: demanding
      rules:
        operator: OR
        conditions:
          - type: complexity  # how hard
            name: "effort:hard"  # the top
          - {name: effort:medium, type: complexity}
          - operator: NOT
            conditions: [{type: keyword, name: odd}]
          - {type: complexity, name: effort, label: hard}
      modelRefs: [{model: large}]
entrypoints: [{model_names: [auto], recipe: default}]
"""


def test_a_label_behind_a_rules_name_gets_a_key_of_its_own() -> None:
    text, notes = migrate(LABELS)
    conditions = parse(text, file="x", environ={}).value["recipes"][0]["decisions"][0]["rules"]["conditions"]
    assert conditions == [
        {"type": "complexity", "name": "effort", "label": "hard"},
        {"type": "complexity", "name": "effort", "label": "medium"},
        {"operator": "NOT", "conditions": [{"type": "keyword", "name": "odd"}]},
        {"type": "complexity", "name": "effort", "label": "hard"},
    ]
    assert "# how hard" in text
    assert "# the top" in text
    assert "line 14: the label hard of effort stands on its own now" in notes
    assert migrate(text)[0] == text
    assert load(text, environ={}, describe=lambda artifact: EVERYTHING, serving=True).plan.recipes["default"].decisions


def test_guards_keep_their_keys_and_what_modules_said_is_told() -> None:
    old = """\
version: v0.3
routing:
  signals:
    jailbreak:
      - {name: attack, threshold: 0.7, include_history: true}
      - {name: answer, direction: response}
    pii:
      - {name: personal, threshold: 0.8, pii_types_allowed: [PERSON]}
global:
  model_catalog:
    modules:
      prompt_guard:
        on_error: block
        on_unscanned: allow
"""
    new, notes = migrate(old)
    assert "- {name: attack, threshold: 0.7, include_history: true}" in new
    assert [note for note in notes if note.startswith(("line 6:", "line 13:", "line 14:"))] == [
        "line 6: direction is gone from jailbreak rules: what answers are read for stands in response_guard",
        "line 13: on_error of the module prompt_guard is gone; write on_unknown: match on each of its rules by hand",
        "line 14: on_unscanned of the module prompt_guard is gone; "
        "write on_unscanned: no_match on each of its rules by hand",
    ]
