"""Which plugins of a decision run for a request, by the names that a configuration gives them."""

from __future__ import annotations

from collections.abc import Sequence

from router.acting.target import Settled, Target
from router.config.actions import NOTHING, Actions


def plugins(settled: Settled) -> Sequence[str]:
    """Those that run for what a request came to; none where no decision was selected."""
    if not isinstance(settled, Target):
        return ("fast_response",)
    return () if settled.actions is NOTHING else _of(settled.actions)


def _of(actions: Actions) -> Sequence[str]:
    there = {
        "request_params": actions.params,
        "system_prompt": actions.system_prompt,
        "header_mutation": actions.headers,
        "decision_diagnostics": actions.diagnostics,
    }
    return [name for name, settings in there.items() if settings is not None]
