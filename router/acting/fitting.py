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
from router.wire.longtext import Words, pieces_of
from router.wire.request import LlmRequest

LONGEST_TOKEN: Final = 128
"""Bytes. Vocabularies have tokens for runs of one character that are as long, and none that is longer."""

_BLANK: Final = b" \t\n\r\v\f"
_SHAPE: Final = bytes(32 if byte in _BLANK else 120 for byte in range(256))
"""Makes a blank of every white space of ASCII, and an `x` of everything else."""


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
    # The text of system turns is in `system`, too.
    texts: list[Words] = [request.system, *(turn.said for turn in request.turns if turn.role != "system")]
    # Every word has two characters or more with what follows it, so that most prompts need no counting.
    if sum(map(len, texts)) + len(texts) > 2 * window and least_tokens(*texts) > window:
        raise Refused(ErrorCode.CONTEXT_LENGTH_EXCEEDED)


def least_tokens(*texts: Words) -> int:
    """The fewest tokens that any tokenizer in use makes of texts on lines of their own.

    White space may cost nothing: a run of it is one token, or part of the word beside it. But no token reaches over it
    from one word to the next, and none is longer than `LONGEST_TOKEN`. So prose counts nearly as it does in truth, and
    text without blanks for much less.
    """
    words = marks = 0
    inside = False
    for text in texts:
        for piece in pieces_of(text):
            shape = piece.encode("utf-8", "replace").translate(_SHAPE)
            # A word counts where it ends, which may be at the beginning of a later piece.
            words += shape.count(b"x ") + (inside and shape.startswith(b" "))
            marks += shape.count(b"x")
            inside = shape.endswith(b"x") if shape else inside
        words += inside
        inside = False
    return max(words, -(-marks // LONGEST_TOKEN))
