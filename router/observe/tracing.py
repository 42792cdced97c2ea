"""Spans to an OpenTelemetry collector. The libraries are an extra (`otel`): without tracing nothing of them is loaded.

A span is handed over when what it tells of is over, so that a request carries no tracing about with it. Exporting is
the library's own thread's; what it cannot keep up with it drops.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from opentelemetry.sdk.trace.export import SpanExporter

EXPORT_TIMEOUT_S = 5.0

Attribute = str | bool | int | float


class TracingUnavailable(Exception):
    """Tracing is asked for and its libraries are not here."""


@dataclass(frozen=True, slots=True)
class SpanRecord:
    """One span that is over, with what happened in it. Times are nanoseconds since the epoch."""

    name: str
    start: int
    end: int
    attributes: Mapping[str, Attribute] = field(default_factory=dict)
    children: Sequence[SpanRecord] = ()
    error: str | None = None


class Spans:
    """Sends spans to `endpoint` (OTLP over HTTP). Raises TracingUnavailable.

    `sample` is the share of requests that are traced which come without a parent; with one, the parent's word counts.
    """

    def __init__(
        self, endpoint: str, *, service: str, version: str, sample: float, exporter: SpanExporter | None = None
    ) -> None:
        try:
            from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415
            from opentelemetry.sdk.resources import Resource  # noqa: PLC0415
            from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
            from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415
            from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased  # noqa: PLC0415
            from opentelemetry.trace import set_span_in_context  # noqa: PLC0415
            from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator  # noqa: PLC0415
        except ImportError as error:
            raise TracingUnavailable(f"tracing needs the extra otel: pip install 'pointsman[otel]' ({error})") from None
        self._in_context = set_span_in_context
        self._parents = TraceContextTextMapPropagator()
        self._provider = TracerProvider(
            sampler=ParentBased(TraceIdRatioBased(sample)),
            resource=Resource.create({"service.name": service, "service.version": version}),
            shutdown_on_exit=False,
        )
        exporter = exporter or OTLPSpanExporter(endpoint=endpoint, timeout=EXPORT_TIMEOUT_S)
        self._provider.add_span_processor(BatchSpanProcessor(exporter))
        self._tracer = self._provider.get_tracer("pointsman", version)

    def record(self, span: SpanRecord, headers: Mapping[str, str]) -> object:
        """Send a span and its children; its parent is what `traceparent` among `headers` names, if anything.

        What is returned stands for the span in `follow`.
        """
        return self._record(span, self._parents.extract(headers), root=True)

    def follow(self, parent: object, span: SpanRecord) -> None:
        """Send a later child of a span that was recorded. It is sampled as its parent was."""
        self._record(span, parent)

    def _record(self, record: SpanRecord, parent: Any, *, root: bool = False) -> Any:
        from opentelemetry.trace import SpanKind, Status, StatusCode  # noqa: PLC0415

        span = self._tracer.start_span(
            record.name,
            context=parent,
            kind=SpanKind.SERVER if root else SpanKind.INTERNAL,
            attributes=dict(record.attributes),
            start_time=record.start,
        )
        here = self._in_context(span, parent)
        if span.is_recording():
            if record.error is not None:
                span.set_status(Status(StatusCode.ERROR, record.error))
            for child in record.children:
                self._record(child, here)
        span.end(record.end)
        return here

    def close(self) -> None:
        """Send what waits, within some seconds, and end."""
        self._provider.shutdown()
