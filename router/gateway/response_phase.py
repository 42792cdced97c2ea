"""The response half of the phase machine: everything is answered once, shown to whoever watches, and not changed."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from router.gateway import replies
from router.gateway.commands import Command, Send
from router.gateway.heads import read_answer_head
from router.gateway.proto.ext_proc_pb2 import HttpBody, HttpHeaders, ProcessingMode
from router.gateway.replies import Direction
from router.verdict import AnswerWatch


class ResponsePhase:
    """State of one answer on its way to the client. `mode` is how its body comes; `override`: that can be changed.

    `report` is told of exceptions of whoever watches, which change nothing.
    """

    __slots__ = ("_body_over", "_headers", "_override", "_report", "_trailers", "ignored", "mode", "seen")

    def __init__(
        self,
        mode: ProcessingMode.BodySendMode,
        *,
        override: bool = False,
        report: Callable[[Exception], None] | None = None,
    ) -> None:
        self.mode = mode
        self._override = override
        self._report = report
        self.seen = False
        """Whether any message of the response has come."""
        self._headers = False
        self._trailers = False
        self._body_over = False
        self.ignored = 0
        """Repeated messages that were ignored."""

    def headers(self, headers: HttpHeaders, watch: AnswerWatch | None) -> Iterable[Command]:
        """Answer response headers."""
        self.seen = True
        if self._headers:
            return self._repeated()
        self._headers = True
        if watch is not None and self._shown(headers, watch) and self._override and self.mode == ProcessingMode.NONE:
            self.mode = ProcessingMode.STREAMED
            return (Send(replies.RESPONSE_HEADERS_THEN_BODY),)
        return (Send(replies.RESPONSE_HEADERS),)

    def body(self, body: HttpBody, watch: AnswerWatch | None) -> Iterable[Command]:
        """Answer a piece of the response's body; in full duplex, by sending it back."""
        self.seen = True
        if self._body_over:
            return self._repeated()
        # A buffered body is one message, with or without an end of stream.
        self._body_over = body.end_of_stream or self.mode == ProcessingMode.BUFFERED
        if watch is not None:
            try:
                watch.body(body.body, last=self._body_over)
            except Exception as error:
                self._tell(error)
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

    def over(self, watch: AnswerWatch, *, left: bool) -> None:
        """The stream is over; `left`: by our own wish."""
        try:
            watch.over(left=left)
        except Exception as error:
            self._tell(error)

    def _shown(self, headers: HttpHeaders, watch: AnswerWatch) -> bool:
        """Whether the body is wanted after this."""
        try:
            wanted = watch.headers(*read_answer_head(headers.headers))
            if headers.end_of_stream:
                watch.body(b"", last=True)
            return wanted and not headers.end_of_stream
        except Exception as error:
            self._tell(error)
            return False

    def _tell(self, error: Exception) -> None:
        if self._report is not None:
            self._report(error)

    def _repeated(self) -> Iterable[Command]:
        self.ignored += 1
        return ()
