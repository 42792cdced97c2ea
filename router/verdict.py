"""What the pipeline tells the gateway to do with a request, and the handler that the gateway calls.

A leaf beside the pipeline, so that the phase machine can be tested against a few lines of fake handler and the pipeline
never sees a protobuf.
"""

from __future__ import annotations

from collections.abc import Coroutine, Mapping, Sequence
from enum import Enum, StrEnum
from typing import Any, Protocol

import msgspec

from router.wire.http import Head, Reply


class HeadVerdict(Enum):
    """What a request's headers alone settle."""

    PASS_THROUGH = "pass_through"  # noqa: S105 - a verdict, not a secret
    NEED_BODY = "need_body"


class Fault(StrEnum):
    """A request that cannot reach a decision. A closed set, because it becomes a metric label."""

    BODY_TOO_LARGE = "body_too_large"
    EMPTY_BODY = "empty_body"
    INTERNAL = "internal"
    DEADLINE = "deadline"


class AnswerWatch(Protocol):
    """Looks on while a forwarded request is answered. Calls come in this order, from the event loop, and must be quick.

    The stream then stays open for as long as the answer, and Envoy has to be configured to tell of answers.
    """

    def sent(self) -> None:
        """The request is on its way to the backend."""

    def headers(self, status: int, headers: Mapping[str, str]) -> bool:
        """The answer begins. Names are lower case; only few come. Returns whether its body is wanted, too."""

    def body(self, piece: bytes, *, last: bool) -> None:
        """A piece of the body, in its content encoding, on its way to the client."""

    def over(self, *, left: bool) -> None:
        """Nothing more will be told. Always called, once, also when neither headers nor the end of a body came.

        `left`: the router looked away, so that nobody knows how the answer went on.
        """


class Forward(msgspec.Struct, frozen=True):
    """Send the request to the backend of `model`.

    `set_headers` overwrite whatever the client sent; `body` is None when the original bytes go on untouched.
    `metadata` reaches Envoy as dynamic metadata, from which it writes the `x-vsr-*` headers of the client's answer.
    `structs` reach it as dynamic metadata of other namespaces, for filters and logs behind the router. `watch` looks on
    while it is answered; without one the stream ends here.
    """

    model: str
    set_headers: Mapping[str, str] = {}
    remove_headers: Sequence[str] = ()
    body: bytes | None = None
    metadata: Mapping[str, str] = {}
    structs: Mapping[str, Mapping[str, Any]] = {}
    watch: AnswerWatch | None = None


class Handler(Protocol):
    """Decides requests for the gateway. One instance serves every stream; state of a request lives in its own call."""

    def on_head(self, head: Head) -> Reply | HeadVerdict:
        """Settle what the headers settle. Called once a stream, must not block."""

    def on_request(self, head: Head, body: bytes) -> Reply | Forward | Coroutine[Any, Any, Reply | Forward]:
        """Decide a request whose whole body, still in its content encoding, has come in.

        Called on the event loop. What can be decided at once is returned at once, which saves a task; anything else
        returns a coroutine, as every `async def` does: it runs in a task that is cancelled when the client leaves.
        """

    def fault(self, head: Head, fault: Fault) -> Reply:
        """The answer, in the client's own format, to a request that cannot be decided."""
