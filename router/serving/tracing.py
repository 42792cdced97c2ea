"""Tracing requests while a router process runs."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from router import __version__
from router.config.services import TracingSettings
from router.explaining.spans import Tracer
from router.observe.tracing import Spans, TracingUnavailable
from router.serving.errors import StartFailed


@contextlib.contextmanager
def tracing(settings: TracingSettings) -> Iterator[Tracer]:
    """A tracer whose spans are exported until the end. Raises StartFailed where the extra is not installed."""
    try:
        spans = Spans(
            settings.endpoint, service=settings.service_name, version=__version__, sample=settings.sample_ratio
        )
    except TracingUnavailable as error:
        raise StartFailed(f"global.services.observability.tracing: {error}") from None
    try:
        yield Tracer(spans)
    finally:
        spans.close()
