"""An ext_proc server that decides nothing: the router's own transport with an empty answer to each phase.

It subclasses the router's server to have the same gRPC stack, options, health service and ends of streams; what remains
different is exactly the phase machine and what it drives. A message is decoded once, as any ext_proc server must to
know its phase.
"""

from __future__ import annotations

import argparse
from collections.abc import AsyncIterator, Mapping

import grpc.aio
import uvloop

from router.gateway.proto.ext_proc_pb2 import BodyResponse, HeadersResponse, ProcessingRequest, ProcessingResponse
from router.gateway.server import ExtProcServer
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
    """Answers each phase with an empty message and, like the router, leaves after the body's."""

    async def _process(
        self, messages: AsyncIterator[bytes], context: grpc.aio.ServicerContext[bytes, bytes]
    ) -> AsyncIterator[bytes]:
        async for message in messages:
            phase = ProcessingRequest.FromString(message).WhichOneof("request")
            yield EMPTY[phase or ""]
            if phase == "request_body":
                return


async def serve(port: int) -> None:
    """Serve until killed."""
    server = NoopServer(Unused(), f"127.0.0.1:{port}")
    await server.start()
    server.set_serving(True)
    await server.wait()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    uvloop.run(serve(parser.parse_args().port))
