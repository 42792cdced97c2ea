"""Recording requests while a router process runs, and finding the records again."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from router.config.credentials import KeyUnavailable, read_key
from router.config.deployments import KeySource
from router.config.services import RedisSettings, ReplaySettings
from router.explaining.endings import Ended
from router.explaining.records import PLUGIN, Encoder, Recorder, Sketch
from router.observe import Metrics
from router.observe.replay import Bounds, Replays, ReplayStore, ReplayWriter
from router.observe.replay_metrics import ReplayMetrics
from router.observe.replay_sqlite import SqliteReplays, SqliteStore
from router.serving.errors import StartFailed

if TYPE_CHECKING:
    from router.observe.replay_redis import Connect


@contextlib.contextmanager
def recording(settings: ReplaySettings, metrics: Metrics, environ: Mapping[str, str]) -> Iterator[Recorder]:
    """A recorder whose writer runs until the end, when what waits is still written. Raises StartFailed."""
    counts = ReplayMetrics(metrics.registry)
    try:
        store = _store(settings, environ)
        writer: ReplayWriter[Sketch | Ended] = ReplayWriter(store, Encoder(), counts.count)
        writer.start()
    except OSError as error:
        raise StartFailed(f"global.services.router_replay: {error}") from None
    try:
        yield Recorder(settings, writer, ran=lambda recipe, decision: metrics.plugin(recipe, decision, PLUGIN)())
    finally:
        writer.stop()


def replays_of(settings: ReplaySettings, environ: Mapping[str, str]) -> Replays:
    """Where the records are found. Raises OSError when that cannot be known."""
    if settings.redis is None:
        return SqliteReplays(Path(settings.path))
    from router.observe.replay_redis import RedisReplays  # noqa: PLC0415 - an extra

    connect = _connector(settings.redis, environ)
    return RedisReplays(connect, settings.redis.prefix, seconds=settings.ttl_seconds)


def _store(settings: ReplaySettings, environ: Mapping[str, str]) -> ReplayStore:
    bounds = Bounds(settings.max_records, settings.ttl_seconds)
    if settings.redis is None:
        return SqliteStore(Path(settings.path), bounds)
    connect = _connector(settings.redis, environ)
    from router.observe.replay_redis import RedisStore  # noqa: PLC0415 - an extra

    return RedisStore(connect, settings.redis.prefix, bounds)


def _connector(server: RedisSettings, environ: Mapping[str, str]) -> Connect:
    try:
        from router.observe.replay_redis import connector  # noqa: PLC0415 - an extra
    except ImportError:
        raise OSError("store_backend: redis needs the extra `redis`: pip install 'pointsman[redis]'") from None
    password: str | None = None
    if server.env is not None or server.file is not None:
        try:
            password = read_key(KeySource(server.env, server.file), environ)
        except KeyUnavailable as error:
            raise OSError(f"redis: {error}") from None
    try:
        return connector(server.endpoint, password)
    except ValueError:
        raise OSError("redis: the endpoint is no URL of a server") from None
