"""The router's own services: who may use the management API, what is recorded and what is traced."""

from __future__ import annotations

from pathlib import Path as FilePath

from router.config.compiler.context import Context
from router.config.model.services import ManagementApi, ManagementToken, Observability, RouterReplay
from router.config.services import AccessToken, ReplaySettings, TracingSettings, is_loopback


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


def compile_replay(context: Context, replay: RouterReplay | None) -> ReplaySettings | None:
    """What is recorded of requests; None for nothing."""
    if replay is None or not replay.enabled:
        return None
    if replay.path is None:
        if not context.is_cut(replay.at("path")):
            context.error(replay.at(), 'missing key "path"', "name the SQLite file that records go to", key=True)
        return None
    path = FilePath(replay.path)
    if not path.is_absolute() and context.folder is not None:
        path = context.folder / path
    return ReplaySettings(
        str(path),
        replay.max_records,
        replay.ttl_seconds,
        replay.capture_request_body,
        replay.max_body_bytes,
        replay.capture_personal_data,
    )


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
