"""The request half of the phase machine: what is asked of the handler, and what Envoy is told about the request."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import Enum
from itertools import chain

from router.gateway import replies
from router.gateway.body import BodyBuffer
from router.gateway.commands import Command, Decide, Finish, Send, Status
from router.gateway.openings import Filter, Opening
from router.gateway.options import MachineOptions
from router.gateway.proto.ext_proc_pb2 import HttpBody, ProcessingMode
from router.gateway.replies import Changes, Direction
from router.verdict import AnswerWatch, Fault, Forward, Handler, HeadVerdict
from router.wire.http import Head, Reply

_NONE = ProcessingMode.NONE
_BUFFERED = ProcessingMode.BUFFERED
_DUPLEX = ProcessingMode.FULL_DUPLEX_STREAMED

_NO_CHANGES = Changes()
_PASS_MODE = ProcessingMode(
    request_body_mode=ProcessingMode.NONE,
    response_body_mode=ProcessingMode.NONE,
    request_trailer_mode=ProcessingMode.SKIP,
    response_header_mode=ProcessingMode.SKIP,
    response_trailer_mode=ProcessingMode.SKIP,
)


class _State(Enum):
    NEW = "new"
    COLLECTING = "collecting"  # the handler wants the body
    DECIDING = "deciding"  # the handler is at work
    PASSING = "passing"  # nothing of ours: answered, piece by piece, unchanged
    SETTLED = "settled"  # the verdict is out
    FINISHED = "finished"  # the stream is over


# Looked up as globals: members of an enum cost four times as much, at each of the fifteen looks of a request.
_NEW, _COLLECTING, _DECIDING, _PASSING, _SETTLED, _FINISHED = _State


class RequestPhase:
    """State of one request on its way to a backend, and of the stream that tells of it.

    Methods take a part of the request, or of the handler's answer, and return commands. None raises.
    """

    __slots__ = (
        "_body",
        "_body_ended",
        "_buffer",
        "_handler",
        "_head",
        "_headers_pending",
        "_mode",
        "_options",
        "_override",
        "_owned",
        "_report",
        "_response_body_mode",
        "_state",
        "_trailers_answered",
        "_trailers_pending",
        "ignored",
        "unwatched",
        "watch",
    )

    def __init__(self, handler: Handler, options: MachineOptions, report: Callable[[Exception], None] | None) -> None:
        self._handler = handler
        self._options = options
        self._report = report
        self._state = _NEW
        self._mode = options.request_body_mode
        self._response_body_mode = options.response_body_mode
        self._override = options.allow_mode_override
        self._head = Head("", "")
        self._owned: tuple[str, ...] = ()  # router-owned headers that the client sent and nobody has removed yet
        self._buffer = BodyBuffer(options.max_body_bytes)
        self._body = b""
        self._body_ended = False  # by its own end of stream
        self._headers_pending = False  # the headers' answer waits for the decision
        self._trailers_pending = False  # so does the trailers'
        self._trailers_answered = False
        self.ignored = 0
        """Repeated messages that were ignored."""
        self.watch: AnswerWatch | None = None
        """Who looks on while the request is answered, once it is on its way."""
        self.unwatched = False
        """Whether the stream ends with the verdict whoever wants to look on."""

    @property
    def new(self) -> bool:
        """Whether nothing of the request has come."""
        return self._state is _NEW

    @property
    def settled(self) -> bool:
        """Whether the request's fate is told: the stream may end with OK."""
        return self._state in (_PASSING, _SETTLED)

    @property
    def finished(self) -> bool:
        """Whether the end of the stream was told."""
        return self._state is _FINISHED

    def configure(self, told: Filter) -> None:
        """Take what the proxy says about its filter, before anything else."""
        self._mode = told.request_body_mode
        self._response_body_mode = told.response_body_mode
        # Envoy ignores overrides when it does not wait for the headers' answer.
        self._override = self._override and not told.early

    # -- what Envoy sends ---------------------------------------------------------------------------------------------

    def headers(self, opening: Opening) -> Iterable[Command]:
        """Take the request's headers."""
        if self._state is not _NEW:
            return self._repeated("request headers")
        self._head, self._owned = opening.head, opening.owned
        self._headers_pending = True
        self._body_ended = opening.ended
        verdict = self._ask()
        if verdict is HeadVerdict.PASS_THROUGH:
            return self._pass_headers()
        if verdict is HeadVerdict.NEED_BODY:
            return self._collect_after_headers()
        return verdict

    def body(self, body: HttpBody) -> Iterable[Command]:
        """Take a piece of the request's body; all of it, in BUFFERED mode."""
        if self._state is _NEW:
            return self._headerless()
        if self._state is _PASSING:
            return self._pass_body(body.body, body.end_of_stream)
        if self._state is _COLLECTING:
            return self._collect(body.body, body.end_of_stream)
        if self._body_ended or self._trailers_pending:
            self.ignored += 1  # Envoy delivers the last chunk twice in some releases
            return ()
        return self.finish(Status.INVALID_ARGUMENT, "request body goes on after its end: wrong request_body_mode?")

    def trailers(self) -> Iterable[Command]:
        """Take the news of trailers, which end a body. What they say is not read."""
        if self._state is _NEW:
            return self._headerless()
        if self._trailers_pending or self._trailers_answered:
            return self._repeated("request trailers")
        if self._state is _COLLECTING:
            self._trailers_pending = True
            return self._decide()
        if self._state is _DECIDING:
            self._trailers_pending = True
            return ()
        self._trailers_answered = True
        return self._settled([Send(replies.REQUEST_TRAILERS)])

    # -- what the handler says ----------------------------------------------------------------------------------------

    def decided(self, verdict: Reply | Forward) -> Iterable[Command]:
        """Take what `on_request` returned."""
        if self._state is not _DECIDING:
            return ()
        try:
            if isinstance(verdict, Reply):
                return self._refuse(verdict)
            return self._forward(verdict)
        except Exception as error:  # a verdict that cannot be written: never the end of the stream's rules
            return self._broken(error)

    def failed(self, fault: Fault) -> Iterable[Command]:
        """Take the news that `on_request` will not return: it raised, or ran out of time."""
        if self._state is not _DECIDING:
            return ()
        return self._fault(fault)

    def _headerless(self) -> Iterable[Command]:
        # Envoy has chosen a route, and opened it, before it asks: no verdict on such a request could hold.
        return self.finish(Status.FAILED_PRECONDITION, "no request headers came: request_header_mode must be SEND")

    # -- requests that are not ours -----------------------------------------------------------------------------------

    def _pass_headers(self) -> Iterable[Command]:
        self._state = _PASSING
        self._headers_pending = False
        # In full duplex chunks may be on their way already: an override would leave them without an answer.
        override = self._override and self._mode != _DUPLEX and not self._may_finish()
        changes, clear = self._strip()
        data = replies.request_headers(changes, clear_route_cache=clear, mode=_PASS_MODE if override else None)
        return self._settled([Send(data)], complete=self._body_ended or self._mode != _DUPLEX)

    def _pass_body(self, body: bytes, end_of_stream: bool) -> Iterable[Command]:
        if self._body_ended or self._trailers_answered:
            self.ignored += 1
            return ()
        self._body_ended = end_of_stream
        if self._mode == _DUPLEX:
            pieces = replies.streamed_body(Direction.REQUEST, body, end_of_stream=end_of_stream)
            return self._settled([Send(piece) for piece in pieces], complete=end_of_stream)
        return self._settled([Send(replies.REQUEST_BODY)])

    def _strip(self) -> tuple[Changes, bool]:
        """The removal of what the client may not send, once; and whether Envoy must forget the route that it chose."""
        if not self._owned:
            return _NO_CHANGES, False
        changes, self._owned = Changes(remove=self._owned), ()
        return changes, True

    # -- requests to decide -------------------------------------------------------------------------------------------

    def _collect_after_headers(self) -> Iterable[Command]:
        if self._body_ended:
            return self._fault(Fault.EMPTY_BODY)
        if self._buffer.announced_too_large(self._head.headers.get("content-length")):
            return self._fault(Fault.BODY_TOO_LARGE)
        mode = None
        if self._mode == _NONE and self._override:
            mode = ProcessingMode(request_body_mode=_BUFFERED, response_body_mode=self._response_body_mode)
            self._mode = _BUFFERED
        if self._mode not in (_BUFFERED, _DUPLEX):
            return self.finish(Status.FAILED_PRECONDITION, "request_body_mode must be BUFFERED or FULL_DUPLEX_STREAMED")
        self._state = _COLLECTING
        if self._mode == _DUPLEX:
            return ()  # the headers' answer carries the route, so it waits for the decision
        self._headers_pending = False
        changes, clear = self._strip()
        return (Send(replies.request_headers(changes, clear_route_cache=clear, mode=mode)),)

    def _collect(self, body: bytes, end_of_stream: bool) -> Iterable[Command]:
        if not self._buffer.add(body):
            return self._fault(Fault.BODY_TOO_LARGE)
        self._body_ended = end_of_stream
        # A buffered body comes whole. Without an end of stream there are trailers, which Envoy keeps back until the
        # body is answered: waiting for them would be waiting for ever.
        if end_of_stream or self._mode == _BUFFERED:
            return self._decide()
        return ()

    def _decide(self) -> Iterable[Command]:
        body = self._buffer.take()
        self._state = _DECIDING
        if not body:
            return self._fault(Fault.EMPTY_BODY)
        if self._mode == _DUPLEX:
            self._body = body
        return (Decide(self._head, body),)

    def _forward(self, verdict: Forward) -> Iterable[Command]:
        remove = (*self._owned, *verdict.remove_headers)
        clear = self._options.clear_route_cache
        commands: Iterable[Command]
        if self._headers_pending:
            changes = Changes(verdict.set_headers, remove)
            drop = verdict.body is not None
            head = replies.forward_headers(
                changes, verdict.metadata, clear_route_cache=clear, drop_length=drop, structs=verdict.structs
            )
            body = self._body if verdict.body is None else verdict.body
            pieces = replies.streamed_body(Direction.REQUEST, body, end_of_stream=not self._trailers_pending)
            commands = chain((Send(head),), map(Send, pieces))  # lazy: a second copy of a large body never exists whole
        else:
            data = replies.forward_body(
                verdict.set_headers,
                remove,
                verdict.metadata,
                verdict.body,
                clear_route_cache=clear,
                structs=verdict.structs,
            )
            commands = (Send(data),)
        self._state = _SETTLED
        self._headers_pending = False
        self._body = b""
        if verdict.watch is not None and not self.unwatched:
            verdict.watch.sent()
            self.watch = verdict.watch
        if self._trailers_pending:
            self._trailers_answered = True
            commands = chain(commands, (Send(replies.REQUEST_TRAILERS),))
        return self._settled(commands)

    # -- ends ---------------------------------------------------------------------------------------------------------

    def _ask(self) -> HeadVerdict | Iterable[Command]:
        """The handler's word on the head; commands when it is an answer, or no word at all."""
        try:
            verdict = self._handler.on_head(self._head)
            if verdict is HeadVerdict.NEED_BODY or verdict is HeadVerdict.PASS_THROUGH:
                return verdict
            return self._refuse(verdict)
        except Exception as error:
            self._tell(error)
            return self._fault(Fault.INTERNAL)

    def _fault(self, fault: Fault) -> Iterable[Command]:
        try:
            return self._refuse(self._handler.fault(self._head, fault))
        except Exception as error:
            return self._broken(error)

    def _refuse(self, reply: Reply) -> Iterable[Command]:
        # Envoy reads nothing of this stream after an immediate response, so it can always end.
        data = replies.immediate(reply)
        return (Send(data), *self.finish(Status.OK))

    def _settled(self, commands: Iterable[Command], *, complete: bool = True) -> Iterable[Command]:
        """`commands`, and the end of the stream when nothing more of the request can come."""
        if complete and self._may_finish():
            return chain(commands, self.finish(Status.OK))
        return commands

    def _may_finish(self) -> bool:
        # Envoy gives a full duplex body away to its processor: of an answer that is on its way to a stream that ends,
        # nothing would reach the client.
        if self.watch is not None:
            return False
        return self._options.finish_after_verdict and self._response_body_mode != _DUPLEX

    def _repeated(self, phase: str) -> Iterable[Command]:
        if self._state in (_COLLECTING, _DECIDING):
            return self.finish(Status.INVALID_ARGUMENT, f"{phase} came twice")
        self.ignored += 1
        return ()

    def _broken(self, error: Exception) -> Iterable[Command]:
        self._tell(error)
        return self.finish(Status.INTERNAL, "the handler gave no answer that can be sent")

    def _tell(self, error: Exception) -> None:
        if self._report is not None:
            self._report(error)

    def finish(self, status: Status, detail: str = "") -> tuple[Command, ...]:
        """End the stream, and let go of the body."""
        self._state = _FINISHED
        self._buffer.clear()
        self._body = b""
        return (Finish(status, detail),)
