"""Envoy's side of an ext_proc stream for tests: messages to send, and what came back in words that compare."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from router.gateway.commands import Command, Finish, Send
from router.gateway.proto.ext_proc_pb2 import (
    HeaderMap,
    HeaderMutation,
    HeaderValue,
    HttpBody,
    HttpHeaders,
    HttpTrailers,
    ProcessingMode,
    ProcessingRequest,
    ProcessingResponse,
    ProtocolConfiguration,
)
from router.verdict import Fault, Forward, HeadVerdict
from router.wire.http import Head, Reply

BUFFERED = ProcessingMode.BUFFERED
DUPLEX = ProcessingMode.FULL_DUPLEX_STREAMED
NONE = ProcessingMode.NONE


def protocol(
    request: ProcessingMode.BodySendMode, response: ProcessingMode.BodySendMode = NONE, early: bool = False
) -> ProtocolConfiguration:
    return ProtocolConfiguration(
        request_body_mode=request, response_body_mode=response, send_body_without_waiting_for_header_response=early
    )


def header_map(headers: Iterable[tuple[str, str | bytes]]) -> HeaderMap:
    return HeaderMap(
        headers=[
            HeaderValue(key=name, raw_value=value if isinstance(value, bytes) else value.encode())
            for name, value in headers
        ]
    )


def headers(
    *extra: tuple[str, str | bytes],
    path: str = "/v1/chat/completions",
    method: str = "POST",
    mode: ProtocolConfiguration | None = None,
    eos: bool = False,
) -> ProcessingRequest:
    pseudo = ((":method", method), (":path", path), (":authority", "api.test"), (":scheme", "http"))
    message = ProcessingRequest(
        request_headers=HttpHeaders(headers=header_map((*pseudo, *extra)), end_of_stream=eos),
    )
    if mode is not None:
        message.protocol_config.CopyFrom(mode)
    return message


def body(data: bytes, eos: bool = True) -> ProcessingRequest:
    return ProcessingRequest(request_body=HttpBody(body=data, end_of_stream=eos))


def trailers() -> ProcessingRequest:
    return ProcessingRequest(request_trailers=HttpTrailers(trailers=header_map([("x-end", "1")])))


def response_headers(mode: ProtocolConfiguration | None = None) -> ProcessingRequest:
    message = ProcessingRequest(response_headers=HttpHeaders(headers=header_map([(":status", "200")])))
    if mode is not None:
        message.protocol_config.CopyFrom(mode)
    return message


def response_body(data: bytes, eos: bool = True) -> ProcessingRequest:
    return ProcessingRequest(response_body=HttpBody(body=data, end_of_stream=eos))


def response_trailers() -> ProcessingRequest:
    return ProcessingRequest(response_trailers=HttpTrailers())


def sent(commands: Iterable[Command]) -> list[ProcessingResponse]:
    return [ProcessingResponse.FromString(command.data) for command in commands if isinstance(command, Send)]


def phases(commands: Iterable[Command]) -> list[str]:
    """The commands in short: the phase that a message answers, "Decide", or the status that ends the stream."""
    words: list[str] = []
    for command in commands:
        if isinstance(command, Send):
            words.append(ProcessingResponse.FromString(command.data).WhichOneof("response") or "empty")
        elif isinstance(command, Finish):
            words.append(command.status.name)
        else:
            words.append("Decide")
    return words


def set_headers(mutation: HeaderMutation) -> dict[str, str]:
    """What a mutation sets, after checking that it sets it the only way that is right."""
    for option in mutation.set_headers:
        assert option.append_action == option.OVERWRITE_IF_EXISTS_OR_ADD
        assert not option.header.value
    return {option.header.key: option.header.raw_value.decode() for option in mutation.set_headers}


def streamed(responses: Iterable[ProcessingResponse], phase: str = "request_body") -> tuple[bytes, list[bool]]:
    """The bytes of the streamed body answers among `responses`, and the end-of-stream flag of each."""
    pieces = [
        getattr(response, phase).response.body_mutation.streamed_response
        for response in responses
        if response.WhichOneof("response") == phase
    ]
    return b"".join(piece.body for piece in pieces), [piece.end_of_stream for piece in pieces]


FORWARD = Forward(
    model="m-large",
    set_headers={"x-selected-model": "m-large", "x-vsr-destination": "m"},
    remove_headers=("authorization",),
    metadata={"recipe": "default"},
)


@dataclass
class FakeHandler:
    """Settles heads by path, and gives `verdict` for bodies."""

    verdict: Reply | Forward | Exception = field(default_factory=lambda: FORWARD)
    heads: list[Head] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    on_paths: Mapping[str, Reply | HeadVerdict | Exception] = field(default_factory=dict)

    def on_head(self, head: Head) -> Reply | HeadVerdict:
        self.heads.append(head)
        if head.path in self.on_paths:
            verdict = self.on_paths[head.path]
            if isinstance(verdict, Exception):
                raise verdict
            return verdict
        return HeadVerdict.NEED_BODY if head.path.startswith("/v1/") else HeadVerdict.PASS_THROUGH

    async def on_request(self, head: Head, body: bytes) -> Reply | Forward:
        self.bodies.append(body)
        if isinstance(self.verdict, Exception):
            raise self.verdict
        return self.verdict

    def fault(self, head: Head, fault: Fault) -> Reply:
        self.faults.append(fault)
        return Reply(413 if fault is Fault.BODY_TOO_LARGE else 500, {"content-type": "text/plain"}, fault.encode())


@dataclass
class Watch:
    """Looks on while an answer comes, and writes down what it is told."""

    wants: bool = False
    breaks: bool = False
    told: list[object] = field(default_factory=list)

    def sent(self) -> None:
        self.told.append("sent")

    def headers(self, status: int, headers: Mapping[str, str]) -> bool:
        self.told.append((status, dict(headers)))
        if self.breaks:
            raise ValueError
        return self.wants

    def body(self, piece: bytes, *, last: bool) -> None:
        self.told.append((piece, last))
        if self.breaks:
            raise ValueError

    def over(self, *, left: bool) -> None:
        self.told.append("left" if left else "over")
        if self.breaks:
            raise ValueError


def names(words: Sequence[str], phase: str) -> int:
    """How often `phase` was answered."""
    return sum(word == phase for word in words)
