"""What a question about part of a request reads: the text of each `state`.

Sources: ruling 3 (states), reference.md 6.1 (own words). Lengths are bounded by the deployment's view, not here, except
for the earlier part of a conversation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from router.config.plan import StateKind
from router.wire.neutral import LlmRequest, Turn, fresh_turns
from router.wire.text import join, own_words

EARLIER_TURNS: Final = 6
EARLIER_BYTES: Final = 16 * 1024
_HEADINGS: Final = {"user": "User", "assistant": "Assistant"}


def state_text(request: LlmRequest, kind: StateKind) -> str:
    """The text to ask about; "" when there is nothing to read (then nothing is asked).

    `user`: the own words of the last user turn that holds any; where none does, the last reminder that a client added.
    `conversation`: those words, after up to six earlier user and assistant turns, each under its role; of the earlier
    text the last 16 KiB. `system`: all system text. `tools`: names and descriptions of the tools on offer, then the
    results since the assistant last spoke.
    """
    return _STATES[kind](request)


def _current(turns: tuple[Turn, ...]) -> tuple[int, str]:
    """Where the current user turn stands, and its text; (-1, "") when no user turn holds text."""
    fallback = (-1, "")
    for index in range(len(turns) - 1, -1, -1):
        turn = turns[index]
        if turn.role != "user":
            continue
        words = own_words(turn.text)
        if words:
            return index, words
        if fallback[0] < 0 and (reminder := turn.text.strip()):
            fallback = (index, reminder)
    return fallback


def _user(request: LlmRequest) -> str:
    return _current(request.turns)[1]


def _conversation(request: LlmRequest) -> str:
    index, current = _current(request.turns)
    earlier: list[str] = []
    room = EARLIER_BYTES
    for turn in reversed(request.turns[: max(index, 0)]):
        heading = _HEADINGS.get(turn.role)
        text = (own_words(turn.text) if turn.role == "user" else turn.text.strip()) if heading else ""
        if not text:
            continue
        size = len(text.encode())
        if size > room:
            text = text.encode()[size - room :].decode(errors="ignore")
        room -= min(size, room)
        if text:
            earlier.append(f"{heading}: {text}")
        if not room or len(earlier) == EARLIER_TURNS:
            break
    if not current:
        return ""
    return "\n\n".join([*reversed(earlier), f"User: {current}"])


def _system(request: LlmRequest) -> str:
    return request.system.strip()


def _tools(request: LlmRequest) -> str:
    offered = join(join([tool.name, tool.description], ": ") for tool in request.tools)
    results = [turn.text for turn in fresh_turns(request.turns) if turn.role == "tool"]
    return join([offered, *results], "\n\n").strip()


_STATES: Final[Mapping[StateKind, Callable[[LlmRequest], str]]] = {
    StateKind.USER: _user,
    StateKind.CONVERSATION: _conversation,
    StateKind.SYSTEM: _system,
    StateKind.TOOLS: _tools,
}
