"""The one edit of a request: its model's name, in place, with every other byte left as the client sent it.

Only structure is scanned, by regular expressions that skip strings and numbers whole; nothing is parsed and written
anew, so white space, escapes, number spellings and unknown fields survive.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

import orjson

from router.wire.errors import BadRequest, ErrorCode
from router.wire.spans import STRING, end, expect, skip_space, skip_value

# What SDKs write: `model` is the object's first key.
_MODEL_FIRST: Final = re.compile(
    rb'[ \t\n\r]*+\{[ \t\n\r]*+"model"[ \t\n\r]*+:[ \t\n\r]*+("(?:[^"\\]++|\\.)*+")', re.DOTALL
)


def replace_model(body: bytes, model: str) -> bytes:
    """`body` with the value of its top-level `model` replaced, or the key put first when it has none.

    `body` must be a JSON object that `read_request` accepted. The same object comes back when the value is `model`
    already. Raises `BadRequest` when the body is no object, and where it finds `model` twice on its way.
    """
    value, start = _find_model(body)
    name = _written(model)
    if value is None:
        empty = body[skip_space(body, start) :].startswith(b"}")
        return body[:start] + b'"model":' + name + (b"" if empty else b",") + body[start:]
    written = body[value.start : value.stop]
    if written == name or (b"\\" in written and _text(written) == model):
        return body
    return body[: value.start] + name + body[value.stop :]


@lru_cache(maxsize=256)
def _written(model: str) -> bytes:
    return orjson.dumps(model)


def _find_model(body: bytes) -> tuple[slice | None, int]:
    """Where the value of the top-level `model` stands, and where the object's content begins."""
    first = _MODEL_FIRST.match(body)
    if first is not None:
        return slice(*first.span(1)), 0  # and the only one: `read_request` lets no key stand twice
    start = expect(body, skip_space(body, 0), b"{")
    found: slice | None = None
    position = skip_space(body, start)
    if body[position : position + 1] == b"}":
        return None, start
    while True:
        key_end = end(STRING, body, position)
        key = body[position:key_end]
        value_start = skip_space(body, expect(body, skip_space(body, key_end), b":"))
        value_end = skip_value(body, value_start)
        if key == b'"model"' or (b"\\" in key and _text(key) == "model"):
            if found is not None:
                raise BadRequest(ErrorCode.DUPLICATE_KEY, "The request holds the key 'model' twice.", "model")
            found = slice(value_start, value_end)
            if _is_only(body, value_end):
                return found, start
        position = skip_space(body, value_end)
        if body[position : position + 1] == b"}":
            return found, start
        position = skip_space(body, expect(body, position, b","))


def _is_only(body: bytes, position: int) -> bool:
    """Whether no key after `position` can be `model`, told by its spellings: mostly the rest need not be scanned."""
    return body.find(b'"model"', position) < 0 and body.find(b"\\u", position) < 0


def _text(value: bytes) -> str | None:
    try:
        text = orjson.loads(value)
    except orjson.JSONDecodeError:
        return None
    return text if isinstance(text, str) else None
