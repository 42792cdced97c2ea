"""One request while it is decided: what came, and what is read out of it and changed in it."""

from __future__ import annotations

import msgspec

from router.acting.editing import edited, edits
from router.acting.target import Answered, Refused, Settled
from router.explaining.notes import Notes
from router.generation import Generation
from router.judging import LARGE_BODY
from router.wire.encoding import decode_body
from router.wire.errors import ErrorCode
from router.wire.http import Head
from router.wire.request import LlmRequest, read_request
from router.wire.surface import Format

INFLATES = 64
"""How much smaller a compressed body counts as large: what it inflates to is not known beforehand."""


class Incoming(msgspec.Struct, frozen=True):
    """One request while it is decided. `path` replaces the client's spelling of it, where that differs."""

    generation: Generation
    head: Head
    format: Format
    path: str | None
    encoding: str | None
    started: float
    notes: Notes | None


def recipe_of(incoming: Incoming, request: LlmRequest) -> str | None:
    """The recipe that the requested model stands for. Raises Refused for one that the client may not name."""
    plan, offers = incoming.generation.plan, incoming.generation.offers
    if offers is not None:
        offer = offers.of(incoming.head.headers)
        if offer is not None and not offer.takes(request.model):
            raise Refused(ErrorCode.MODEL_NOT_ALLOWED if request.model else ErrorCode.MODEL_REQUIRED)
    return plan.entrypoints.get(request.model) if request.model else plan.default_entrypoint


def read(incoming: Incoming, body: bytes) -> tuple[bytes, LlmRequest]:
    """The body without its coding, and the request in it. Raises WireError."""
    plain = decode_body(body, incoming.encoding, incoming.generation.plan.max_body_bytes)
    return plain, read_request(incoming.format, plain)


def changed_body(incoming: Incoming, settled: Settled, plain: bytes, request: LlmRequest) -> bytes | None:
    """The body with what the decision changes in it, the model's name above all; None where it stays as it came."""
    if isinstance(settled, Answered) or not edits(settled, request.model):
        return None
    found = edited(incoming.format, plain, settled)
    return None if found is plain else found


def is_large(body: bytes, encoding: str | None) -> bool:
    """Whether reading it takes longer than the event loop should wait."""
    return len(body) >= (LARGE_BODY if encoding is None else LARGE_BODY // INFLATES)
