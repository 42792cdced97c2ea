"""How many tokens an answer says that it took, read from its beginning and its end, in each format.

Source: `reference.md` 7.5 (token counts of records).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec
import orjson

# A quote within a string is escaped, so this stands in no text of the answer's.
_USAGE: Final = re.compile(rb'(?<!\\)"usage"\s*:\s*(\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\})')
_READ: Final = ("prompt_tokens", "input_tokens")
_WRITTEN: Final = ("completion_tokens", "output_tokens")


class Usage(msgspec.Struct, frozen=True):
    """Tokens that the model read and wrote; None where the answer does not say."""

    prompt: int | None = None
    completion: int | None = None


def usage_in(start: bytes, end: bytes) -> Usage:
    """What an answer says, of which these are the first and the last bytes; they may overlap. Later figures count."""
    prompt: int | None = None
    completion: int | None = None
    for found in _usages((start, end)):
        prompt = _figure(found, _READ, prompt)
        completion = _figure(found, _WRITTEN, completion)
    return Usage(prompt, completion)


def _usages(parts: Iterable[bytes]) -> Iterator[Mapping[str, Any]]:
    for part in parts:
        for match in _USAGE.finditer(part):
            try:
                found = orjson.loads(match[1])
            except orjson.JSONDecodeError:
                continue
            yield found


def _figure(usage: Mapping[str, Any], names: tuple[str, ...], before: int | None) -> int | None:
    for name in names:
        value = usage.get(name)
        if type(value) is int and value >= 0:
            return value
    return before
