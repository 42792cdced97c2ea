"""Recording requests while a router process runs."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from router.config.services import ReplaySettings
from router.explaining.records import Encoder, Recorder
from router.observe import Metrics
from router.observe.replay import Bounds, ReplayWriter
from router.observe.replay_metrics import ReplayMetrics
from router.serving.errors import StartFailed


@contextlib.contextmanager
def recording(settings: ReplaySettings, metrics: Metrics) -> Iterator[Recorder]:
    """A recorder whose writer runs until the end, when what waits is still written. Raises StartFailed."""
    counts = ReplayMetrics(metrics.registry)
    bounds = Bounds(settings.max_records, settings.ttl_seconds)
    writer = ReplayWriter(Path(settings.path), bounds, Encoder(), counts.count)
    try:
        writer.start()
    except OSError as error:
        raise StartFailed(f"global.services.router_replay: {error}") from None
    try:
        yield Recorder(settings, writer)
    finally:
        writer.stop()
