"""What the phase machine tells the transport to do."""

from __future__ import annotations

from enum import IntEnum

import msgspec

from router.wire.http import Head


class Status(IntEnum):
    """How a stream ends: the gRPC status codes that the machine uses, by their numbers on the wire."""

    OK = 0
    INVALID_ARGUMENT = 3
    FAILED_PRECONDITION = 9
    ABORTED = 10
    INTERNAL = 13


class Send(msgspec.Struct, frozen=True):
    """Send one message, a serialised ProcessingResponse."""

    data: bytes


class Decide(msgspec.Struct, frozen=True):
    """Run the handler's `on_request`, then call the machine's `decided` or `failed`. Always the last of its batch."""

    head: Head
    body: bytes


class Finish(msgspec.Struct, frozen=True):
    """End the stream. Any status but OK makes Envoy fail the request (while `failure_mode_allow` is false).

    `detail` is one of the machine's fixed texts: it never holds anything of the request.
    """

    status: Status
    detail: str = ""


Command = Send | Decide | Finish
