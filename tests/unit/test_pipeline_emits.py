"""Retention: what a decision keeps of a turn and its conversation, up to what others are told about it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import orjson
import pytest

from router.config.actions import Recording
from router.config.services import ReplaySettings
from router.explaining.explanation import explain
from router.explaining.notes import Notes
from router.explaining.preview import as_json
from router.explaining.records import Recorder, Sketch
from router.explaining.spans import request_span
from router.observe import Metrics
from router.pipeline import Pipeline
from router.replying import PREFER_PREFIX
from router.verdict import Forward
from router.wire.http import Head, Reply
from tests.support.plans import generation_of, plan_of

CONFIG = """\
version: v0.5
listeners: [{name: public, address: 127.0.0.1, port: 8801}]
providers:
  models:
    - {name: small, backend_refs: [{endpoint: "http://127.0.0.1:9101/v1"}]}
    - {name: large, backend_refs: [{endpoint: "http://127.0.0.1:9101/v1"}]}
    - {name: other, backend_refs: [{endpoint: "http://127.0.0.1:9101/v1"}]}
recipes:
  - name: r
    signals:
      keywords:
        - {name: hard, keywords: [hard]}
        - {name: elsewhere, keywords: [elsewhere]}
        - {name: secret, keywords: [secret]}
        - {name: refused, keywords: [refused]}
    decisions:
      - name: refuse
        priority: 9
        rules: {type: keyword, name: refused}
        plugins: [{type: fast_response, configuration: {message: No.}}]
        emits: [{kind: retention, retention: {drop: true}}]
      - name: private
        priority: 8
        rules: {type: keyword, name: secret}
        modelRefs: [{model: large}]
        emits: [{kind: retention, retention: {drop: true}}]
      - name: away
        priority: 7
        rules: {type: keyword, name: elsewhere}
        modelRefs: [{model: other}]
      - name: hard
        priority: 6
        rules: {type: keyword, name: hard}
        modelRefs: [{model: large}]
        emits: [{kind: retention, retention: {prefer_prefix_retention: true}}]
      - name: rest
        rules: {}
        modelRefs: [{model: small}, {model: large}]
        emits: [{kind: retention, retention: {keep_current_model: true}}]
entrypoints: [{model_names: [auto], recipe: r, default: true}]
"""


def pipeline(text: str = CONFIG) -> Pipeline:
    return Pipeline(generation_of(plan_of(text)), Metrics())


async def say(made: Pipeline, text: str, session: str = "1", notes: Notes | None = None) -> Any:
    head = Head("POST", "/v1/chat/completions", {"x-session-id": session})
    body = orjson.dumps({"model": "auto", "messages": [{"role": "user", "content": text}]})
    return await made.decided(head, body, notes=notes)


async def model(made: Pipeline, text: str, session: str = "1") -> str:
    forward = await say(made, text, session)
    assert isinstance(forward, Forward)
    return forward.model


class TestKeepCurrentModel:
    async def test_a_conversation_stays_on_the_model_that_another_decision_gave_it(self) -> None:
        made = pipeline()
        assert await model(made, "hello") == "small"
        assert await model(made, "something hard") == "large"
        assert await model(made, "thank you") == "large"
        assert await model(made, "hello", session="2") == "small"

    async def test_not_on_one_that_is_no_candidate(self) -> None:
        made = pipeline()
        assert await model(made, "go elsewhere") == "other"
        assert await model(made, "thank you") == "small"

    async def test_a_selector_of_its_own_gives_way(self) -> None:
        weighted = CONFIG.replace(
            "modelRefs: [{model: small}, {model: large}]",
            "modelRefs: [{model: small, weight: 1000000}, {model: large, weight: 0.000001}]",
        )
        made = pipeline(weighted)
        assert await model(made, "something hard") == "large"
        assert await model(made, "thank you") == "large"

    async def test_false_keeps_nothing(self) -> None:
        made = pipeline(CONFIG.replace("keep_current_model: true", "keep_current_model: false"))
        assert await model(made, "something hard") == "large"
        assert await model(made, "thank you") == "small"
        assert not made.session()._generation.policies["r"].keeps_models

    async def test_it_is_told(self) -> None:
        assert (await say(pipeline(), "hello")).metadata["retention_keep_current_model"] == "true"


class TestDrop:
    async def test_the_turn_leaves_no_model_behind(self) -> None:
        made = pipeline()
        assert await model(made, "my secret") == "large"
        assert await model(made, "thank you") == "small"

    async def test_it_is_told(self) -> None:
        forward = await say(pipeline(), "my secret")
        assert forward.metadata["retention_drop"] == "true"
        assert PREFER_PREFIX not in forward.set_headers

    @pytest.mark.parametrize(("text", "captured"), [("my secret", False), ("something hard", True)])
    async def test_the_turn_leaves_no_text_in_records(self, text: str, captured: bool) -> None:
        kept: list[Sketch] = []
        writer = SimpleNamespace(put=lambda sketch: not kept.append(sketch))  # type: ignore[func-returns-value]
        made = pipeline()
        made.show_to([Recorder(ReplaySettings("", 100, 0, Recording(request_body=True)), cast(Any, writer))])
        await say(made, text)
        (sketch,) = kept
        assert (sketch.body is not None) is captured

    async def test_an_answer_of_our_own_tells_it_itself(self) -> None:
        reply = await say(pipeline(), "refused")
        assert isinstance(reply, Reply)
        assert reply.headers["x-vsr-retention-drop"] == "true"


@pytest.mark.parametrize("value", ["true", "false"])
async def test_whoever_picks_an_endpoint_is_told_about_the_prefix(value: str) -> None:
    made = pipeline(CONFIG.replace("prefer_prefix_retention: true", f"prefer_prefix_retention: {value}"))
    forward = await say(made, "something hard")
    assert forward.set_headers[PREFER_PREFIX] == value
    assert forward.metadata["retention_prefer_prefix"] == value


async def test_a_decision_that_emits_nothing_tells_nothing() -> None:
    forward = await say(pipeline(), "go elsewhere")
    assert not [key for key in forward.metadata if key.startswith("retention")]


async def test_it_is_explained() -> None:
    made, notes = pipeline(), Notes()
    await say(made, "my secret", notes=notes)
    plan = plan_of(CONFIG)
    policy = made.session()._generation.policies["r"]
    body = as_json(explain(plan, policy.compiled, notes), plan, trace=False)
    assert body["emits"] == [{"kind": "retention", "retention": {"drop": True}}]
    attributes = request_span(plan, notes, 0).attributes
    assert attributes["semantic_router.retention.drop"] == "true"
