"""The response half of the phase machine: everything is answered once, and nothing is changed."""

from __future__ import annotations

from collections.abc import Iterable

from router.gateway import replies
from router.gateway.commands import Command, Send
from router.gateway.proto.ext_proc_pb2 import HttpBody, ProcessingMode
from router.gateway.replies import Direction


class ResponsePhase:
    """State of one answer on its way to the client. `mode` is how its body comes."""

    __slots__ = ("_body_over", "_headers", "_trailers", "ignored", "mode", "seen")

    def __init__(self, mode: ProcessingMode.BodySendMode) -> None:
        self.mode = mode
        self.seen = False
        """Whether any message of the response has come."""
        self._headers = False
        self._trailers = False
        self._body_over = False
        self.ignored = 0
        """Repeated messages that were ignored."""

    def headers(self) -> Iterable[Command]:
        """Answer response headers."""
        self.seen = True
        if self._headers:
            return self._repeated()
        self._headers = True
        return (Send(replies.RESPONSE_HEADERS),)

    def body(self, body: HttpBody) -> Iterable[Command]:
        """Answer a piece of the response's body; in full duplex, by sending it back."""
        self.seen = True
        if self._body_over:
            return self._repeated()
        # A buffered body is one message, with or without an end of stream.
        self._body_over = body.end_of_stream or self.mode == ProcessingMode.BUFFERED
        if self.mode == ProcessingMode.FULL_DUPLEX_STREAMED:
            pieces = replies.streamed_body(Direction.RESPONSE, body.body, end_of_stream=body.end_of_stream)
            return [Send(piece) for piece in pieces]
        return (Send(replies.RESPONSE_BODY),)

    def trailers(self) -> Iterable[Command]:
        """Answer response trailers."""
        self.seen = True
        if self._trailers:
            return self._repeated()
        self._trailers = True
        return (Send(replies.RESPONSE_TRAILERS),)

    def _repeated(self) -> Iterable[Command]:
        self.ignored += 1
        return ()
