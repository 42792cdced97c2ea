"""Signals of every family, through the pipeline."""

from __future__ import annotations

from typing import Any
from unittest.mock import ANY

import msgspec
import orjson
import pytest

from router.judging import LARGE_BODY
from router.observe import Metrics
from router.pipeline import Pipeline
from router.questions import Answer, ChoiceAnswer
from router.signals.facts import RequestFacts
from router.verdict import Forward
from router.wire.http import Reply
from tests.support.plans import ScriptedAsker, generation_of, plan_of
from tests.support.signals import chat
from tests.unit.test_pipeline import post

CONFIGURATION = """\
version: v0.5
listeners:
  - {name: public, address: 127.0.0.1, port: 8801, identity: {trust_headers: true, trusted_peers: [10.0.0.0/8]}}
providers:
  models:
    - {name: coder, backend_refs: [{endpoint: "http://127.0.0.1:9101/v1"}]}
    - {name: general, backend_refs: [{endpoint: "http://127.0.0.1:9101/v1"}]}
    - {name: staff, backend_refs: [{endpoint: "http://127.0.0.1:9101/v1"}]}
    - {name: sorry, backend_refs: [{endpoint: "http://127.0.0.1:9101/v1"}]}
recipes:
  - name: words
    signals:
      keywords: [{name: code, keywords: [python, traceback]}]
      role_bindings: [{name: staff, role: staff, subjects: [{kind: Group, name: ops}]}]
    decisions:
      - name: staff
        priority: 9
        rules: {operator: AND, conditions: [{type: authz, name: staff}]}
        modelRefs: [{model: staff}]
      - {name: code, rules: {operator: AND, conditions: [{type: keyword, name: code}]}, modelRefs: [{model: coder}]}
      - {name: rest, rules: {}, modelRefs: [{model: general}]}
  - name: mixed
    signals:
      keywords: [{name: code, keywords: [python]}]
      user_feedbacks: [{name: mood}]
      turn_relation: [{name: turn}]
    decisions:
      - name: code
        priority: 9
        rules: {operator: AND, conditions: [{type: keyword, name: code}]}
        modelRefs: [{model: coder}]
      - name: unhappy
        priority: 5
        rules: {operator: AND, conditions: [{type: user_feedback, name: mood, label: wrong_answer}]}
        modelRefs: [{model: sorry}]
      - name: fresh
        rules: {operator: AND, conditions: [{type: turn_relation, name: turn, label: new}]}
        modelRefs: [{model: general}]
entrypoints:
  - {model_names: [words], recipe: words, default: true}
  - {model_names: [mixed], recipe: mixed}
global: {model_catalog: {ask: ASK}}
"""
SAID = {"role": "assistant", "content": "It is 41."}


def wrong(chosen: str, *others: str) -> Answer:
    return ChoiceAnswer(chosen, {chosen: 0.9, **dict.fromkeys(others, 0.1 / max(len(others), 1))}, 0.9)


def pipeline(ask: str = "all", **answers: Answer) -> tuple[Pipeline, ScriptedAsker, Metrics]:
    named = {key.replace("__", ":"): answer for key, answer in answers.items()}
    asker, metrics = ScriptedAsker(named), Metrics()
    return Pipeline(generation_of(plan_of(CONFIGURATION.replace("ASK", ask)), asker), metrics), asker, metrics


async def model(decided: Pipeline, name: str, *messages: Any, **headers: str) -> str:
    written = [{"role": "user", "content": one} if isinstance(one, str) else one for one in messages]
    verdict = await decided.decided(post(**headers), orjson.dumps({"model": name, "messages": written}))
    assert isinstance(verdict, Forward)
    return verdict.model


async def test_words_decide_and_nobody_is_asked() -> None:
    decided, asker, _ = pipeline()
    assert await model(decided, "words", "a Python question") == "coder"
    assert await model(decided, "words", "a pythonic question") == "general"
    assert not asker.asked


async def test_identity_decides_where_peers_are_trusted() -> None:
    decided, _, _ = pipeline()
    assert await model(decided, "words", "hi", **{"x-authz-user-groups": "ops"}) == "staff"
    untrusting = CONFIGURATION.replace("ASK", "all").replace("trust_headers: true", "trust_headers: false")
    other = Pipeline(generation_of(plan_of(untrusting)), Metrics())
    assert await model(other, "words", "hi", **{"x-authz-user-groups": "ops"}) == "general"


