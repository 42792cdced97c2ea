"""The plugins of a decision: each kind at most once, and no two that contradict each other."""

from __future__ import annotations

from router.config.actions import Actions
from router.config.compiler.context import Context
from router.config.model import plugins as dialect
from router.config.model.decisions import Decision


def compile_actions(context: Context, decision: Decision) -> Actions:
    """What the decision's plugins say; mistakes are reported."""
    seen: set[str] = set()
    fast_response: str | None = None
    for plugin in decision.plugins:
        if plugin.type in seen:
            message = f"the decision has a second {plugin.type} plugin"
            context.error(plugin.at("type"), message, "keep one of them")
        seen.add(plugin.type)
        match plugin:
            case dialect.FastResponse():
                fast_response = plugin.configuration.message
    _check_fast_response(context, decision)
    return Actions(fast_response=fast_response)


def _check_fast_response(context: Context, decision: Decision) -> None:
    """An answer at once leaves nothing for candidates or other plugins to do."""
    if not any(isinstance(plugin, dialect.FastResponse) for plugin in decision.plugins):
        return
    if decision.modelRefs is not None:
        hint = "remove modelRefs, or the plugin"
        context.error(decision.at("modelRefs"), "fast_response answers without any model", hint, key=True)
    if decision.algorithm is not None:
        context.error(decision.at("algorithm"), "fast_response leaves nothing to pick", "remove algorithm", key=True)
