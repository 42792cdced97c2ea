"""A decision's own answer to the client (plugin `fast_response`)."""

from __future__ import annotations

from typing import Final

from router.acting.target import Answered
from router.wire.answers import answer_reply, wanted
from router.wire.http import Reply
from router.wire.request import LlmRequest

# Envoy writes these on a backend's answer (from dynamic metadata); on an answer of ours nobody else does.
_HEADERS: Final = {
    "recipe": "x-vsr-selected-recipe",
    "decision": "x-vsr-selected-decision",
    "confidence": "x-vsr-selected-confidence",
    "applied_unknown_policy": "x-vsr-applied-unknown-policy",
    "retention_drop": "x-vsr-retention-drop",
}
_FIXED: Final = {
    "x-vsr-fast-response": "true",
    "x-vsr-response-path": "fast_response",
    "x-vsr-schema-version": "2",
}


def own_answer(answered: Answered, request: LlmRequest) -> Reply:
    """The reply to the request, in its client's format and framing."""
    told = {header: answered.told[key] for key, header in _HEADERS.items() if key in answered.told}
    return answer_reply(wanted(request.format, request.outline), answered.text, _FIXED | told)
