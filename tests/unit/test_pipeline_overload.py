"""Requests of which a decision model had no room to read something, from their bodies to their answers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any, cast

import orjson
import pytest

from router.asking.answer_cache import AnswerCache
from router.asking.asker import Asker
from router.asking.errors import CallError, Overloaded, Unavailable
from router.asking.line import Line
from router.asking.overload.desk import Desk
from router.config.actions import Recording
from router.config.services import ReplaySettings
from router.explaining.debugging import trace_of
from router.explaining.explanation import explain
from router.explaining.notes import Notes
from router.explaining.preview import as_json
from router.explaining.records import Encoder, Recorder
from router.explaining.spans import request_span
from router.generation import Generation
from router.observe import Metrics
from router.pipeline import Pipeline
from router.verdict import Forward
from router.wire.http import Head, Reply
from tests.support.loop_clock import Loop
from tests.support.plans import connections, plan_of
from tests.unit.test_pipeline import CHAT, MESSAGES, body, post, value

RESPONSES = "/v1/responses"
CONFIG = """\
version: v0.5
listeners: [{{name: public, address: 127.0.0.1, port: 8801}}]
providers:
  models:
    - {{name: coder, backend_refs: [{{endpoint: "http://127.0.0.1:9101/v1"}}]}}
    - {{name: claude, api_format: anthropic, backend_refs: [{{endpoint: "http://127.0.0.1:9102/v1"}}]}}
recipes:
  - name: guarded
    signals:
      keywords: [{{name: banned, operator: OR, keywords: [xyzzy]}}]
      systemone:
        - {{name: attack, question: {{type: noul, instructions: An attack?}}, predicate: {{gte: 0.5}}}}
        - {{name: is_code, question: {{type: noul, instructions: Is it code?}}, predicate: {{gte: 0.5}}}}
    decisions:
      - name: banned
        priority: 30
        rules: {{operator: OR, conditions: [{{type: keyword, name: banned}}]}}
        plugins: [{{type: fast_response, configuration: {{message: banned}}}}]
      - name: block
        priority: 20
        rules: {{operator: OR, conditions: [{{type: systemone, name: attack}}]}}
        plugins: [{{type: fast_response, configuration: {{message: refused}}}}]
      - name: code
        priority: 10
        rules: {{operator: OR, conditions: [{{type: systemone, name: is_code}}]}}
        modelRefs: [{{model: {rest}}}]
      - {{name: rest, rules: {{}}, modelRefs: [{{model: {rest}}}]}}
entrypoints: [{{model_names: [auto], recipe: guarded, default: true}}]
global:
  model_catalog:
    on_signal_overload: {{{overload}}}
