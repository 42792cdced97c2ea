"""Asking only what can matter, through the pipeline."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import orjson
from hypothesis import given, settings
from hypothesis import strategies as st

from router.asking.plan import StagePlan
from router.config.plan import StateKind
from router.deciding.engine import decide, prepare
from router.needed import NeededStages
from router.observe import Metrics
from router.pipeline import Pipeline
from router.questions import Answer, NoulAnswer, Unknown, UnknownReason
from router.signals.reading import read_all
from router.verdict import Forward
from tests.support.plans import PLAIN, generation_of, plan_of
from tests.unit.test_pipeline import post

CATALOG = "global: {model_catalog: {ask: needed}}\n"
SIGNALS = """\
    signals:
      systemone:
        - {name: rude, state: system, question: {type: noul, instructions: Rude?}}
        - {name: is_code, question: {type: noul, instructions: Is this code?}}
        - {name: idle, question: {type: noul, instructions: Idle?}}
    projections:
      scores:
        - {name: unread, method: weighted_sum, inputs: [{type: systemone, name: idle, weight: 1.0, value_source: raw}]}
      mappings:
        - {name: m, source: unread, method: threshold_bands, outputs: [{name: never_read, gte: 0.5}]}
    decisions:
      - name: strict
        priority: 100
        rules: {operator: AND, conditions: [{type: systemone, name: rude, on_error: match}]}
        modelRefs: [{model: general}]
      - name: code
        rules: {operator: AND, conditions: [{type: systemone, name: is_code}]}
        modelRefs: [{model: coder}]
"""


def text(catalog: str = CATALOG) -> str:
    start = PLAIN.index("    signals:")
    end = PLAIN.index("  - name: strict")
    return PLAIN[:start] + SIGNALS + PLAIN[end:] + catalog


def rules(stage: StagePlan) -> set[str]:
    return {consumer.rule for deployment in stage.deployments for consumer in deployment.consumers}


def given_texts(catalog: str = CATALOG, **texts: str) -> tuple[set[str], Mapping[str, Unknown]]:
    policy = generation_of(plan_of(text(catalog))).policies["ask"]
    assert policy.needed is not None
    by_state = {("builtin", state): texts.get(state.value, "") for _, state in policy.stage.states}
    stage, unread, _ = policy.needed.given(by_state)
    assert policy.needed.given(by_state)[0] is stage  # worked out once
    return rules(stage), unread


def test_everything_is_asked_unless_told_otherwise() -> None:
    policy = generation_of(plan_of(text(""))).policies["ask"]
    assert policy.needed is None
    assert rules(policy.stage) == {"rude", "is_code", "idle"}


def test_a_projection_that_nothing_reads_is_not_asked_about() -> None:
    asked, unread = given_texts(user="u", system="s")
    assert (asked, unread) == ({"rude", "is_code"}, {})


def test_a_blank_text_can_settle_the_decision_before_anything_is_asked() -> None:
    asked, unread = given_texts(user="u")
    assert (asked, unread) == (set(), {"rude": Unknown(UnknownReason.NO_TEXT)})


def test_a_blank_text_may_leave_the_rest_open() -> None:
    asked, unread = given_texts(system="s")
    assert asked == {"rude"}
    assert unread == dict.fromkeys(["is_code", "idle"], Unknown(UnknownReason.NO_TEXT))


ANSWERS = st.sampled_from([NoulAnswer(0.1), NoulAnswer(0.9), Unknown(UnknownReason.TIMEOUT)])


@settings(max_examples=60, deadline=None)
@given(st.fixed_dictionaries(dict.fromkeys(("rude", "is_code", "idle"), ANSWERS)), st.booleans(), st.booleans())
def test_both_ways_select_the_same_decision(answers: dict[str, Answer], user: bool, system: bool) -> None:
    recipe = plan_of(text()).recipes["ask"]
    compiled = prepare(recipe)
    blank = {StateKind.USER: not user, StateKind.SYSTEM: not system}
    texts: dict[Any, str] = {("builtin", state): "" if empty else "text" for state, empty in blank.items()}
    deployments = plan_of(text()).deployments
    stage, unread, _ = NeededStages(recipe, deployments, compiled).given(texts)
    whole = {
        rule.name: Unknown(UnknownReason.NO_TEXT) if blank[rule.state] else answers[rule.name]
        for rule in recipe.questions
    }
    part = {**unread, **{name: whole[name] for name in rules(stage)}}
    everything, needed = (decide(compiled, read_all(recipe.questions, found)) for found in (whole, part))
    assert everything.selected == needed.selected
    assert everything.failed == needed.failed


class AlwaysYes:
    """Answers yes to whatever it is asked."""

    async def ask(self, stage: StagePlan, texts: object, **more: object) -> SimpleNamespace:
        return SimpleNamespace(answers=dict.fromkeys(rules(stage), NoulAnswer(0.9)))


async def test_what_is_not_asked_is_not_counted_as_unknown() -> None:
    metrics = Metrics()
    messages = [{"role": "system", "content": "s"}, {"role": "user", "content": "u"}]
    made = Pipeline(generation_of(plan_of(text()), AlwaysYes()), metrics)
    found = await made.decided(post(), orjson.dumps({"model": "auto", "messages": messages}))
    assert isinstance(found, Forward)
    assert found.model == "general"
    assert "unknown_answers_total{" not in metrics.render().decode()


def test_what_is_not_asked_reads_as_that() -> None:
    recipe = plan_of(text()).recipes["ask"]
    readings = read_all(recipe.questions, {"rude": NoulAnswer(0.9), "is_code": NoulAnswer(0.9)})
    assert readings["idle"].reason is UnknownReason.NOT_ASKED
