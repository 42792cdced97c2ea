"""Texts of an OpenAI decisions request: `input` and `instructions`, which may be strings or lists of typed parts."""

from __future__ import annotations

from typing import Any

from .body import Loc, Problem
from .state import as_text

_IMAGE = "input_image"
_ROLES = ("user", "developer", "system", "assistant")
_TEXTS = {"input_text": "text", "output_text": "text", "refusal": "refusal"}
_BETWEEN = "\n\n"


def input_text(fields: dict[str, Any], problems: list[Problem]) -> tuple[str, bool]:
    """The `input` as one text, and whether it holds images too."""
    loc: Loc = ("body", "input")
    value = fields.get("input")
    if isinstance(value, str):
        return value, False
    if not isinstance(value, list) or not value:
        kind = "string_type" if "input" in fields else "missing"
        problems.append(Problem(loc, "must be text or a list of messages and tool calls", kind))
        return "", False
    texts: list[str] = []
    images = False
    for index, item in enumerate(value):
        text, pictured = _item(item, (*loc, index), problems)
        images |= pictured
        if text:
            texts.append(text)
    return _BETWEEN.join(texts), images


def parts_text(value: Any, loc: Loc, problems: list[Problem]) -> str:
    """Instructions: text, or a list of text and JSON parts; never blank. A question cannot show an image here."""
    text, images = _content(value, loc, problems)
    if images:
        problems.append(Problem(loc, "this model reads text only", "unsupported"))
    elif isinstance(value, str | list) and not text.strip():
        problems.append(Problem(loc, "must not be blank", "value_error"))
    return text


def _item(item: Any, loc: Loc, problems: list[Problem]) -> tuple[str, bool]:
    """One entry of a conversation: a message, a call of a tool, or what the tool gave back."""
    kind = item.get("type", "message") if isinstance(item, dict) else None
    if kind == "message":
        if item.get("role") not in _ROLES:
            problems.append(Problem((*loc, "role"), f"must be one of {', '.join(_ROLES)}", "literal_error"))
        return _content(item.get("content"), (*loc, "content"), problems)
    if kind in ("function_call", "custom_tool_call"):
        name, given = item.get("name"), item.get("arguments" if kind == "function_call" else "input")
        if not isinstance(name, str) or not isinstance(given, str):
            problems.append(Problem(loc, "must be a call with its name and what it was given", "string_type"))
            return "", False
        return f"{name}({given})", False
    if kind in ("function_call_output", "custom_tool_call_output"):
        return _content(item.get("output"), (*loc, "output"), problems)
    problems.append(Problem(loc, "must be a message, a tool call or its output", "literal_error"))
    return "", False


def _content(value: Any, loc: Loc, problems: list[Problem]) -> tuple[str, bool]:
    """Text of a string or of a list of parts, and whether a part is an image."""
    if isinstance(value, str):
        return value, False
    if not isinstance(value, list):
        fault = "missing" if value is None else "string_type"
        problems.append(Problem(loc, "must be text or a list of parts", fault))
        return "", False
    texts: list[str] = []
    images = False
    for index, part in enumerate(value):
        kind = part.get("type") if isinstance(part, dict) else None
        if kind == _IMAGE:
            images = True
        elif kind == "input_json" and isinstance(part.get("data"), dict | list):
            texts.append(as_text(part["data"]))
        elif isinstance(kind, str) and isinstance(text := part.get(_TEXTS.get(kind, "")), str):
            texts.append(text)
        else:
            problems.append(Problem((*loc, index), "must be a text, JSON or image part", "literal_error"))
    return _BETWEEN.join(texts), images