"""
ROUTING = CONFIG.replace(
    "plugins: [{{type: fast_response, configuration: {{message: refused}}}}]", "modelRefs: [{{model: coder}}]"
)
START = 100.0
RETRY = "action: retry, wait_ms: 2000"

Says = Callable[[float], CallError | float | None]


class House:
    """A pipeline over one model that says, by the time, an error or how probable everything is."""

    def __init__(self, says: Says, config: str = CONFIG, overload: str = RETRY, rest: str = "coder") -> None:
        self.loop, self.says, self.seen = Loop(), says, 0
        self.loop.now = START
        self.desk, self.metrics = Desk(self.loop), Metrics()
        self.plan = plan_of(config.format(overload=overload, rest=rest))
        line = Line(self, cache=AnswerCache(clock=self.loop.time), clock=self.loop.time, desk=self.desk, gate="g")
        asker = Asker(dict.fromkeys(self.plan.deployments, line), clock=self.loop.time)
        self.generation = Generation(self.plan, connections(), asker, self.desk)
        self.pipeline = Pipeline(self.generation, self.metrics, clock=self.loop.time)

    @property
    def waited(self) -> float:
        return self.loop.now - START

    async def decide(self, sent: bytes, timeout_s: float, told: object = None) -> bytes:
        self.seen += 1
        said = self.says(self.waited)
        if isinstance(said, CallError):
            raise said
        answers = {name: {"type": "noul", "noul": said} for name in orjson.loads(sent)["questions"]}
        return orjson.dumps({"answers": answers})

    def start(self, path: str = CHAT, text: str = "hello", notes: Notes | None = None) -> asyncio.Task[Reply | Forward]:
        head = post(path)
        sent = orjson.dumps({"model": "auto", "input": text}) if path == RESPONSES else body(text=text, max_tokens=5)
        return asyncio.create_task(self.pipeline.decided(head, sent, notes=notes))

    async def run(self, task: asyncio.Task[Reply | Forward]) -> Reply | Forward:
        await _settle()
        while not task.done() and self.loop.timers:
            self.loop.run_next()
            await _settle()
        return task.result()

    async def decided(self, path: str = CHAT, text: str = "hello", notes: Notes | None = None) -> Reply | Forward:
        return await self.run(self.start(path, text, notes))


async def _settle() -> None:
    for _ in range(30):
        await asyncio.sleep(0)


def busy(until: float = 99.0, then: float = 0.1) -> Says:
    return lambda now: Overloaded("no room") if now < until else then


async def test_a_request_waits_and_is_read_as_without_overload() -> None:
    for then, goes in ((0.1, "coder"), (0.9, None)):
        house = House(busy(0.7, then))
        found = await house.decided()
        assert (found.model if isinstance(found, Forward) else None) == goes
        assert house.waited == pytest.approx(1.0)
        assert value(house.metrics, 'vsr_signal_overload_waits_total{deployment="builtin",outcome="ok"}') == 1
        assert value(house.metrics, "vsr_signal_overload_retryable_total") == 0


@pytest.mark.parametrize(
    ("path", "rest", "status", "code"),
    [(CHAT, "coder", 429, "overloaded"), (RESPONSES, "coder", 429, "overloaded"), (MESSAGES, "claude", 529, None)],
)
async def test_what_could_be_refused_gets_the_error_that_clients_retry(
    path: str, rest: str, status: int, code: str | None
) -> None:
    house = House(busy(), rest=rest)
    found = await house.decided(path)
    assert isinstance(found, Reply)
    error = orjson.loads(found.body)["error"]
    assert (found.status, error.get("code"), error["type"]) == (status, code, "overloaded_error")
    assert (found.headers["retry-after"], found.headers["x-vsr-warnings"]) == ("2", "guard_overloaded")
    name = {CHAT: "chat", RESPONSES: "responses", MESSAGES: "messages"}[path]
    assert value(house.metrics, f'vsr_signal_overload_retryable_total{{format="{name}"}}') == 1
    assert value(house.metrics, 'vsr_signal_overload_waits_total{deployment="builtin",outcome="overloaded"}') == 1
    assert value(house.metrics, "llm_decision_match_total") == 0
    assert value(house.metrics, 'llm_request_errors_total{reason="overloaded"}') == 1


async def test_without_a_wait_the_error_comes_at_once() -> None:
    house = House(busy(), overload="action: retry, wait_ms: 0, retry_after_seconds: 9")
    found = await house.decided()
    assert isinstance(found, Reply)
    assert (found.status, found.headers["retry-after"]) == (429, "9")
    assert (house.seen, house.waited) == (1, 0.0)
    assert value(house.metrics, "vsr_signal_overload_waits_total") == 0


async def test_a_routing_question_left_unread_lets_the_request_go_on() -> None:
    house = House(busy(), ROUTING)
    found = await house.decided()
    assert isinstance(found, Forward)
    assert found.metadata["decision"] == "rest"
    assert house.seen == 4, "it waits for room nevertheless"


async def test_a_rule_that_matches_refuses_and_nobody_waits() -> None:
    house = House(busy())
    found = await house.decided(text="say xyzzy")
    assert isinstance(found, Reply)
    assert found.status == 200
    assert b"banned" in found.body
    assert (house.seen, house.waited, house.desk.waiting) == (1, 0.0, 0)


async def test_other_failures_keep_their_outcome() -> None:
    for says in (lambda now: Unavailable("gone"), lambda now: Overloaded("x") if now < 0.3 else Unavailable("gone")):
        found = await House(cast(Says, says)).decided()
        assert isinstance(found, Forward), "a rule that fails open lets it through, as it says"


async def test_a_prompt_that_no_model_takes_is_told_so_at_once() -> None:
    house = House(busy(), CONFIG.replace("name: coder, ", "name: coder, context_window_size: 100, "))
    found = await house.decided(text="many words " * 500)
    assert isinstance(found, Reply)
    assert found.status == 400
    assert orjson.loads(found.body)["error"]["code"] == "context_length_exceeded"
    assert (house.seen, house.waited) == (0, 0.0)


async def test_with_refuse_nothing_changes() -> None:
    house = House(busy(), overload="action: refuse, wait_ms: 2000")
    found = await house.decided()
    assert isinstance(found, Forward)
    assert (house.seen, house.waited) == (1, 0.0)


async def test_a_client_that_leaves_while_it_waits_leaves_nothing_behind() -> None:
    house = House(busy())
    task = house.start()
    await _settle()
    assert house.desk.waiting == 1
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await _settle()
    assert (house.desk.waiting, house.loop.timers) == (0, 0)
    await asyncio.wait_for(house.generation.idle(), 1)
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_a_request_that_waits_stays_on_its_configuration() -> None:
    house = House(busy(0.7))
    task = house.start()
    await _settle()
    other = House(busy(), overload="action: refuse")
    house.pipeline.swap(other.generation)
    idle = asyncio.create_task(house.generation.idle())
    await _settle()
    assert not idle.done(), "the old configuration is in use as long as somebody waits on it"
    assert isinstance(await house.run(task), Forward)
    await asyncio.wait_for(idle, 1)
    assert other.seen == 0


async def noted(until: float) -> tuple[House, Notes]:
    house, notes = House(busy(until)), Notes()
    await house.decided(notes=notes)
    return house, notes


@pytest.mark.parametrize(("until", "ended", "code"), [(0.3, "ok", None), (99.0, "overloaded", "overloaded")])
async def test_every_surface_tells_of_the_wait(until: float, ended: str, code: str | None) -> None:
    house, notes = await noted(until)
    compiled = house.generation.policies["guarded"].compiled
    preview = as_json(explain(house.plan, compiled, notes), house.plan, trace=False)
    wait = preview["metrics"]["overload_wait"]
    asked_again = 1 if ended == "ok" else 3
    (calls,) = wait["calls"]
    assert (wait["ended"], preview["error"]) == (ended, code)
    assert wait["ms"] == pytest.approx(500 if ended == "ok" else 2000, abs=10)
    assert calls == {"deployment": "builtin", "outcome": ended, "calls": 1, "asked_again": asked_again}
    assert len(preview["metrics"]["calls"]) == 1 + asked_again
    trace = orjson.loads(trace_of(house.plan, notes))
    assert trace["overload_wait"]["ended"] == ended
    signals = next(span for span in request_span(house.plan, notes, 0).children if "signal.evaluation" in span.name)
    assert signals.attributes["semantic_router.overload.outcome"] == ended


async def test_a_record_tells_of_the_wait() -> None:
    house, notes = await noted(0.3)
    put: list[Any] = []

    def keep(item: object) -> bool:
        put.append(item)
        return True

    writer = SimpleNamespace(put=keep)
    settings = ReplaySettings("", 100, 0, Recording(True))
    Recorder(settings, cast(Any, writer), clock=lambda: 0.0).seen(house.plan, Head("POST", CHAT, {}), b"", notes)
    row: Any = Encoder()(put[0])
    detail: Mapping[str, Any] = row.detail
    assert detail["route_diagnostics"]["overload_wait"]["ended"] == "ok"
