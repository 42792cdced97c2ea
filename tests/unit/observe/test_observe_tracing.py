"""Spans as a collector gets them: over HTTP, under the caller's own trace."""

from __future__ import annotations

import http.server
import sys
import threading
from collections.abc import Iterator

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from router.observe.tracing import SpanRecord, Spans, TracingUnavailable

PARENT = {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}
UNSAMPLED = {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"}
SPAN = SpanRecord("a", 1_000, 9_000, {"n": 1}, (SpanRecord("b", 2_000, 3_000),), "no_route")


def sent(headers: dict[str, str], *, sample: float = 1.0) -> tuple[ReadableSpan, ...]:
    exporter = InMemorySpanExporter()
    spans = Spans("", service="s", version="1", sample=sample, exporter=exporter)
    spans.record(SPAN, headers)
    spans.close()
    return exporter.get_finished_spans()


def test_a_span_belongs_to_the_callers_trace() -> None:
    child, root = sent(PARENT)
    assert root.parent is not None
    assert format(root.parent.span_id, "016x") == "b7ad6b7169203331"
    assert format(root.context.trace_id, "032x") == "0af7651916cd43dd8448eb211c80319c"
    assert child.parent is not None
    assert child.parent.span_id == root.context.span_id
    assert (root.start_time, root.end_time, dict(root.attributes or {})) == (1_000, 9_000, {"n": 1})
    assert root.status.description == "no_route"


@pytest.mark.parametrize(("sample", "count"), [(1.0, 2), (0.0, 0)])
def test_a_later_child_belongs_to_what_was_recorded(sample: float, count: int) -> None:
    exporter = InMemorySpanExporter()
    spans = Spans("", service="test", version="0", sample=sample, exporter=exporter)
    spans.follow(spans.record(SpanRecord("whole", 1, 5), {}), SpanRecord("later", 6, 7, error="no_answer"))
    spans.close()
    found = {span.name: span for span in exporter.get_finished_spans()}
    assert len(found) == count
    if found:
        parent = found["later"].parent
        assert parent is not None
        assert parent.span_id == found["whole"].context.span_id
        assert (found["later"].start_time, found["later"].status.is_ok) == (6, False)


def test_without_a_parent_a_trace_begins() -> None:
    _, root = sent({"traceparent": "nonsense"})
    assert root.parent is None


@pytest.mark.parametrize(("headers", "sample", "count"), [({}, 0.0, 0), (PARENT, 0.0, 2), (UNSAMPLED, 1.0, 0)])
def test_the_parent_decides_what_is_sampled(headers: dict[str, str], sample: float, count: int) -> None:
    assert len(sent(headers, sample=sample)) == count


@pytest.fixture
def collector() -> Iterator[tuple[str, list[bytes]]]:
    got: list[bytes] = []

    class Collector(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            got.append(self.rfile.read(int(self.headers["content-length"])))
            self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Collector)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/v1/traces", got
    server.shutdown()
    thread.join()
    server.server_close()


def test_spans_travel_as_otlp(collector: tuple[str, list[bytes]]) -> None:
    endpoint, got = collector
    spans = Spans(endpoint, service="pointsman", version="1", sample=1.0)
    spans.record(SPAN, PARENT)
    spans.close()
    (body,) = got
    (resource,) = ExportTraceServiceRequest.FromString(body).resource_spans
    attributes = {each.key: each.value.string_value for each in resource.resource.attributes}
    assert attributes["service.name"] == "pointsman"
    assert sorted(span.name for scope in resource.scope_spans for span in scope.spans) == ["a", "b"]


def test_without_the_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    with pytest.raises(TracingUnavailable, match="pointsman\\[otel\\]"):
        Spans("", service="s", version="1", sample=1.0)
