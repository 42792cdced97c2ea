"""Requests with a marker in a text of theirs: one for every string and every name that a document holds."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import Any, Final

_SCHEMA: Final = {"type": "object", "title": "t", "properties": {"city": {"type": "string", "description": "d"}}}
_IMAGE: Final = "data:image/png;base64,iVBORw0KGgo="

DOCUMENTS: Final[Mapping[str, Mapping[str, Any]]] = {
    "/v1/chat/completions": {
        "model": "auto",
        "messages": [
            {"role": "developer", "content": [{"type": "text", "text": "be kind"}], "name": "dev"},
            {
                "role": "user",
                "name": "ada",
                "content": [
                    {"type": "text", "text": "Please refund the python invoice"},
                    {"type": "image_url", "image_url": {"url": _IMAGE, "detail": "low"}},
                    {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}},
                    {"type": "file", "file": {"filename": "a.pdf", "file_data": "AAAA", "file_id": "f"}},
                    {"type": "novelty", "text": "new", "content": "newer"},
                ],
            },
            {
                "role": "assistant",
                "content": "said",
                "refusal": "no",
                "reasoning_content": "thought",
                "tool_calls": [
                    {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"city": "Rome"}'}},
                    {"id": "c2", "type": "custom", "custom": {"name": "g", "input": "raw"}},
                ],
            },
            {"role": "tool", "tool_call_id": "c1", "content": "result"},
            {"role": "function", "name": "f", "content": "older result"},
            {"role": "user", "content": "<system-reminder>mind</system-reminder>and now?"},
        ],
        "tools": [{"type": "function", "function": {"name": "f", "description": "weather", "parameters": _SCHEMA}}],
        "functions": [{"name": "h", "description": "old", "parameters": _SCHEMA}],
        "tool_choice": {"type": "function", "function": {"name": "f"}},
        "response_format": {"type": "json_schema", "json_schema": {"name": "s", "schema": _SCHEMA}},
        "prediction": {"type": "content", "content": "predicted"},
        "metadata": {"team": "blue"},
        "stop": ["END"],
        "user": "u-1",
        "prompt_cache_key": "k",
        "safety_identifier": "s",
        "reasoning_effort": "low",
        "extra_body": {"guided_regex": "x"},
    },
    "/v1/responses": {
        "model": "auto",
        "instructions": "be kind",
        "input": [
            {
                "role": "user",
                "content": [{"type": "input_text", "text": "refund"}, {"type": "input_image", "image_url": _IMAGE}],
            },
            {
                "type": "message",
                "role": "assistant",
                "content": [{"type": "output_text", "text": "ok", "annotations": []}],
            },
            {"type": "reasoning", "id": "r", "summary": [{"type": "summary_text", "text": "thought"}]},
            {"type": "function_call", "id": "i", "call_id": "1", "name": "f", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "1", "output": "42"},
            {"type": "novelty", "text": "new", "content": "newer"},
            {"role": "user", "content": "and now?"},
        ],
        "tools": [{"type": "function", "name": "f", "description": "weather", "parameters": _SCHEMA}],
        "text": {"format": {"type": "json_schema", "name": "s", "schema": _SCHEMA}},
        "metadata": {"team": "blue"},
        "previous_response_id": "resp_1",
        "user": "u-1",
        "prompt": {"id": "p", "variables": {"city": "Rome"}},
    },
    "/v1/messages": {
        "model": "auto",
        "max_tokens": 10,
        "system": [{"type": "text", "text": "be kind"}],
        "messages": [
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "refund"},
                    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}},
                    {
                        "type": "document",
                        "title": "paper",
                        "context": "about",
                        "source": {"type": "text", "media_type": "text/plain", "data": "long"},
                    },
                ],
            },
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "thought", "signature": "sig"},
                    {"type": "text", "text": "ok"},
                    {"type": "tool_use", "id": "1", "name": "f", "input": {"city": "Rome"}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "1", "content": [{"type": "text", "text": "42"}]},
                    {"type": "text", "text": "and now?"},
                ],
            },
        ],
        "tools": [{"name": "f", "description": "weather", "input_schema": _SCHEMA}],
        "tool_choice": {"type": "tool", "name": "f"},
        "metadata": {"user_id": "u-1"},
        "stop_sequences": ["END"],
    },
}
"""A request of each format with every kind of text that it can hold."""


def planted(document: Mapping[str, Any], canary: str) -> Iterator[Mapping[str, Any]]:
    """Copies of a document, each with the marker in another place: in every string, then in the name of every field."""
    for place in _places(document, ()):
        *above, last = place
        for rename in (False, True):
            made = copy.deepcopy(document)
            inner: Any = made
            for key in above:
                inner = inner[key]
            if not rename:
                if isinstance(inner[last], str):
                    inner[last] = f"{inner[last]} {canary}" if len(inner[last]) % 2 else canary
                    yield made
            elif isinstance(last, str):
                inner[canary] = inner.pop(last)
                yield made


def _places(value: Any, above: tuple[str | int, ...]) -> Iterator[tuple[str | int, ...]]:
    found: Any = value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in found:
        yield (*above, key)
        yield from _places(inner, (*above, key))
