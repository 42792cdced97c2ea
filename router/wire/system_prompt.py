"""The operator's system prompt, written into a request of any format; nothing else of the request changes.

In front of what the client says or behind it, the client's own words keep every byte: a string grows at one end, and a
list of parts gets one part more, so that cache marks on the client's parts stay where they are. Messages are never
merged and never move, because chat templates of many models take one system message only, and only at the start.

Sources: reference.md 5.10 (modes), the formats' own references (where system text stands).
"""

from __future__ import annotations

from typing import Any, Final, Literal

import orjson

from router.wire.spans import Member, Span, Splice, elements, find, inside, loads, members, removals, splice, written
from router.wire.surface import Format

Mode = Literal["insert", "replace", "append"]
_ROLES: Final = ("system", "developer")


def write_system_prompt(format: Format, body: bytes, mode: Mode, text: str) -> bytes:
    """`body`, which `read_request` accepted, with `text` before (`insert`), after (`append`) or in place of its own."""
    found = members(body)
    if format is Format.CHAT:
        messages = find(found, "messages")
        return body if messages is None else splice(body, _chat(body, messages.value, mode, text))
    key, turns = ("instructions", "input") if format is Format.RESPONSES else ("system", "messages")
    own = find(found, key)
    if mode == "replace" or own is None:
        splices = [written(body, 0, found, key, orjson.dumps(text))]
    else:
        splices = [_joined(body, Span(own.value, own.stop), mode, text, _PARTS[format])]
    if mode == "replace":
        splices += _without_system(body, find(found, turns))
    return splice(body, splices)


_PARTS: Final = {Format.CHAT: "text", Format.RESPONSES: "input_text", Format.MESSAGES: "text"}


def _chat(body: bytes, array: int, mode: Mode, text: str) -> list[Splice]:
    turns = elements(body, array)
    if mode == "replace":
        return _replaced(body, array, turns, text)
    leading = 0
    while leading < len(turns) and _is_system(body, turns[leading]):
        leading += 1
    if not leading:
        return [_message(body, array, "system", text, more=bool(turns))]
    turn = turns[0 if mode == "insert" else leading - 1]
    found = members(body, turn.start)
    content = find(found, "content")
    if content is None:
        return [written(body, turn.start, found, "content", orjson.dumps(text))]
    return [_joined(body, Span(content.value, content.stop), mode, text, "text")]


def _replaced(body: bytes, array: int, turns: list[Span], text: str) -> list[Splice]:
    doomed = {index for index, turn in enumerate(turns) if _is_system(body, turn)}
    # Models that know `developer` may know no `system`: the client's choice stands.
    role = loads(body, turns[min(doomed)])["role"] if doomed else "system"
    return [_message(body, array, role, text, more=len(doomed) < len(turns)), *removals(turns, doomed)]


def _message(body: bytes, array: int, role: str, text: str, *, more: bool) -> Splice:
    start = inside(body, array)
    return Splice(start, start, orjson.dumps({"role": role, "content": text}) + (b"," if more else b""))


def _joined(body: bytes, content: Span, mode: Mode, text: str, part: str) -> Splice:
    """The splice that adds `text` at one end of a string or list of parts."""
    front = mode == "insert"
    first = body[content.start : content.start + 1]
    if first == b'"':
        escaped = orjson.dumps(text)[1:-1]
        if content.stop - content.start == 2:
            return Splice(content.start + 1, content.start + 1, escaped)
        if front:
            return Splice(content.start + 1, content.start + 1, escaped + rb"\n\n")
        return Splice(content.stop - 1, content.stop - 1, rb"\n\n" + escaped)
    if first != b"[":
        return Splice(content.start, content.stop, orjson.dumps(text))
    new = orjson.dumps({"type": part, "text": text})
    parts = elements(body, content.start)
    if front or not parts:
        start = inside(body, content.start)
        return Splice(start, start, new + (b"," if parts else b""))
    return Splice(parts[-1].stop, parts[-1].stop, b"," + new)


def _without_system(body: bytes, turns: Member | None) -> list[Splice]:
    """Splices that take system messages out of the turns, where the format lets them stand there too."""
    if turns is None or body[turns.value : turns.value + 1] != b"[":
        return []
    items = elements(body, turns.value)
    return removals(items, {index for index, item in enumerate(items) if _is_system(body, item)})


def _is_system(body: bytes, turn: Span) -> bool:
    message: Any = loads(body, turn)
    return type(message) is dict and message.get("role") in _ROLES
