"""The phase machine: one HTTP request as Envoy tells it, message by message, with no transport and no clock.

The transport feeds messages and carries out the commands that come back:

    feed(bytes) | decided(verdict) | failed(fault) | ended() | release()  ->  Send | Decide | Finish

Three rules hold whatever arrives, and the property tests drive exactly these:

* Nothing raises. A message that makes no sense ends the stream with an error status.
* A stream ends with OK only when the request's fate is settled: Envoy forwards a request *unchecked* when its processor
  leaves with OK, even where `failure_mode_allow` is false.
* Each phase is answered once. Envoy may repeat the last chunk of a body; the repetition is ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from google.protobuf.message import DecodeError

from router.gateway.commands import Command, Status
from router.gateway.openings import Filter, Opening, Openings
from router.gateway.options import MachineOptions
from router.gateway.proto.ext_proc_pb2 import ProcessingRequest
from router.gateway.request_phase import RequestPhase
from router.gateway.response_phase import ResponsePhase
from router.verdict import Fault, Forward, Handler
from router.wire.http import Reply


class StreamMachine:
    """One stream. `report` is told of exceptions that the handler raised and the machine survived."""

    __slots__ = ("_openings", "_request", "_response", "_started")

    def __init__(
        self,
        handler: Handler,
        options: MachineOptions,
        report: Callable[[Exception], None] | None = None,
        openings: Openings | None = None,
    ) -> None:
        """`openings`: what other streams began with, if that is shared."""
        self._openings = openings
        self._started = False
        self._request = RequestPhase(handler, options, report)
        self._response = ResponsePhase(options.response_body_mode, override=options.allow_mode_override, report=report)

    @property
    def ignored(self) -> int:
        """Repeated messages that were ignored so far."""
        return self._request.ignored + self._response.ignored

    def feed(self, data: bytes) -> Iterable[Command]:
        """Take one serialised ProcessingRequest."""
        opening = None if self._started or self._openings is None else self._openings.known(data)
        if opening is not None:
            return self._open(opening)
        try:
            message = ProcessingRequest.FromString(data)
        except DecodeError:
            return self._end(Status.INVALID_ARGUMENT, "not a ProcessingRequest")
        return self.receive(message, data)

    def receive(self, message: ProcessingRequest, data: bytes | None = None) -> Iterable[Command]:
        """Take one message; `data` is the same serialised, where it came like that."""
        if self._request.finished:
            return ()
        phase = message.WhichOneof("request")
        if phase == "request_headers":
            opening = Opening.of(message)
            if data is not None and not self._started and self._openings is not None:
                self._openings.keep(data, opening)
            return self._open(opening)
        if message.observability_mode:
            return self._observed()
        if not self._started:
            self._start(Filter.of(message))
        if phase is None:
            return self._end(Status.INVALID_ARGUMENT, "a message without a phase that is known here")
        return _PHASES[phase](self, message)

    def decided(self, verdict: Reply | Forward) -> Iterable[Command]:
        """Take what `on_request` returned."""
        return self._request.decided(verdict)

    def failed(self, fault: Fault) -> Iterable[Command]:
        """Take the news that `on_request` will not return: it raised, or ran out of time."""
        return self._request.failed(fault)

    def ended(self) -> Iterable[Command]:
        """Take the end of Envoy's half of the stream."""
        # A request that an earlier filter answered is seen in its response phases alone.
        only_response = self._request.new and self._response.seen
        if only_response or self._request.settled:
            return self._end(Status.OK, "")
        return self._end(Status.ABORTED, "the stream ended before a decision")

    def release(self) -> Iterable[Command]:
        """Watch no answer any longer, now or once the request is decided: the process wants to end."""
        self._request.unwatched = True
        return self._end(Status.OK, "") if self._request.watch is not None else ()

    def over(self) -> None:
        """The stream has ended, however: to be called once, after everything else."""
        watch, self._request.watch = self._request.watch, None
        if watch is not None:
            self._response.over(watch, left=self._request.unwatched)

    def _open(self, opening: Opening) -> Iterable[Command]:
        if opening.observed:
            return self._observed()
        if not self._started:
            self._start(opening.filter)
        return self._request.headers(opening)

    def _start(self, told: Filter | None) -> None:
        self._started = True
        if told is not None:
            self._request.configure(told)
            self._response.mode = told.response_body_mode

    def _observed(self) -> Iterable[Command]:
        return self._end(
            Status.FAILED_PRECONDITION, "observability_mode is on: no decision would count, set it to false"
        )

    def _end(self, status: Status, detail: str) -> Iterable[Command]:
        return () if self._request.finished else self._request.finish(status, detail)


_PHASES: dict[str, Callable[[StreamMachine, ProcessingRequest], Iterable[Command]]] = {
    "request_body": lambda machine, message: machine._request.body(message.request_body),
    "request_trailers": lambda machine, message: machine._request.trailers(),
    "response_headers": lambda machine, message: machine._response.headers(
        message.response_headers, machine._request.watch
    ),
    "response_body": lambda machine, message: machine._response.body(message.response_body, machine._request.watch),
    "response_trailers": lambda machine, message: machine._response.trailers(),
}
