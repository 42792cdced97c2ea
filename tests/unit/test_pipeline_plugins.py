"""What a decision has done is counted and traced: the candidate that was picked, the plugins that ran."""

from __future__ import annotations

import itertools

import orjson
import pytest

from router.explaining.spans import Tracer
from router.observe import Metrics
from router.observe.tracing import SpanRecord
from router.pipeline import Pipeline
from router.wire.http import Head
from tests.support.plans import ScriptedAsker, generation_of, plan_of
from tests.unit.explaining.test_explaining_spans import Sink

CONFIGURATION = """\
version: v0.5
listeners: [{name: public, address: 127.0.0.1, port: 8801}]
providers: {models: [{name: general, backend_refs: [{endpoint: "http://127.0.0.1:9101/v1"}]}]}
recipes:
  - name: closed
    decisions: [{name: no, rules: {}, plugins: [{type: fast_response, configuration: {message: Closed.}}]}]
  - name: changed
    decisions:
      - name: changed
        rules: {}
        modelRefs: [{model: general}]
        plugins:
          - {type: header_mutation, configuration: {delete: [x-gone]}}
          - {type: system_prompt, configuration: {system_prompt: Be kind.}}
  - name: plain
    decisions: [{name: all, rules: {}, modelRefs: [{model: general}]}]
entrypoints:
  - {model_names: [closed], recipe: closed}
  - {model_names: [changed], recipe: changed}
  - {model_names: [plain], recipe: plain}
"""
PLUGINS = "llm_plugin_execution_total{"
SELECTED = "llm_model_selection_total{"


async def send(model: str, *, times: int = 2) -> tuple[list[str], SpanRecord]:
    """What is counted of some requests, and the span of the last, which is traced."""
    metrics, sink, ticks = Metrics(), Sink(), itertools.count(1)
    pipeline = Pipeline(
        generation_of(plan_of(CONFIGURATION), ScriptedAsker({})), metrics, clock=lambda: float(next(ticks))
    )
    body = orjson.dumps({"model": model, "messages": [{"role": "user", "content": "hi"}]})
    for number in range(times):
        if number == times - 1:
            pipeline.show_to([Tracer(sink, clock=lambda: 0.0, wall=lambda: 0)])
        await pipeline.decided(Head("POST", "/v1/chat/completions"), body)
    lines = metrics.render().decode().splitlines()
    return [line for line in lines if line.startswith((PLUGINS, SELECTED))], sink.spans[0]


def child(span: SpanRecord, name: str) -> SpanRecord | None:
    return next((one for one in span.children if one.name == f"semantic_router.{name}"), None)


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("closed", [PLUGINS + 'decision="no",plugin="fast_response",recipe="closed"} 2.0']),
        (
            "changed",
            [
                SELECTED + 'algorithm="static",decision="changed",model="general",recipe="changed"} 2.0',
                PLUGINS + 'decision="changed",plugin="system_prompt",recipe="changed"} 2.0',
                PLUGINS + 'decision="changed",plugin="header_mutation",recipe="changed"} 2.0',
            ],
        ),
        ("plain", [SELECTED + 'algorithm="static",decision="all",model="general",recipe="plain"} 2.0']),
        ("general", []),
        ("unknown", []),
    ],
)
async def test_what_was_done_is_counted_once(model: str, expected: list[str]) -> None:
    assert sorted((await send(model))[0]) == sorted(expected)


async def test_plugins_are_a_span_after_the_decision() -> None:
    _, span = await send("changed")
    ran, chosen = child(span, "plugin.execution"), child(span, "routing.decision")
    assert ran is not None
    assert chosen is not None
    assert ran.attributes == {"semantic_router.plugins": "system_prompt,header_mutation"}
    assert chosen.end == ran.start < ran.end == span.end


async def test_no_plugin_no_span() -> None:
    assert child((await send("plain"))[1], "plugin.execution") is None
    assert child((await send("unknown"))[1], "plugin.execution") is None
