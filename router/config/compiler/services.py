"""The router's own services: who may use the management API, what is recorded and what is traced."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path as FilePath

from router.config.actions import Recording
from router.config.compiler.context import Context
from router.config.model.plugins import RouterReplay as ReplayPlugin
from router.config.model.recipes import Recipe
from router.config.model.services import ManagementApi, ManagementToken, Observability, RouterReplay
from router.config.problems import Path
from router.config.services import AccessToken, RedisSettings, ReplaySettings, TracingSettings, is_loopback


def compile_access(context: Context, api: ManagementApi | None, address: str) -> tuple[AccessToken, ...]:
    """The tokens of the management API, which listens on `address`. Open only where nobody else reaches it."""
    written = api.auth.tokens if api is not None and api.auth is not None else []
    tokens = tuple(token for each in written if (token := _token(context, each)) is not None)
    path = ("global", "services", "management_api")
    if not written and not is_loopback(address) and not context.is_cut(path):
        context.error(
            ("global", "services", "management", "address"),
            f"the management API on {context.shown(address)} can be reached from elsewhere, and nobody needs a token",
            "name one in global.services.management_api.auth.tokens, or keep the address 127.0.0.1",
        )
    return tokens


def asks_for_records(recipes: Iterable[Recipe]) -> Path | None:
    """The first plugin, if any, that has the requests of its decision recorded."""
    for recipe in recipes:
        for decision in recipe.decisions:
            for plugin in decision.plugins:
                off = plugin.configuration is not None and not getattr(plugin.configuration, "enabled", True)
                if isinstance(plugin, ReplayPlugin) and not off:
                    return plugin.at("type")
    return None


def compile_replay(context: Context, replay: RouterReplay | None, asking: Path | None) -> ReplaySettings | None:
    """What is recorded of requests; None for nothing. `asking` is where a decision first wants its own recorded."""
    if replay is None or not (replay.enabled or asking):
        if asking is not None and not context.is_cut(("global", "services", "router_replay")):
            hint = "name one in global.services.router_replay; with enabled: false, only such decisions are recorded"
            context.error(asking, "router_replay has no store to write to", hint)
        return None
    path, redis = _file(context, replay), _server(context, replay)
    if path is None and redis is None:
        return None
    every = Recording(replay.enabled, replay.capture_request_body, replay.capture_response_body, replay.max_body_bytes)
    return ReplaySettings(
        path or "", replay.max_records, replay.ttl_seconds, every, replay.capture_personal_data, redis
    )


def _file(context: Context, replay: RouterReplay) -> str | None:
    if replay.store_backend != "sqlite":
        if replay.path is not None:
            hint = "remove it, or write store_backend: sqlite"
            context.error(replay.at("path"), f"the store {replay.store_backend} has no path", hint, key=True)
        return None
    if replay.path is None:
        if not context.is_cut(replay.at("path")):
            context.error(replay.at(), 'missing key "path"', "name the SQLite file that records go to", key=True)
        return None
    path = FilePath(replay.path)
    return str(context.folder / path if not path.is_absolute() and context.folder is not None else path)


def _server(context: Context, replay: RouterReplay) -> RedisSettings | None:
    written = replay.redis
    if replay.store_backend != "redis":
        if written is not None:
            hint = "remove it, or write store_backend: redis"
            context.error(written.at(), f"the store {replay.store_backend} has no server", hint, key=True)
        return None
    if written is None:
        if not context.is_cut(replay.at("redis")):
            hint = "write redis: {endpoint: redis://host:6379/0}"
            context.error(replay.at(), 'missing key "redis"', hint, key=True)
        return None
    if written.password_env is not None and written.password_file is not None:
        message = "password_env and password_file cannot both be given"
        context.error(written.at("password_file"), message, "keep one of them", key=True)
    return RedisSettings(written.endpoint, written.key_prefix, written.password_env, written.password_file)


def compile_tracing(observability: Observability | None) -> TracingSettings | None:
    """Where spans go; None for nowhere."""
    tracing = observability.tracing if observability is not None else None
    if tracing is None or not tracing.enabled:
        return None
    return TracingSettings(tracing.endpoint, tracing.service_name, tracing.sample_ratio)


def _token(context: Context, token: ManagementToken) -> AccessToken | None:
    if (token.env is None) == (token.file is None):
        if not context.is_cut(token.at()):
            context.error(token.at(), "needs exactly one of env and file", key=True)
        return None
    return AccessToken(token.env, token.file, frozenset(token.roles))
