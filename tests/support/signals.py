"""Short ways to ask a heuristic rule about a request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from router.config.heuristics import HeuristicRule
from router.signals.facts import RequestFacts
from router.signals.heuristics import Heuristics
from router.signals.reading import Reading
from router.wire.request import LlmRequest, read_request
from router.wire.surface import Format


def chat(*messages: Mapping[str, Any] | str, **more: Any) -> LlmRequest:
    """A Chat request; plain texts are user messages."""
    written = [{"role": "user", "content": one} if isinstance(one, str) else one for one in messages]
    return request(Format.CHAT, messages=written, **more)


def request(format: Format, **document: Any) -> LlmRequest:
    return read_request(format, orjson.dumps(document))


def facts(*messages: Mapping[str, Any] | str, **more: Any) -> RequestFacts:
    return RequestFacts(chat(*messages, **more))


def reading(rule: HeuristicRule, about: RequestFacts | str) -> Reading:
    """What one rule says about a request, or about a user turn of this text."""
    seen = facts(about) if isinstance(about, str) else about
    return Heuristics([rule]).read(seen)[rule.name]


def matches(rule: HeuristicRule, about: RequestFacts | str) -> bool | None:
    return reading(rule, about).matched
