"""JSON that means one thing only: what two parsers could read differently is refused, not guessed."""

from __future__ import annotations

import json
from typing import Any

import orjson

from .body import BadBody, Problem

_MOST_DEPTH = 128


def parse_json(data: bytes) -> Any:
    """JSON without duplicate keys, NaN, infinities, lone surrogates or deep nesting. Raises BadBody (malformed)."""
    try:
        value = orjson.loads(data)
        if not _reads_one_way(value, data):
            value = json.loads(data, object_pairs_hook=_distinct)
        if data.count(b"[") + data.count(b"{") <= _MOST_DEPTH or _depth_is_bounded(value):
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
