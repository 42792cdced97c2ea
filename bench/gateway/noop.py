"""An ext_proc server that decides nothing: the router's own transports with an empty answer to each phase.

It subclasses the router's servers to have the same HTTP/2 stack, options, health service and ends of streams; what
remains different is exactly the phase machine and what it drives. A message is decoded once, as any ext_proc server
must to know its phase.
"""

from __future__ import annotations

import argparse
from collections.abc import AsyncIterator, Mapping

import grpc.aio
import uvloop

from router.gateway.commands import Status
from router.gateway.h2.server import FastServer
from router.gateway.h2.stream import Owner, Stream
from router.gateway.h2.streams import Line
from router.gateway.proto.ext_proc_pb2 import BodyResponse, HeadersResponse, ProcessingRequest, ProcessingResponse
from router.gateway.server import ExtProcServer
from router.gateway.transport import Server
from router.gateway.transports import Transport
from router.verdict import Fault, Forward, HeadVerdict
from router.wire.http import Head, Reply

EMPTY: Mapping[str, bytes] = {
    "request_headers": ProcessingResponse(request_headers=HeadersResponse()).SerializeToString(),
    "request_body": ProcessingResponse(request_body=BodyResponse()).SerializeToString(),
}


class Unused:
    """The handler that the server wants and nobody calls."""

    def on_head(self, head: Head) -> Reply | HeadVerdict:
        raise NotImplementedError

    async def on_request(self, head: Head, body: bytes) -> Reply | Forward:
        raise NotImplementedError

    def fault(self, head: Head, fault: Fault) -> Reply:
        raise NotImplementedError


class NoopServer(ExtProcServer):
    """On grpcio: answers each phase with an empty message and, like the router, leaves after the body's."""

    async def _process(
        self, messages: AsyncIterator[bytes], context: grpc.aio.ServicerContext[bytes, bytes]
    ) -> AsyncIterator[bytes]:
        async for message in messages:
            phase = ProcessingRequest.FromString(message).WhichOneof("request")
            yield EMPTY[phase or ""]
            if phase == "request_body":
                return


class NoopFastServer(FastServer):
    """The same on the fast transport."""

    def process(self, line: Line, stream: Stream) -> Owner:
        return NoopStream(line, stream)


class NoopStream:
    """A stream of it."""

    def __init__(self, line: Line, stream: Stream) -> None:
        self._line = line
        self._stream = stream

    def message(self, data: bytes) -> None:
        phase = ProcessingRequest.FromString(data).WhichOneof("request")
        self._line.connection.send(self._stream, EMPTY[phase or ""])
        if phase == "request_body":
            self._line.connection.finish(self._stream, Status.OK)

    def ended(self) -> None: ...

    def reset(self) -> None: ...

    def writable(self) -> None: ...

    def release(self) -> None: ...

    def fail(self, status: int, detail: str) -> None: ...


SERVERS: Mapping[Transport, type[Server]] = {Transport.FAST: NoopFastServer, Transport.GRPCIO: NoopServer}


async def serve(port: int, transport: Transport) -> None:
    """Serve until killed."""
    server = SERVERS[transport](Unused(), f"127.0.0.1:{port}")
    await server.start()
    server.set_serving(True)
    await server.wait()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--transport", type=Transport, default=Transport.FAST)
    arguments = parser.parse_args()
    uvloop.run(serve(arguments.port, arguments.transport))
