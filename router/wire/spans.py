"""Where the values of a JSON text stand, found without parsing it, and splices of its bytes.

Only structure is scanned, by regular expressions that skip strings and numbers whole; nothing is parsed and written
anew, so white space, escapes, number spellings and unknown fields survive every edit. Texts must be JSON that a strict
parser accepted; what is not raises `BadRequest`, and never loops.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from typing import Any, Final, NamedTuple

import orjson

from router.wire.errors import BadRequest, ErrorCode

_SPACE: Final = re.compile(rb"[ \t\n\r]*+")
STRING: Final = re.compile(rb'"(?:[^"\\]++|\\.)*+"', re.DOTALL)
_SCALAR: Final = re.compile(rb"[-+.0-9A-Za-z]++")
# From anywhere outside a string to just past the next bracket.
_NEXT_BRACKET: Final = re.compile(rb'[^"{}\[\]]*+(?:"(?:[^"\\]++|\\.)*+"[^"{}\[\]]*+)*+([{}\[\]])', re.DOTALL)


class Span(NamedTuple):
    """Bytes of a text, `stop` exclusive."""

    start: int
    stop: int


class Member(NamedTuple):
    """A member of an object: its key unescaped, where it begins (at the key) and ends, and where its value begins."""

    key: str
    start: int
    stop: int
    value: int


class Splice(NamedTuple):
    """Put `text` in place of the bytes from `start` to `stop`."""

    start: int
    stop: int
    text: bytes


def members(body: bytes, position: int = 0) -> list[Member]:
    """The members of the object that begins at `position` or after the white space there."""
    position = skip_space(body, expect(body, skip_space(body, position), b"{"))
    found: list[Member] = []
    if body[position : position + 1] == b"}":
        return found
    while True:
        key_end = end(STRING, body, position)
        value = skip_space(body, expect(body, skip_space(body, key_end), b":"))
        stop = skip_value(body, value)
        found.append(Member(str(loads(body, Span(position, key_end))), position, stop, value))
        position = skip_space(body, stop)
        if body[position : position + 1] == b"}":
            return found
        position = skip_space(body, expect(body, position, b","))


def elements(body: bytes, position: int = 0) -> list[Span]:
    """The elements of the array that begins at `position` or after the white space there."""
    position = skip_space(body, expect(body, skip_space(body, position), b"["))
    found: list[Span] = []
    if body[position : position + 1] == b"]":
        return found
    while True:
        stop = skip_value(body, position)
        found.append(Span(position, stop))
        position = skip_space(body, stop)
        if body[position : position + 1] == b"]":
            return found
        position = skip_space(body, expect(body, position, b","))


def find(found: Iterable[Member], key: str) -> Member | None:
    """The member of that key."""
    return next((member for member in found if member.key == key), None)


def loads(body: bytes, span: Span) -> Any:
    """The value that stands there, parsed."""
    try:
        return orjson.loads(body[span.start : span.stop])
    except orjson.JSONDecodeError:
        raise malformed() from None


def inside(body: bytes, position: int) -> int:
    """Just past the bracket of the object or array at `position`: where a first member or element would go."""
    return skip_space(body, position) + 1


def written(body: bytes, position: int, found: Sequence[Member], key: str, value: bytes) -> Splice:
    """The splice that gives a key its value in the object at `position`, whose members are `found`.

    A key that is not there comes first, where SDKs write what matters to a router.
    """
    member = find(found, key)
    if member is not None:
        return Splice(member.value, member.stop, value)
    start = inside(body, position)
    return Splice(start, start, orjson.dumps(key) + b":" + value + (b"," if found else b""))


def removals(items: Sequence[Span | Member], doomed: Collection[int]) -> list[Splice]:
    """Splices that take items, by index, out of their object or array, each with one comma."""
    found: list[Splice] = []
    kept = False
    for index, item in enumerate(items):
        if index not in doomed:
            kept = True
        elif kept:
            found.append(Splice(items[index - 1].stop, item.stop, b""))
        else:
            stop = items[index + 1].start if index + 1 < len(items) else item.stop
            found.append(Splice(item.start, stop, b""))
    return found


def splice(body: bytes, splices: Iterable[Splice]) -> bytes:
    """`body` with every splice made; none may overlap. The same object comes back when there is none."""
    ordered = sorted(splices, key=lambda one: one[:2])
    if not ordered:
        return body
    parts: list[bytes] = []
    position = 0
    for start, stop, text in ordered:
        parts += (body[position:start], text)
        position = stop
    parts.append(body[position:])
    return b"".join(parts)


def skip_value(body: bytes, position: int) -> int:
    """Just past the value at `position`."""
    first = body[position : position + 1]
    if first == b'"':
        return end(STRING, body, position)
    if first not in {b"{", b"["}:
        return end(_SCALAR, body, position)
    depth = 0
    while True:
        match = _NEXT_BRACKET.match(body, position)
        if match is None:
            raise malformed()
        position = match.end()
        depth += 1 if body[position - 1] in b"{[" else -1
        if depth == 0:
            return position


def skip_space(body: bytes, position: int) -> int:
    """Just past the white space at `position`."""
    return end(_SPACE, body, position)


def expect(body: bytes, position: int, mark: bytes) -> int:
    """Just past `mark`, which must stand at `position`."""
    if body[position : position + 1] != mark:
        raise malformed()
    return position + 1


def end(pattern: re.Pattern[bytes], body: bytes, position: int) -> int:
    """Just past what `pattern` must match at `position`."""
    match = pattern.match(body, position)
    if match is None:
        raise malformed()
    return match.end()


def malformed() -> BadRequest:
    """The error for a text that is no JSON object."""
    return BadRequest(ErrorCode.INVALID_JSON, "The request body is not one JSON object.")
