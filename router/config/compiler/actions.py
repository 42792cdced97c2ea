"""The plugins of a decision: each kind at most once, and no two that contradict each other."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from router.config.actions import Actions, Diagnostics, HeaderChanges, Recording, RequestParams, SystemPrompt
from router.config.compiler.context import Context
from router.config.compiler.emits import compile_retention
from router.config.model import plugins as dialect
from router.config.model.decisions import Decision
from router.config.problems import Path

# Underscore twins count, because some servers read both as one name.
_NOT_OURS = (
    (
        re.compile(r"x-vsr-.*|x-selected-model|x-authz-user-.*|x-envoy-.*|pointsman-.*"),
        "is written by the router or Envoy alone",
    ),
    (
        re.compile(
            r"content-(length|type|encoding)|transfer-encoding|connection|keep-alive|te|trailers?|upgrade|expect|host"
            r"|proxy-connection|x-forwarded-.*|x-http-method(-override)?|x-method-override"
        ),
        "says how the request travels, which a decision cannot change",
    ),
    (
        re.compile(r"authorization|proxy-authorization|x-api-key|api-key|x-goog-api-key|cookie"),
        "carries a credential; a backend's key belongs in its auth",
    ),
)
_NEEDED = frozenset({"model", "messages", "input", "stream", "system", "instructions"})
"""Parameters that hold what was asked, or decide in what form the client is answered."""


def compile_actions(context: Context, decision: Decision) -> Actions:
    """What the decision's plugins say, and what it emits; mistakes are reported."""
    compiled: dict[str, Any] = {}
    seen: set[str] = set()
    for plugin in decision.plugins:
        if plugin.type in seen:
            message = f"the decision has a second {plugin.type} plugin"
            context.error(plugin.at("type"), message, "keep one of them")
        seen.add(plugin.type)
        field, compile_plugin = _KINDS[type(plugin)]
        compiled[field] = compile_plugin(context, plugin.configuration)
    if "fast_response" in seen:
        _check_alone(context, decision)
    return Actions(**compiled, retention=compile_retention(context, decision))


def _check_alone(context: Context, decision: Decision) -> None:
    """An answer at once leaves nothing for candidates or other plugins to do."""
    if decision.modelRefs is not None:
        hint = "remove modelRefs, or the plugin"
        context.error(decision.at("modelRefs"), "fast_response answers without any model", hint, key=True)
    if decision.algorithm is not None:
        context.error(decision.at("algorithm"), "fast_response leaves nothing to pick", "remove algorithm", key=True)
    for plugin in decision.plugins:
        if isinstance(plugin, _ON_THE_WAY):
            message = f"{plugin.type} is about what a backend gets, and fast_response asks none"
            context.error(plugin.at("type"), message, "keep one of them")


_ON_THE_WAY = (dialect.HeaderMutation, dialect.SystemPrompt, dialect.RequestParams, dialect.DecisionDiagnostics)


def _fast_response(_: Context, settings: dialect.FastResponseSettings) -> str:
    return settings.message


def _headers(context: Context, settings: dialect.HeaderMutationSettings) -> HeaderChanges | None:
    named: dict[str, str] = {}
    for kind in ("add", "update"):
        for header in getattr(settings, kind):
            _check_header(context, header.name, header.at("name"), kind, named)
    for index, name in enumerate(settings.delete):
        _check_header(context, name, settings.at_item("delete", index), "delete", named)
    if not named and not context.is_cut(settings.at()):
        context.error(settings.at(), "changes nothing", "write add, update or delete", key=True)
    return HeaderChanges(
        tuple((header.name.lower(), header.value) for header in settings.add),
        tuple((header.name.lower(), header.value) for header in settings.update),
        tuple(name.lower() for name in settings.delete),
    )


def _check_header(context: Context, name: str, path: Path, kind: str, named: dict[str, str]) -> None:
    plain = name.lower().replace("_", "-")
    shown = context.shown(name, path)
    for expression, reason in _NOT_OURS:
        if expression.fullmatch(plain):
            context.error(path, f"the header {shown} {reason}", "remove it")
    if plain in named:
        context.error(path, f"the header {shown} is already in {named[plain]}", "keep one of them")
    named.setdefault(plain, kind)


def _system_prompt(_: Context, settings: dialect.SystemPromptSettings) -> SystemPrompt | None:
    return SystemPrompt(settings.mode, settings.system_prompt) if settings.enabled else None


def _params(context: Context, settings: dialect.RequestParamsSettings) -> RequestParams | None:
    for index, name in enumerate(settings.blocked_params):
        if name in _NEEDED:
            path = settings.at_item("blocked_params", index)
            context.error(path, f"{context.shown(name, path)} cannot be left out of a request", "remove it")
    params = RequestParams(
        frozenset(settings.blocked_params), settings.max_tokens_limit, settings.max_n, settings.strip_unknown
    )
    if params == RequestParams():
        if not settings.strip_unknown and not settings._block and not context.is_cut(settings.at()):
            hint = "write blocked_params, max_tokens_limit, max_n or strip_unknown"
            context.error(settings.at(), "bounds nothing", hint, key=True)
        return None
    return params


def _diagnostics(_: Context, settings: dialect.DiagnosticsSettings | None) -> Diagnostics | None:
    settings = settings or dialect.DiagnosticsSettings.model_validate({})
    if not settings.enabled:
        return None
    return Diagnostics(
        settings.max_signals, settings.max_projections, settings.max_text_runes, settings.max_payload_bytes
    )


def _recording(context: Context, settings: dialect.ReplaySettings | None) -> Recording:
    settings = settings or dialect.ReplaySettings.model_validate({})
    return Recording(
        settings.enabled,
        settings.capture_request_body,
        settings.capture_response_body,
        settings.max_body_bytes,
        settings.max_records,
        settings.max_tool_trace_steps,
    )


_KINDS: Mapping[type, tuple[str, Callable[[Context, Any], Any]]] = {
    dialect.FastResponse: ("fast_response", _fast_response),
    dialect.HeaderMutation: ("headers", _headers),
    dialect.SystemPrompt: ("system_prompt", _system_prompt),
    dialect.RequestParams: ("params", _params),
    dialect.DecisionDiagnostics: ("diagnostics", _diagnostics),
    dialect.RouterReplay: ("recording", _recording),
}
