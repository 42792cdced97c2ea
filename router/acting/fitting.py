"""Prompts that no model could take, told before anybody reads them.

Whether a prompt fits is its backend's to say, which has the tokenizer. But a guard need not read what no model could
answer, and a request that waits for room in a decision model must not be told to try again for ever. So what is beyond
every window for certain is refused first.

Sources: "When the decision model is overloaded" (a prompt beyond every context window), `reference.md` 7.4.
"""

from __future__ import annotations

from typing import Final

from router.acting.target import Refused
from router.config.plan import Plan, Recipe
from router.wire.errors import ErrorCode
from router.wire.request import LlmRequest

BYTES_PER_TOKEN: Final = 8
"""No tokenizer in use makes tokens of ordinary text longer than this on average; prose has about four."""


def largest_window(plan: Plan, recipe: Recipe) -> int | None:
    """The tokens that the roomiest model of a recipe takes; None when the window of one is not known."""
    names = {ref.model for decision in recipe.decisions for ref in decision.model_refs}
    if plan.default_model is not None:
        names.add(plan.default_model)
    windows = [plan.models[name].context_window for name in names]
    known = [window for window in windows if window is not None]
    return max(known) if known and len(known) == len(windows) else None


def check_fits(window: int | None, request: LlmRequest) -> None:
    """Raise Refused for a prompt that is certainly longer than so many tokens."""
    if window is None:
        return
    room = window * BYTES_PER_TOKEN
    # The text of system turns is in `system`, too.
    texts = [request.system, *(turn.text for turn in request.turns if turn.role != "system")]
    if sum(map(len, texts)) * 4 > room and sum(len(text.encode("utf-8", "replace")) for text in texts) > room:
        raise Refused(ErrorCode.CONTEXT_LENGTH_EXCEEDED)
