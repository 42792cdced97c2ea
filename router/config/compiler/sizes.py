"""How much of a text a deployment reads at a time, as its `routing_view` and `scan_window` say.

Source: "Long inputs" (the table of settings), `rulings.md` 2.
"""

from __future__ import annotations

from router.config.compiler.context import Context
from router.config.compiler.endpoints import is_remote
from router.config.model import globals as dialect
from router.config.sizes import WrittenSizes

MOST_TOKENS = 1_048_576


def written_sizes(deployment: dialect.Deployment) -> WrittenSizes:
    """What is written, in tokens."""
    view = deployment.routing_view or dialect.RoutingView.model_validate({})
    window = deployment.scan_window or dialect.ScanWindow.model_validate({})
    return WrittenSizes(
        view_tokens=view.max_tokens,
        head_share=view.head_share,
        tokens=window.tokens,
        overlap=window.overlap,
        max_tokens=window.max_tokens,
        max_parallel=window.max_parallel,
        reread_margin=window.reread_margin,
        remote=is_remote(deployment),
    )


def check_sizes(context: Context, deployment: dialect.Deployment) -> None:
    """Report written settings of windows that contradict each other."""
    window = deployment.scan_window
    if window is None or context.is_cut(window.at("tokens")):
        return
    tokens = written_sizes(deployment).window_tokens
    unwritten = "" if window.tokens is not None else ", the default"
    if window.overlap is not None and 2 * window.overlap >= tokens:
        path = window.at("overlap")
        message = f"must be from 0 to {(tokens - 1) // 2}, not {context.shown(window.overlap, path)}"
        context.error(path, message, f"less than half of scan_window.tokens ({tokens}{unwritten})")
    if window.max_tokens is not None and window.max_tokens < tokens:
        path = window.at("max_tokens")
        message = f"must be from {tokens} to {MOST_TOKENS}, not {context.shown(window.max_tokens, path)}"
        context.error(path, message, f"no less than scan_window.tokens ({tokens}{unwritten})")
