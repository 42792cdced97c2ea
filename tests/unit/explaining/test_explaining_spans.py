"""Spans of one request: their names, their times, and nothing of what the client said."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import orjson
import pytest

from router.asking.errors import CallOutcome
from router.asking.report import CallReport
from router.explaining.notes import Notes
from router.explaining.spans import Tracer, request_span
from router.explaining.watching import Seen
from router.observe import Metrics
from router.observe.tracing import SpanRecord
from router.pipeline import Pipeline
from router.questions import Answer, NoulAnswer, QuestionType, Unknown, UnknownReason
from router.signals.reading import Reading
from router.verdict import AnswerWatch, Forward
from router.wire.http import Head
from tests.support.plans import PLAIN, ScriptedAsker, generation_of, plan_of

CANARY = "canary-808"
YES, LATE = NoulAnswer(0.9), Unknown(UnknownReason.TIMEOUT)
PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


class Sink:
    def __init__(self) -> None:
        self.spans: list[SpanRecord] = []
        self.headers: list[Mapping[str, str]] = []
        self.later: list[SpanRecord] = []

    def record(self, span: SpanRecord, headers: Mapping[str, str]) -> object:
        self.spans.append(span)
        self.headers.append(headers)
        return span

    def follow(self, parent: object, span: SpanRecord) -> None:
        assert parent is self.spans[-1]
        self.later.append(span)


async def traced(answer: Answer = YES, model: str = "auto") -> SpanRecord:
    ticks = itertools.count(1)
    clock = lambda: float(next(ticks))  # noqa: E731
    sink = Sink()
    pipeline = Pipeline(generation_of(plan_of(), ScriptedAsker({"is_code": answer})), Metrics(), clock=clock)
    pipeline.show_to([Tracer(sink, clock=lambda: 0.0, wall=lambda: 1_000_000_000_000)])
    body = orjson.dumps({"model": model, "messages": [{"role": "user", "content": CANARY}], "user": CANARY})
    await pipeline.decided(Head("POST", "/v1/chat/completions", {"traceparent": PARENT}), body)
    assert [headers["traceparent"] for headers in sink.headers] == [PARENT]
    (span,) = sink.spans
    assert CANARY not in repr(span)
    return span


def names(span: SpanRecord) -> list[str]:
    return [child.name.removeprefix("semantic_router.") for child in span.children]


async def test_a_request_is_a_span_with_its_stages_as_children() -> None:
    span = await traced()
    assert span.name == "semantic_router.request.received"
    assert names(span) == ["signal.evaluation", "decision.evaluation", "routing.decision", "backend.selection"]
    assert names(span.children[0]) == ["signal.systemone"]
    assert span.attributes["semantic_router.decision"] == "code"
    assert span.attributes["semantic_router.model"] == "coder"
    assert span.children[0].children[0].attributes["semantic_router.signals.matched"] == 1
    assert span.error is None


async def test_children_lie_within_their_parent() -> None:
    def check(span: SpanRecord) -> None:
        assert span.start <= span.end
        for child in span.children:
            assert span.start <= child.start
            assert child.end <= span.end
            check(child)

    span = await traced()
    check(span)
    assert span.start == 1_000_000_000_000 + 1_000_000_000


async def test_an_error_and_an_unknown() -> None:
    span = await traced(LATE, "strict")
    assert span.error == "decision_unresolved"
    assert names(span) == ["signal.evaluation", "decision.evaluation"]
    assert span.children[0].children[0].attributes["semantic_router.signals.unknown"] == 1


async def test_a_name_that_a_client_made_up_is_not_told() -> None:
    span = await traced(model=CANARY)
    assert (span.error, names(span)) == ("model_not_found", [])


async def test_a_model_by_its_name_is_chosen_without_a_recipe() -> None:
    span = await traced(model="general")
    assert names(span) == ["routing.decision", "backend.selection"]
    assert "semantic_router.recipe" not in span.attributes


COMPUTED = """\
version: v0.5
listeners: [{name: public, address: 127.0.0.1, port: 8801}]
providers: {models: [{name: m, backend_refs: [{endpoint: "http://127.0.0.1:1/v1"}]}]}
recipes:
  - name: c
    signals:
      keywords:
        - {name: greeting, operator: OR, keywords: [hello]}
        - {name: parting, operator: OR, keywords: [goodbye]}
      context: [{name: long, min_tokens: 1000}]
    decisions:
      - name: d
        rules:
          operator: OR
          conditions: [{type: keyword, name: greeting}, {type: keyword, name: parting}, {type: context, name: long}]
        modelRefs: [{model: m}]
      - {name: rest, rules: {}, modelRefs: [{model: m}]}
