"""Bounds on a request's parameters: what is left out, lowered, or unknown. Every other byte stays.

Sources: reference.md 5.10 (request_params), the formats' own references (names of parameters).
"""

from __future__ import annotations

import math
from typing import Any, Final

from router.config.actions import RequestParams
from router.wire.spans import Member, Span, Splice, find, loads, members, removals, splice, written
from router.wire.surface import Format

LENGTHS: Final = {
    Format.CHAT: ("max_completion_tokens", "max_tokens"),
    Format.RESPONSES: ("max_output_tokens",),
    Format.MESSAGES: ("max_tokens",),
}
"""The parameters that bound how much is generated."""

LEAST_THINKING: Final = 1024
"""The smallest budget for thinking that the Messages API takes."""

_OPENAI: Final = (
    *("metadata", "moderation", "parallel_tool_calls", "prompt_cache_key", "prompt_cache_options"),
    *("prompt_cache_retention", "safety_identifier", "service_tier", "store", "stream", "stream_options"),
    *("temperature", "tool_choice", "tools", "top_logprobs", "top_p", "user", "model"),
)
KNOWN: Final = {
    Format.CHAT: frozenset(
        {
            *_OPENAI,
            *("audio", "frequency_penalty", "function_call", "functions", "logit_bias", "logprobs"),
            *("max_completion_tokens", "max_tokens", "messages", "modalities", "n", "prediction", "presence_penalty"),
            *("reasoning_effort", "response_format", "seed", "stop", "verbosity", "web_search_options"),
        }
    ),
    Format.RESPONSES: frozenset(
        {
            *_OPENAI,
            *("access_programs", "background", "background_options", "context_management", "conversation", "image"),
            *("include", "input", "instructions", "max_output_tokens", "max_tool_calls", "previous_response_id"),
            *("prompt", "reasoning", "text", "truncation"),
        }
    ),
    Format.MESSAGES: frozenset(
        {
            *("cache_control", "container", "diagnostics", "inference_geo", "max_tokens", "messages", "metadata"),
            *("model", "output_config", "service_tier", "speed", "stop_sequences", "stream", "system", "thinking"),
            *("temperature", "tool_choice", "tools", "top_k", "top_p", "user_profile_id", "workspace_id"),
            # Betas, which clients switch on by header.
            *("compaction", "context_management", "fallbacks", "mcp_servers", "thread"),
        }
    ),
}
"""The parameters of each API, as its own SDK writes them."""


def bound_params(format: Format, body: bytes, params: RequestParams) -> bytes:
    """`body`, which `read_request` accepted, within `params`."""
    found = members(body)
    doomed = {index for index, member in enumerate(found) if _unwanted(format, member.key, params)}
    splices = removals(found, doomed)
    left = [member for index, member in enumerate(found) if index not in doomed]
    if params.max_tokens_limit is not None:
        splices += _shortened(format, body, left, params.max_tokens_limit)
    choices = find(left, "n") if params.max_n is not None and format is Format.CHAT else None
    if choices is not None and params.max_n is not None:
        splices += _lowered(body, choices, params.max_n, least=-math.inf)
    return splice(body, splices)


def _unwanted(format: Format, key: str, params: RequestParams) -> bool:
    return key in params.blocked or (params.strip_unknown and key not in KNOWN[format])


def _shortened(format: Format, body: bytes, left: list[Member], limit: int) -> list[Splice]:
    found: list[Splice] = []
    for name in LENGTHS[format]:
        member = find(left, name)
        if member is not None:
            found += _lowered(body, member, limit, least=0)
    thinking = find(left, "thinking") if format is Format.MESSAGES else None
    return found + _thinking(body, thinking, limit) if thinking is not None else found


def _thinking(body: bytes, thinking: Member, limit: int) -> list[Splice]:
    """A budget for thinking must stay below the length, or the backend refuses the request."""
    value = loads(body, Span(thinking.value, thinking.stop))
    budget = _number(value.get("budget_tokens")) if type(value) is dict else None
    if budget is None or budget < limit:
        return []
    if limit <= LEAST_THINKING:
        return [Splice(thinking.value, thinking.stop, b'{"type":"disabled"}')]
    lowered = str(limit - 1).encode()
    return [written(body, thinking.value, members(body, thinking.value), "budget_tokens", lowered)]


def _lowered(body: bytes, member: Member, limit: int, *, least: float) -> list[Splice]:
    """`limit` in place of a number above it, or below `least`: some servers take a negative length for no end."""
    value = _number(loads(body, Span(member.value, member.stop)))
    if value is None or least <= value <= limit:
        return []
    return [Splice(member.value, member.stop, str(limit).encode())]


def _number(value: Any) -> float | None:
    """A value as a number. Servers in Python read one in quotation marks as well, so that is none the less a number."""
    if type(value) is str:
        try:
            return float(value)
        except ValueError:
            return None
    return value if type(value) in (int, float) else None
