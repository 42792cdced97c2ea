"""`emits` of decisions: what it becomes, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from router.config.actions import Retention
from router.config.load import Loaded, load
from router.config.problems import ConfigError
from tests.support.config_samples import CAN

TEXT = """\
version: v0.5
listeners: [{name: public, address: 127.0.0.1, port: 8801}]
providers:
  models:
    - {name: small, backend_refs: [{endpoint: "http://127.0.0.1:1/v1"}]}
    - {name: large, backend_refs: [{endpoint: "http://127.0.0.1:1/v1"}]}
recipes:
  - name: r
    decisions:
      - {name: d, rules: {}, emits: EMITS, DOES}
entrypoints: [{model_names: [auto], recipe: r, default: true}]
"""
BOTH = "modelRefs: [{model: small}, {model: large}]"
ANSWER = "plugins: [{type: fast_response, configuration: {message: No.}}]"


def loaded(emits: str, does: str = BOTH) -> Loaded:
    text = TEXT.replace("EMITS", emits).replace("DOES", does)
    return load(text, environ={}, describe=lambda _: CAN, serving=True, file="c")


def retention(*arguments: Any) -> Retention | None:
    return loaded(*arguments).plan.recipes["r"].decisions[0].actions.retention


def emits(written: str) -> str:
    return f"[{{kind: retention, retention: {written}}}]"


def test_what_is_written_and_what_is_not() -> None:
    assert retention("[]") is None
    assert retention(emits("{drop: true}")) == Retention(drop=True)
    assert retention(emits("{keep_current_model: true, prefer_prefix_retention: false}")) == Retention(
        None, True, False
    )
    assert retention(emits("{drop: true}"), ANSWER) == Retention(drop=True)


def test_all_that_was_written_is_told() -> None:
    assert Retention().told() == {}
    assert Retention(False, True, None).told() == {"retention_drop": "false", "retention_keep_current_model": "true"}
    assert Retention(prefer_prefix_retention=True).told() == {"retention_prefer_prefix": "true"}


@pytest.mark.parametrize(
    ("written", "does", "says"),
    [
        ("[{kind: signal, retention: {drop: true}}]", BOTH, "kind"),
        ("[{kind: retention}]", BOTH, 'missing key "retention"'),
        ("[{retention: {drop: true}}]", BOTH, "kind"),
        (emits("{}"), BOTH, "a retention that says nothing"),
        (emits("{drop: yes please}"), BOTH, "drop"),
        (emits("{dorp: true}"), BOTH, 'did you mean "drop"?'),
        (emits("{ttl_turns: 2}"), BOTH, '"ttl_turns" is not supported yet'),
        (
            "[{kind: retention, retention: {drop: true}}, {kind: retention, retention: {drop: true}}]",
            BOTH,
            "second time",
        ),
        (emits("{keep_current_model: true}"), ANSWER, "fast_response asks none"),
        (emits("{prefer_prefix_retention: true}"), ANSWER, "fast_response asks none"),
        (
            emits("{keep_current_model: true}"),
            f"{BOTH}, algorithm: {{type: weighted, session_affinity: false}}",
            "contradicts session_affinity: false",
        ),
    ],
)
def test_what_is_refused(written: str, does: str, says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        loaded(written, does)
    (problem,) = caught.value.problems
    assert says in problem.render()


def test_a_lone_candidate_has_nothing_to_stay_on() -> None:
    (warning,) = loaded(emits("{keep_current_model: true}"), "modelRefs: [{model: small}]").warnings
    assert "never has another model to stay on" in warning.render()