entrypoints: [{model_names: [auto], recipe: c, default: true}]
"""


async def test_a_recipe_that_asks_nothing_has_spans_of_what_it_computes() -> None:
    ticks = itertools.count(1)
    sink = Sink()
    pipeline = Pipeline(generation_of(plan_of(COMPUTED)), Metrics(), clock=lambda: float(next(ticks)))
    pipeline.show_to([Tracer(sink, clock=lambda: 0.0, wall=lambda: 0)])
    body = orjson.dumps({"model": "auto", "messages": [{"role": "user", "content": f"hello {CANARY}"}]})
    await pipeline.decided(Head("POST", "/v1/chat/completions"), body)
    (span,) = sink.spans
    assert names(span) == ["signal.evaluation", "decision.evaluation", "routing.decision", "backend.selection"]
    evaluation = span.children[0]
    assert names(evaluation) == ["signal.keyword", "signal.context"]
    words, length = evaluation.children
    prefix = "semantic_router.signals"
    assert words.attributes == {prefix: 2, f"{prefix}.matched": 1, f"{prefix}.unknown": 0}
    assert length.attributes == {prefix: 1, f"{prefix}.matched": 0, f"{prefix}.unknown": 0}
    assert span.start < evaluation.start < evaluation.end < span.children[1].end
    assert {(child.start, child.end) for child in evaluation.children} == {(evaluation.start, evaluation.end)}
    assert CANARY not in repr(span)


def test_what_is_computed_comes_before_what_is_asked() -> None:
    calls = (CallReport("builtin", CallOutcome.OK, 3.0, 1, 1, True),)
    times = Notes(recipe="c", computed_at=8.0, computing=1.5, asked_at=10.0, answered_at=20.0, calls=calls)
    (evaluation, _) = request_span(plan_of(COMPUTED), times, 0).children
    assert [(child.name.rpartition(".")[2], child.start, child.end) for child in evaluation.children] == [
        ("keyword", 8 * SECOND, 19 * SECOND // 2),
        ("context", 8 * SECOND, 19 * SECOND // 2),
    ]
    assert (evaluation.start, evaluation.end) == (8 * SECOND, 20 * SECOND)


def test_a_family_is_as_long_as_the_longest_of_its_calls() -> None:
    calls = tuple(CallReport("builtin", CallOutcome.OK, seconds, 1, 1, True) for seconds in (3.0, 1.0))
    notes = Notes(recipe="ask", calls=calls, asked_at=10.0, answered_at=20.0)
    evaluation = request_span(plan_of(), notes, 0).children[0]
    assert [(child.start, child.end) for child in evaluation.children] == [(10 * SECOND, 13 * SECOND)]


def test_a_guard_that_failed_closed_is_no_match() -> None:
    readings = {"is_code": Reading(QuestionType.NOUL, True, by_policy=True)}
    notes = Notes(recipe="ask", readings=readings, asked_at=1.0, answered_at=2.0)
    (family,) = request_span(plan_of(), notes, 0).children[0].children
    assert family.attributes["semantic_router.signals.matched"] == 0
    assert family.attributes["semantic_router.signals.failed_closed"] == 1


def test_notes_of_nothing() -> None:
    sink = Sink()
    assert Tracer(sink).seen(plan_of(), Head("POST", "/"), b"", Notes()) == Seen({})
    assert sink.spans[0].children == ()


TRACING = "global: {services: {observability: {tracing: {enabled: true, endpoint: 'http://127.0.0.1:1/v1/traces'}}}}\n"
SECOND = 1_000_000_000


async def forwarded(sink: Sink, text: str = PLAIN + TRACING) -> AnswerWatch | None:
    """Who looks on while a request is answered. The clock shows 1, 2, 3 and so on from the verdict on."""
    ticks = itertools.count()
    pipeline = Pipeline(generation_of(plan_of(text), ScriptedAsker({"is_code": YES})), Metrics(), clock=lambda: 0.0)
    pipeline.show_to([Tracer(sink, clock=lambda: float(next(ticks)), wall=lambda: 0)])
    body = orjson.dumps({"model": "auto", "messages": [{"role": "user", "content": CANARY}]})
    verdict = await pipeline.decided(Head("POST", "/v1/chat/completions"), body)
    assert isinstance(verdict, Forward)
    return verdict.watch


async def test_an_answer_is_two_spans() -> None:
    sink = Sink()
    watch = await forwarded(sink)
    assert watch is not None
    watch.sent()
    assert watch.headers(200, {"x-canary": CANARY}) is False
    watch.body(CANARY.encode(), last=True)
    watch.over(left=False)
    wait, seen = sink.later
    assert (wait.name, wait.start, wait.end) == ("semantic_router.upstream.request", SECOND, 2 * SECOND)
    assert (seen.name, seen.start, seen.end) == ("semantic_router.response.processing", 2 * SECOND, 3 * SECOND)
    chosen = {"semantic_router.recipe": "ask", "semantic_router.decision": "code", "semantic_router.model": "coder"}
    assert wait.attributes == {**chosen, "semantic_router.status": 200}
    assert seen.attributes == {**chosen, "semantic_router.watched": True}
    assert (wait.error, seen.error) == (None, None)
    assert CANARY not in repr(sink.later)


async def test_a_backends_error() -> None:
    sink = Sink()
    watch = await forwarded(sink)
    assert watch is not None
    watch.sent()
    watch.headers(503, {})
    assert [span.error for span in sink.later] == ["server_error"]


@pytest.mark.parametrize(("left", "error"), [(False, "no_answer"), (True, "not_watched")])
async def test_no_answer(left: bool, error: str) -> None:
    sink = Sink()
    watch = await forwarded(sink)
    assert watch is not None
    watch.sent()
    watch.over(left=left)
    assert [(span.name, span.error) for span in sink.later] == [("semantic_router.upstream.request", error)]


async def test_answers_that_envoy_does_not_tell_of_are_not_waited_for() -> None:
    assert await forwarded(Sink(), PLAIN) is None
