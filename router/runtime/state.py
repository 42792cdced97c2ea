"""Which text of a state a question is about.

A state is a string, an object of named parts, or an array. Parts by name follow what System One runtimes agree on:
`request`, `user` and `prompt` are the user's text, `answer` and `response` the answer, everything else is context.
"""

from __future__ import annotations

import json
from typing import Any

from .asking import Failure, FailureCode, State

USER_PARTS = ("request", "user", "prompt")
ANSWER_PARTS = ("answer", "response")
SOURCE_PARTS = ("document", "source", "context")


def as_text(value: Any) -> str:
    """Text as it is, anything structured as compact JSON in its own order."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def text_of(state: State, over: tuple[str, ...], reads: str) -> str | Failure:
    """The text to read. `reads` is `any` (every part), `answer`, `user` or `span` (answer, else user; one part only).

    A part that is missing falls back to the whole state, except where `over` asks for it by name.
    """
    if over:
        return _named(state, over)
    if not isinstance(state, dict):
        return as_text(state)
    preferred = {"answer": ANSWER_PARTS, "user": USER_PARTS, "span": ANSWER_PARTS + USER_PARTS}.get(reads, ())
    for name in preferred:
        if name in state:
            return as_text(state[name])
    return _whole(state)


def _named(state: State, over: tuple[str, ...]) -> str | Failure:
    if not isinstance(state, dict):
        return Failure(FailureCode.INVALID_INPUT, "over names fields, but the state is not an object")
    if any(name not in state for name in over):
        return Failure(FailureCode.INVALID_INPUT, "over names a field that the state does not have")
    return "\n\n".join(as_text(state[name]) for name in over)


def _whole(state: dict[str, Any]) -> str:
    """The user's text first and bare, then the other parts in order under their names; one part alone is bare."""
    if len(state) == 1:
        return as_text(next(iter(state.values())))
    user = [as_text(state[name]) for name in USER_PARTS if name in state]
    rest = [f"{name}:\n{as_text(value)}" for name, value in state.items() if name not in USER_PARTS]
    return "\n\n".join(user + rest)
