"""`emits` of a decision: directives for what comes after it, each kind at most once.

Source: `reference.md` 2.7 (emits).
"""

from __future__ import annotations

from router.config.actions import Retention
from router.config.compiler.context import Context
from router.config.model import decisions as dialect


def compile_retention(context: Context, decision: dialect.Decision) -> Retention | None:
    """What the decision keeps; None when it does not say. Mistakes are reported."""
    found: Retention | None = None
    seen: set[str] = set()
    for emit in decision.emits:
        if emit.kind in seen:
            message = f"the decision emits {emit.kind} a second time"
            context.error(emit.at("kind"), message, "keep one of them")
        seen.add(emit.kind)
        if context.need(emit, "retention") and emit.retention is not None:
            written = emit.retention
            found = Retention(written.drop, written.keep_current_model, written.prefer_prefix_retention)
            _check(context, decision, written)
    return found


def _check(context: Context, decision: dialect.Decision, written: dialect.Retention) -> None:
    if not context.is_cut(written.at()) and not written.model_fields_set:
        hint = "write drop, keep_current_model or prefer_prefix_retention"
        context.error(written.at(), "a retention that says nothing", hint, key=True)
    if written.keep_current_model:
        _check_keeping(context, decision, written)
    if any(plugin.type == "fast_response" for plugin in decision.plugins):
        for key in ("keep_current_model", "prefer_prefix_retention"):
            if getattr(written, key) is not None:
                message = f"{key} is about a backend, and fast_response asks none"
                context.error(written.at(key), message, "remove it", key=True)


def _check_keeping(context: Context, decision: dialect.Decision, written: dialect.Retention) -> None:
    path = written.at("keep_current_model")
    if decision.algorithm is not None and decision.algorithm.session_affinity is False:
        message = "keep_current_model contradicts session_affinity: false"
        context.error(path, message, "keep one of them", key=True)
    if decision.modelRefs is not None and len(decision.modelRefs) == 1:
        message = "a decision with one candidate never has another model to stay on"
        context.warn(path, message, "it is only told, in x-vsr-retention-keep-current-model", key=True)
