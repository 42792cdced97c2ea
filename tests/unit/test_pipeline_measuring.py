"""Requests whose backends are measured: who watches them, and what that does to the next one."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from router.acting.latencies import Latencies
from router.acting.standing import Why
from router.cli.contestants import candidates
from router.explaining.candidates import candidates_json
from router.explaining.explanation import explain
from router.explaining.notes import Notes
from router.explaining.preview import as_json
from router.observe import Metrics
from router.pipeline import Pipeline
from router.verdict import Forward
from router.wire.http import Head, Reply
from tests.support.plans import ScriptedAsker, generation_of, plan_of

HEAD = Head("POST", "/v1/chat/completions", {})
CONFIG = """\
version: v0.5
listeners: [{name: public, address: 127.0.0.1, port: 8801}]
providers:
  models:
    - {name: slow, backend_refs: [{endpoint: "http://127.0.0.1:9101/v1"}]}
    - {name: quick, backend_refs: [{endpoint: "http://127.0.0.1:9102/v1"}]}
    - {name: other, backend_refs: [{endpoint: "http://127.0.0.1:9103/v1"}]}
recipes:
  - name: default
    decisions:
      - name: all
        rules: {}
        modelRefs: [{model: slow}, {model: quick}]
        algorithm: {type: latency_aware, session_affinity: false, latency_aware: {min_answers: 1}}
entrypoints: [{model_names: [auto], recipe: default, default: true}]
"""
STRICT = CONFIG.replace(
    "{type: latency_aware, session_affinity: false, latency_aware: {min_answers: 1}}",
    "{type: multi_factor, session_affinity: false, "
    "multi_factor: {min_answers: 1, on_no_candidates: fail, slo: {max_error_rate: 0.5}}}",
)


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


class Measuring:
    """A pipeline with a clock of its own, and backends that answer as they are told."""

    def __init__(self, text: str = CONFIG) -> None:
        self.clock = Clock()
        self.generation = generation_of(plan_of(text), ScriptedAsker({}))
        self.metrics = Metrics()
        self.pipeline = Pipeline(self.generation, self.metrics, clock=self.clock)

    async def send(self, model: str = "auto", notes: Notes | None = None, **more: Any) -> Reply | Forward:
        body = {"model": model, "messages": [{"role": "user", "content": "hi"}], **more}
        return await self.pipeline.decided(HEAD, orjson.dumps(body), None, notes)

    async def answered(self, after_s: float, status: int = 200) -> str:
        """The model of a request that is answered after a time."""
        verdict = await self.send()
        assert isinstance(verdict, Forward)
        assert verdict.watch is not None
        verdict.watch.sent()
        self.clock.now += after_s
        verdict.watch.headers(status, {"content-type": "application/json"})
        verdict.watch.over(left=False)
        return verdict.model


async def test_the_time_to_the_first_byte_of_a_stream_is_counted() -> None:
    measuring = Measuring()
    for after_s, content_type in ((0.2, "text/event-stream"), (3.0, "application/json")):
        verdict = await measuring.send("quick", stream=True)
        assert isinstance(verdict, Forward)
        assert verdict.watch is not None
        verdict.watch.sent()
        measuring.clock.now += after_s
        verdict.watch.headers(200, {"content-type": content_type})
        verdict.watch.over(left=False)
    told = measuring.metrics.render().decode()
    assert 'llm_model_ttft_seconds_count{model="quick"} 1.0' in told
    assert 'llm_model_ttft_seconds_bucket{le="0.25",model="quick"} 1.0' in told


async def test_each_is_tried_and_then_the_fastest_answers() -> None:
    measuring = Measuring()
    assert [await measuring.answered(2.0), await measuring.answered(0.5)] == ["slow", "quick"]
    assert {await measuring.answered(0.5) for _ in range(5)} == {"quick"}


async def test_a_model_that_fails_is_left() -> None:
    measuring = Measuring()
    await measuring.answered(0.1)
    await measuring.answered(0.5)
    for _ in range(5):
        assert await measuring.answered(0.0, status=503) == "slow"
    assert await measuring.answered(0.5) == "quick"


async def test_only_models_that_a_selector_reads_are_watched() -> None:
    measuring = Measuring()
    other, named = await measuring.send("other"), await measuring.send("slow")
    assert isinstance(other, Forward)
    assert isinstance(named, Forward)
    assert other.watch is None
    assert named.watch is not None


async def test_a_conversation_keeps_its_model() -> None:
    measuring = Measuring(CONFIG.replace("session_affinity: false, ", ""))
    await measuring.answered(2.0)
    await measuring.answered(0.5)
    assert await measuring.answered(1.0) == "slow"
    notes = Notes()
    await measuring.send(notes=notes)
    assert notes.contestants is not None
    assert notes.contestants.why is Why.CONVERSATION


async def test_what_was_measured_outlives_a_reload() -> None:
    measuring = Measuring()
    await measuring.answered(2.0)
    await measuring.answered(0.5)
    reloaded = CONFIG.replace("name: all", "name: everything")
    measuring.pipeline.swap(generation_of(plan_of(reloaded), ScriptedAsker({})))
    assert await measuring.answered(0.5) == "quick"


async def test_no_candidate_within_the_limits() -> None:
    measuring = Measuring(STRICT)
    await measuring.answered(0.1, status=500)
    await measuring.answered(0.1, status=500)
    notes = Notes()
    verdict = await measuring.send(notes=notes)
    assert isinstance(verdict, Reply)
    assert (verdict.status, orjson.loads(verdict.body)["error"]["code"]) == (503, "no_eligible_model")
    assert notes.contestants is not None
    assert candidates_json(notes.contestants)["picked"] is None
    assert [one.exceeds for one in notes.contestants.all] == [("max_error_rate",)] * 2


@pytest.mark.parametrize("text", [CONFIG, STRICT])
async def test_an_explanation_shows_how_candidates_stood(text: str) -> None:
    measuring = Measuring(text)
    await measuring.answered(2.0)
    watched = Pipeline(measuring.generation, Metrics(), clock=measuring.clock, latencies=measuring.pipeline.latencies)
    notes = Notes()
    await watched.decided(HEAD, b'{"model":"auto","messages":[{"role":"user","content":"yo"}]}', None, notes)
    policy = measuring.generation.policies["default"]
    explanation = explain(measuring.generation.plan, policy.compiled, notes)
    found = as_json(explanation, measuring.generation.plan, trace=False)["selection"]
    assert (found["picked"], found["why"], found["reason"]) == (
        "quick",
        "unmeasured",
        "it is not measured yet, so it is tried",
    )
    slow = found["candidates"][0]
    assert (slow["model"], slow["measured"], slow["answers"], slow["error_rate"]) == ("slow", True, 1, 0.0)
    assert slow["factors"]["response_s"]["value"] == pytest.approx(2.0, rel=0.075)
    table = candidates(explanation)
    assert table is not None
    assert table.row_count == 2


async def test_looking_changes_nothing() -> None:
    measuring = Measuring()
    before = Latencies(measuring.clock)
    await Pipeline(measuring.generation, Metrics(), latencies=before).decided(HEAD, b'{"model":"auto","messages":[]}')
    assert before.measured(measuring.generation.plan.models["slow"]).in_flight == 0
