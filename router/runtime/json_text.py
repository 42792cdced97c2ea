"""JSON that means one thing only: what two parsers could read differently is refused, not guessed."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import orjson

from .body import BadBody, Problem

MOST_VALUES = 262_144
"""Values of a body, each a Python object: 256 for each of the 1,024 states that a batch may have. As one state so many
are half a million tokens at least, which no model reads."""
_MOST_DEPTH = 128
_QUOTE = ord('"')
_BLANKS = b" \t\r\n"
_ROUNDED = 2.0**63
"""From here on orjson may have made a float of an integer."""


def parse_json(data: bytes) -> Any:
    """JSON without duplicate keys, NaN, infinities, lone surrogates or deep nesting. Raises BadBody (malformed).

    More than `MOST_VALUES` are a BadBody too, before any is made. No step holds the interpreter for long.
    """
    opened = data.count(b"[") + data.count(b"{")
    if opened + data.count(b",") >= MOST_VALUES and _values(data) > MOST_VALUES:
        raise BadBody([Problem(("body",), f"at most {MOST_VALUES} JSON values", "too_long")])
    try:
        value = orjson.loads(data)
        if not _reads_one_way(value, data):
            value = _checked(value, data)
        if opened <= _MOST_DEPTH or _depth_is_bounded(value):
            return value
        message = f"the body is nested deeper than {_MOST_DEPTH}"
    except _Duplicate:
        message = "an object holds a key twice"
    except (ValueError, RecursionError):
        message = "the body is not valid JSON"
    raise BadBody([Problem(("body",), message, "json_invalid")], malformed=True)


def _reads_one_way(value: Any, data: bytes) -> bool:
    """Whether the value is written as the very same bytes, as those of compact writers are: then nothing got lost."""
    try:
        return orjson.dumps(value) == data
    except orjson.JSONEncodeError:
        return False  # nested too deep to be written


def _checked(value: Any, data: bytes) -> Any:
    """What the data says, whose members are as many as its colons outside of strings. Raises _Duplicate, ValueError."""
    members, left = 0, [value]
    while left:
        item = left.pop()
        if isinstance(item, dict):
            members += len(item)
            left.extend(item.values())
        elif isinstance(item, list):
            left.extend(item)
        elif isinstance(item, float) and abs(item) >= _ROUNDED:
            return json.loads(data, object_pairs_hook=_distinct)
    # Those of all the data are never fewer: mostly no text has one, and they are told at once.
    if data.count(b":") != members and _outside_strings(data).count(b":") != members:
        raise _Duplicate
    return value


def _values(data: bytes) -> int:
    """How many values JSON holds; of what is no JSON, as many as a reader could make before it sees that."""
    outside = _outside_strings(data)
    opened = outside.count(b"[") + outside.count(b"{") - outside.count(b"[]") - outside.count(b"{}")
    return 1 + outside.count(b",") + opened


def _outside_strings(data: bytes) -> bytes:
    """What stands outside of strings, without blanks; of each string its last quote is left."""
    # Pairs of backslashes go first: then one before a quote is what escapes it.
    plain = data.replace(b"\\\\", b"").replace(b'\\"', b"") if b"\\" in data else data
    written = np.frombuffer(plain, np.uint8)
    inside = np.logical_xor.accumulate(written == _QUOTE)
    return written[~inside].tobytes().translate(None, _BLANKS)


def _depth_is_bounded(value: Any) -> bool:
    """Without recursion: what is deeper could not be written out again as text."""
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(_MOST_DEPTH + 1):
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, dict | list)
        ]
        if not level:
            return True
    return False


class _Duplicate(ValueError):
    pass


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise _Duplicate
    return result
