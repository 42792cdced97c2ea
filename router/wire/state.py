"""What a question about part of a request reads: the text of each `state`.

Sources: ruling 3 (states), reference.md 6.1 (own words). Lengths are bounded by the deployment's view, not here, except
for the earlier part of a conversation.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from typing import Final

from router.config.plan import StateKind
from router.wire.guarded import guard_text
from router.wire.longtext import Words
from router.wire.neutral import LlmRequest, Turn, fresh_turns
from router.wire.text import join, own_words

EARLIER_TURNS: Final = 6
EARLIER_BYTES: Final = 16 * 1024
RELATED_TURNS: Final = 2
_HEADINGS: Final = {"user": "User", "assistant": "Assistant"}


def state_text(request: LlmRequest, kind: StateKind) -> str:
    """The text to ask about; "" when there is nothing to read (then nothing is asked).

    `user`: the own words of the last user turn that holds any; where none does, the last reminder that a client added.
    `conversation`: those words, after up to six earlier user and assistant turns, each under its role; of the earlier
    text the last 16 KiB. `system`: all system text. `tools`: names and descriptions of the tools on offer, then the
    results since the assistant last spoke. `feedback`: the answer before the current user turn, then that turn.
    `relation`: up to two earlier user turns, then the current one. Both are "" when nothing precedes. `fresh` and
    `history`: what guards read (`wire.guarded`).
    """
    return _STATES[kind](request)


def guard_state(request: LlmRequest, kind: StateKind) -> Words:
    """The same for guards, which read a long text as it is kept."""
    if kind is StateKind.FRESH or kind is StateKind.HISTORY:
        return guard_text(request, history=kind is StateKind.HISTORY).text
    return state_text(request, kind)


def opens(request: LlmRequest, kind: StateKind) -> bool:
    """Whether the current turn is there and nothing precedes it that a question about `kind` would set it against."""
    index, current = _current(request.turns)
    if not current or kind not in _BEFORE:
        return False
    return not _BEFORE[kind](request.turns[:index])


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


def user_text(request: LlmRequest) -> str:
    """The state `user`: the current turn with the user's own words."""
    turns = request.turns
    if turns and turns[-1].role == "user" and (words := own_words(turns[-1].text)):  # most requests
        return words
    return _current(turns)[1]


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


def _feedback(request: LlmRequest) -> str:
    index, current = _current(request.turns)
    answer = _answer(request.turns[: max(index, 0)])
    return f"Assistant: {answer}\n\nUser: {current}" if answer and current else ""


def _answer(earlier: tuple[Turn, ...]) -> str:
    """The last thing that the assistant said, its end where it is long."""
    said = next((text for turn in reversed(earlier) if turn.role == "assistant" and (text := turn.text.strip())), "")
    return said.encode()[-EARLIER_BYTES:].decode(errors="ignore") if len(said) * 4 > EARLIER_BYTES else said


def _relation(request: LlmRequest) -> str:
    index, current = _current(request.turns)
    earlier = _earlier_users(request.turns[: max(index, 0)])
    return "\n\n".join(f"User: {text}" for text in [*earlier, current]) if earlier and current else ""


def _earlier_users(earlier: tuple[Turn, ...]) -> list[str]:
    said = (words for turn in reversed(earlier) if turn.role == "user" and (words := own_words(turn.text)))
    return list(itertools.islice(said, RELATED_TURNS))[::-1]


def _system(request: LlmRequest) -> str:
    return request.system.strip()


def _tools(request: LlmRequest) -> str:
    offered = join(join([tool.name, tool.description], ": ") for tool in request.tools)
    results = [turn.text for turn in fresh_turns(request.turns) if turn.role == "tool"]
    return join([offered, *results], "\n\n").strip()


_STATES: Final[Mapping[StateKind, Callable[[LlmRequest], str]]] = {
    StateKind.USER: user_text,
    StateKind.CONVERSATION: _conversation,
    StateKind.SYSTEM: _system,
    StateKind.TOOLS: _tools,
    StateKind.FEEDBACK: _feedback,
    StateKind.RELATION: _relation,
    StateKind.FRESH: lambda request: str(guard_text(request).text),
    StateKind.HISTORY: lambda request: str(guard_text(request, history=True).text),
}
_BEFORE: Final[Mapping[StateKind, Callable[[tuple[Turn, ...]], object]]] = {
    StateKind.FEEDBACK: _answer,
    StateKind.RELATION: _earlier_users,
}
