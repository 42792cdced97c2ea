"""A request in no client's format: what routing, guards and judges read, whichever API it came by."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import is_not
from typing import Any, Literal

import msgspec

from router.wire.longtext import LongText, Words
from router.wire.surface import Format

Role = Literal["user", "assistant", "system", "tool"]


class Turn(msgspec.Struct, frozen=True):
    """What one side said at one point; "" when it was only images or the like.

    An assistant's text ends with the name and arguments of each tool that it called. `tool` is the result of a tool. A
    message that holds results and words becomes a turn for each result, then one for the words.
    """

    role: Role
    said: Words

    @property
    def text(self) -> str:
        """What was said as a `str`, which takes more memory for a long text."""
        return str(self.said)


class ToolText(msgspec.Struct, frozen=True):
    """A tool on offer: its name and what its description says, "" where there is none."""

    name: str
    description: str


class LlmRequest(msgspec.Struct, frozen=True):
    """What was asked. `turns` are in order and hold system messages that stand among them.

    `model` is None when the client named none. `system` is all system text, instructions first. `stream` is true only
    for a JSON true. `outline` is the parsed body, in which, if it `holds_long` ones, texts may stand as
    `LongText`, for what is worked out only when somebody wants it.
    """

    format: Format
    model: str | None
    stream: bool
    system: str
    turns: tuple[Turn, ...]
    tools: tuple[ToolText, ...]
    outline: Mapping[str, Any] = {}
    holds_long: bool = False

    @property
    def document(self) -> Mapping[str, Any]:
        """The whole document."""
        return _filled(self.outline) if self.holds_long else self.outline


def fresh_turns(turns: tuple[Turn, ...]) -> tuple[Turn, ...]:
    """The turns since the assistant last spoke.

    Assistant turns at the very end are a prefill: the client wrote them now, so they are among the fresh ones and hide
    nothing that stands before them. System turns after them, which are nobody's answer, do not change that.
    """
    end = len(turns)
    while end and turns[end - 1].role in ("assistant", "system"):
        end -= 1
    start = end
    while start and turns[start - 1].role != "assistant":
        start -= 1
    return turns[start:]


def _filled(part: Any) -> Any:
    """A copy of what holds long texts, with a `str` for each; the same part if it holds none."""
    kind = type(part)
    if kind is LongText:
        return str(part)
    if kind is dict:
        changed = {key: filled for key, value in part.items() if (filled := _filled(value)) is not value}
        return {**part, **changed} if changed else part
    if kind is list:
        values = [_filled(value) for value in part]
        return values if any(map(is_not, values, part)) else part
    return part


def build(
    format: Format, model: str | None, stream: bool, system: str, turns: Iterable[Turn], tools: tuple[ToolText, ...]
) -> LlmRequest:
    """The request, with the text of system turns added to `system`."""
    kept = tuple(turns)
    parts = [turn.text for turn in kept if turn.role == "system" and turn.said]
    if system:
        parts.insert(0, system)
    return LlmRequest(format, model, stream, "\n\n".join(parts), kept, tools)