@pytest.mark.parametrize("ask", ["all", "needed"])
async def test_a_first_turn_is_new_and_gives_no_feedback(ask: str) -> None:
    decided, _, _ = pipeline(ask)
    assert await model(decided, "mixed", "hello") == "general"


@pytest.mark.parametrize("ask", ["all", "needed"])
async def test_later_turns_are_asked_about(ask: str) -> None:
    answers = {
        "user_feedback__mood": wrong("wrong_answer", "satisfied"),
        "turn_relation__turn": wrong("correction", "new"),
    }
    decided, asker, _ = pipeline(ask, **answers)
    assert await model(decided, "mixed", "6 times 7?", SAID, "that is wrong") == "sorry"
    (texts,) = asker.asked
    assert "Assistant: It is 41.\n\nUser: that is wrong" in texts.values()
    assert "User: 6 times 7?\n\nUser: that is wrong" in texts.values()


async def test_needed_asks_nothing_that_a_heuristic_has_settled() -> None:
    decided, _, _ = pipeline("needed")
    policy = decided.session()._generation.policies["mixed"]
    assert policy.needed is not None
    assert policy.heuristics is not None
    texts = dict.fromkeys(policy.stage.states, "text")
    settled, *_ = policy.needed.given(texts, policy.heuristics.read(RequestFacts(chat("python"))))
    assert not settled.deployments
    open_, *_ = policy.needed.given(texts, policy.heuristics.read(RequestFacts(chat("rust"))))
    assert open_.deployments


async def test_a_large_text_is_read_beside_the_event_loop() -> None:
    decided, _, _ = pipeline()
    assert await model(decided, "words", "word " * 60_000 + " traceback") == "coder"


def test_a_recipe_without_signals_stays_decided_beforehand() -> None:
    generation = generation_of(plan_of(CONFIGURATION.replace("ASK", "all")))
    assert not generation.policies["words"].foregone
    assert generation.policies["words"].openings == ()


@pytest.mark.parametrize(("text", "expected"), [("a python traceback", "coder"), ("hello", "general")])
async def test_a_recipe_that_asks_nothing_decides_at_once_and_counts_the_same(text: str, expected: str) -> None:
    at_once, _, counted = pipeline()
    body = orjson.dumps({"model": "words", "messages": [{"role": "user", "content": text}]})
    verdict = at_once.on_request(post(), body)
    assert isinstance(verdict, Forward)
    assert verdict.model == expected
    large = orjson.dumps({"model": "words", "messages": [{"role": "user", "content": text + " " * LARGE_BODY}]})
    later = at_once.on_request(post(), large)
    assert not isinstance(later, Forward | Reply)
    assert (await later) == msgspec.structs.replace(verdict, body=ANY)
    text = counted.render().decode()
    assert (
        f'llm_decision_match_total{{decision="{"code" if expected == "coder" else "rest"}",recipe="words"}} 2.0' in text
    )
    assert "llm_decision_evaluation_latency_seconds_count 2.0" in text
    assert "llm_model_routing_latency_seconds_count 2.0" in text


async def test_a_recipe_that_asks_does_not_decide_at_once() -> None:
    decided, _, _ = pipeline()
    body = orjson.dumps({"model": "mixed", "messages": [{"role": "user", "content": "python"}]})
    later = decided.on_request(post(), body)
    assert not isinstance(later, Forward | Reply)
    assert isinstance(await later, Forward)


async def test_the_time_of_signals_is_counted_once_a_request_that_has_any() -> None:
    decided, _, metrics = pipeline(turn_relation__turn=wrong("new"), user_feedback__mood=wrong("satisfied"))
    name = "llm_signal_extraction_latency_seconds_count"
    await model(decided, "general", "hi")
    assert metrics.registry.get_sample_value(name) == 0, "a model by its name has no rules"
    await model(decided, "words", "python")
    assert metrics.registry.get_sample_value(name) == 1
    await model(decided, "words", "python" * LARGE_BODY)
    await model(decided, "mixed", "6 times 7?", SAID, "thanks")
    assert metrics.registry.get_sample_value(name) == 3
