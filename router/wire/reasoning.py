"""Whether and how hard a backend's model thinks, written where its API reads it. Every other byte stays.

| API | on | off |
|---|---|---|
| Chat Completions | `reasoning_effort`, or what the family reads | `reasoning_effort: none`, or the family's switch |
| Responses | `reasoning.effort` | `reasoning.effort: none` |
| Messages | `thinking` unless the client switched it on; `output_config.effort` | `thinking: {type: disabled}` |

Sources: reference.md 2.7 (modelRefs), the formats' own references.
"""

from __future__ import annotations

from typing import Final

import orjson

from router.config.candidates import DEFAULT_EFFORT, Reasoning
from router.wire.spans import Member, Span, Splice, find, loads, members, splice, written
from router.wire.surface import Format

# Messages knows no effort below this one.
_LEAST: Final = {"minimal": "low"}


def write_reasoning(format: Format, body: bytes, reasoning: Reasoning) -> bytes:
    """`body`, which `read_request` accepted, with thinking switched as `reasoning` says."""
    found = members(body)
    effort = (reasoning.effort or DEFAULT_EFFORT) if reasoning.on else "none"
    match format:
        case Format.CHAT:
            splices = _chat(body, found, reasoning, effort)
        case Format.RESPONSES:
            splices = [_nested(body, found, "reasoning", "effort", effort)]
        case Format.MESSAGES:
            splices = _messages(body, found, reasoning)
    return splice(body, splices)


def _chat(body: bytes, found: list[Member], reasoning: Reasoning, effort: str) -> list[Splice]:
    switch = reasoning.switch
    if switch is None:
        return [written(body, 0, found, "reasoning_effort", orjson.dumps(effort))]
    if switch.kind == "reasoning_effort":
        return [written(body, 0, found, switch.parameter, orjson.dumps(effort))]
    return [_nested(body, found, "chat_template_kwargs", switch.parameter, reasoning.on)]


def _messages(body: bytes, found: list[Member], reasoning: Reasoning) -> list[Splice]:
    thinking = find(found, "thinking")
    value = loads(body, Span(thinking.value, thinking.stop)) if thinking is not None else None
    kind = value.get("type") if type(value) is dict else None
    if not reasoning.on:
        off = kind in (None, "disabled")
        return [] if off else [written(body, 0, found, "thinking", b'{"type":"disabled"}')]
    splices = [written(body, 0, found, "thinking", b'{"type":"adaptive"}')] if kind in (None, "disabled") else []
    if reasoning.effort is not None:
        effort = _LEAST.get(reasoning.effort, reasoning.effort)
        splices.append(_nested(body, found, "output_config", "effort", effort))
    return splices


def _nested(body: bytes, found: list[Member], key: str, inner: str, value: str | bool) -> Splice:
    """The splice that gives a key of an inner object its value; whatever is no object is replaced by one."""
    member = find(found, key)
    if member is None or body[member.value : member.value + 1] != b"{":
        return written(body, 0, found, key, orjson.dumps({inner: value}))
    return written(body, member.value, members(body, member.value), inner, orjson.dumps(value))
