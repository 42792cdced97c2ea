"""Both transports over real gRPC in this process."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import grpc
import grpc.aio
import pytest
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse
from grpc_health.v1.health_pb2_grpc import HealthStub

from router.gateway.commands import Status
from router.gateway.h2.server import FastServer
from router.gateway.machine import StreamMachine
from router.gateway.options import MachineOptions
from router.gateway.proto.ext_proc_pb2 import ProcessingRequest, ProcessingResponse
from router.gateway.server import ExtProcServer
from router.gateway.transport import SERVICE, ListenError, Server, ServerOptions
from router.verdict import Fault, Forward
from router.wire.http import Head, Reply
from tests.support.gateway import (
    DUPLEX,
    FakeHandler,
    Watch,
    body,
    headers,
    protocol,
    response_headers,
    streamed,
)

STAY = ServerOptions(machine=MachineOptions(finish_after_verdict=False), settle_s=0)
Call = grpc.aio.StreamStreamCall[ProcessingRequest, ProcessingResponse]
Open = Callable[[], Call]


@dataclass
class SlowHandler(FakeHandler):
    """Decides when `release` is set; says that it began and that it was cancelled."""

    started: asyncio.Event = field(default_factory=asyncio.Event)
    release: asyncio.Event = field(default_factory=asyncio.Event)
    cancelled: asyncio.Event = field(default_factory=asyncio.Event)

    async def on_request(self, head: Head, body: bytes) -> Reply | Forward:
        self.started.set()
        try:
            await self.release.wait()
        except asyncio.CancelledError:
            self.cancelled.set()
            raise
        return await FakeHandler.on_request(self, head, body)


@asynccontextmanager
async def serving(server: Server, address: str | None = None) -> AsyncIterator[Open]:
    await server.start()
    server.set_serving(True)
    options = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
    async with grpc.aio.insecure_channel(address or f"127.0.0.1:{server.port}", options=options) as channel:
        process: Open = channel.stream_stream(  # type: ignore[assignment]
            f"/{SERVICE}/Process", ProcessingRequest.SerializeToString, ProcessingResponse.FromString
        )
        try:
            async with asyncio.timeout(20):
                yield process
        finally:
            await server.stop()


class Make(Protocol):
    def __call__(
        self, handler: FakeHandler, options: ServerOptions | None = None, *, address: str = ..., **hooks: Any
    ) -> Server: ...


@pytest.fixture(params=[FastServer, ExtProcServer], ids=["fast", "grpcio"])
def make(request: pytest.FixtureRequest) -> Make:
    """Each transport: on a port of its own unless told otherwise."""

    def made(
        handler: FakeHandler, options: ServerOptions | None = None, *, address: str = "127.0.0.1:0", **hooks: Any
    ) -> Server:
        server: Server = request.param(handler, address, options, **hooks)
        return server

    return made


async def exchange(call: Call, *messages: ProcessingRequest) -> tuple[list[ProcessingResponse], grpc.StatusCode]:
    """All answers to `messages` and how the stream ended."""
    answers: list[ProcessingResponse] = []
    try:
        for message in messages:
            await call.write(message)
        await call.done_writing()
    except (grpc.aio.AioRpcError, asyncio.InvalidStateError):
        pass  # the server has ended the stream already: what counts is how
    try:
        async for answer in call:
            answers.append(answer)
    except grpc.aio.AioRpcError:
        pass
    return answers, await call.code()


def kinds(answers: list[ProcessingResponse]) -> list[str | None]:
    return [answer.WhichOneof("response") for answer in answers]


async def test_a_decision_and_its_end(make: Make) -> None:
    handler = FakeHandler()
    async with serving(make(handler)) as call:
        answers, code = await exchange(call(), headers(), body(b"{}"))
    assert kinds(answers) == ["request_headers", "request_body"]
    assert code is grpc.StatusCode.OK
    assert handler.bodies == [b"{}"]


async def test_a_stream_that_stays_for_the_response(make: Make) -> None:
    async with serving(make(FakeHandler(), STAY)) as call:
        answers, code = await exchange(call(), headers(), body(b"{}"), response_headers())
    assert kinds(answers) == ["request_headers", "request_body", "response_headers"]
    assert code is grpc.StatusCode.OK


async def test_a_watched_answer(make: Make) -> None:
    watch = Watch()
    async with serving(make(FakeHandler(Forward("m", watch=watch)))) as call:
        answers, code = await exchange(call(), headers(), body(b"{}"), response_headers())
    assert kinds(answers) == ["request_headers", "request_body", "response_headers"]
    assert code is grpc.StatusCode.OK
    assert watch.told == ["sent", (200, {}), "over"]


async def test_a_drain_waits_for_no_answer_that_is_only_watched() -> None:
    watch = Watch()
    server = FastServer(FakeHandler(Forward("m", watch=watch)), "127.0.0.1:0", ServerOptions(settle_s=0))
    async with serving(server) as call:
        stream = call()
        await stream.write(headers())
        await stream.write(body(b"{}"))
        for _ in range(2):
            await stream.read()
        await server.drain(20)
        assert await stream.code() is grpc.StatusCode.OK
    assert watch.told == ["sent", "left"]


async def test_a_stream_left_before_a_decision_ends_with_an_error(make: Make, caplog: pytest.LogCaptureFixture) -> None:
    errors: list[Status] = []
    with caplog.at_level(logging.DEBUG, "pointsman.gateway"):
        async with serving(make(FakeHandler(), on_error=errors.append)) as call:
            answers, code = await exchange(call(), headers())
    assert kinds(answers) == ["request_headers"]
    assert code is grpc.StatusCode.ABORTED
    assert errors == [Status.ABORTED]
    assert "before a decision" in caplog.text


async def test_an_end_with_an_error_for_a_peer_that_is_gone_is_quiet(
    make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    """Envoy half-closes and resets at once when it answers by itself: the status may find nobody."""
    server = make(FakeHandler())
    async with serving(server) as open_stream:
        for _ in range(20):
            call = open_stream()
            await call.write(headers())
            await call.read()
            await call.done_writing()
            call.cancel()
        _, code = await exchange(open_stream(), headers(), body(b"{}"))
    assert code is grpc.StatusCode.OK
    assert server.streams == 0
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


async def test_bytes_that_are_no_message_end_with_an_error(make: Make) -> None:
    server = make(FakeHandler())
    async with serving(server), grpc.aio.insecure_channel(f"127.0.0.1:{server.port}") as channel:
        call: Call = channel.stream_stream(f"/{SERVICE}/Process")()
        answers, code = await exchange(call, b"\xff\xff")  # type: ignore[arg-type]
    assert answers == []
    assert code is grpc.StatusCode.INVALID_ARGUMENT


async def test_an_exception_is_a_fault_and_its_text_is_not_logged(make: Make, caplog: pytest.LogCaptureFixture) -> None:
    handler = FakeHandler(verdict=ValueError("the prompt"))
    with caplog.at_level(logging.DEBUG, "pointsman.gateway"):
        async with serving(make(handler)) as call:
            answers, code = await exchange(call(), headers(), body(b"{}"))
    assert kinds(answers) == ["request_headers", "immediate_response"]
    assert code is grpc.StatusCode.OK
    assert handler.faults == [Fault.INTERNAL]
    assert "ValueError at " in caplog.text
    assert ".py:" in caplog.text, "where the defect is"
    assert "the prompt" not in caplog.text


async def test_a_cancellation_that_nobody_asked_for_is_a_fault(make: Make) -> None:
    class Cancelling(FakeHandler):
        async def on_request(self, head: Head, body: bytes) -> Reply | Forward:
            raise asyncio.CancelledError

    handler = Cancelling()
    async with serving(make(handler)) as call:
        answers, _ = await exchange(call(), headers(), body(b"{}"))
    assert kinds(answers) == ["request_headers", "immediate_response"]
    assert handler.faults == [Fault.INTERNAL]


async def test_a_defect_of_our_own_ends_with_an_error_that_tells_nothing(
    make: Make, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def defect(*_: object) -> None:
        raise ValueError("the prompt")

    monkeypatch.setattr(StreamMachine, "feed", defect)
    async with serving(make(FakeHandler())) as open_stream:
        call = open_stream()
        answers, code = await exchange(call, headers())
        assert await call.details() == "internal error"
    assert (answers, code) == ([], grpc.StatusCode.INTERNAL)
    assert "the prompt" not in caplog.text


async def test_a_timeout_inside_the_handler_is_not_the_deadline(make: Make) -> None:
    handler = FakeHandler(verdict=TimeoutError())
    async with serving(make(handler)) as call:
        await exchange(call(), headers(), body(b"{}"))
    assert handler.faults == [Fault.INTERNAL]


async def test_the_deadline_of_a_decision(make: Make) -> None:
    handler = SlowHandler()
    async with serving(make(handler, ServerOptions(deadline_s=0.02))) as call:
        answers, code = await exchange(call(), headers(), body(b"{}"))
    assert kinds(answers) == ["request_headers", "immediate_response"]
    assert code is grpc.StatusCode.OK
    assert handler.faults == [Fault.DEADLINE]
    assert handler.cancelled.is_set()


async def test_the_deadline_follows_a_new_configuration(make: Make) -> None:
    handler = SlowHandler()
    server = make(handler)
    async with serving(server) as call:
        server.set_deadline(0.02)
        await exchange(call(), headers(), body(b"{}"))
    assert handler.faults == [Fault.DEADLINE]


async def test_a_client_that_leaves_cancels_the_decision(make: Make) -> None:
    handler = SlowHandler()
    deltas: list[int] = []
    server = make(handler, on_stream=deltas.append)
    async with serving(server) as open_stream:
        call = open_stream()
        await call.write(headers())
        await call.write(body(b"{}"))
        await handler.started.wait()
        assert server.streams == 1
        call.cancel()
        await handler.cancelled.wait()
    assert server.streams == 0
    assert deltas == [1, -1]


@pytest.mark.parametrize("size", [8 * 1024 * 1024])
async def test_a_large_buffered_body_there_and_back(make: Make, size: int) -> None:
    data, changed = b"\xc3\xa9" * (size // 2), b"\xc3\xa8" * (size // 2)
    handler = FakeHandler(verdict=Forward("m", body=changed))
    async with serving(make(handler)) as call:
        answers, code = await exchange(call(), headers(), body(data))
    assert handler.bodies == [data]
    assert answers[1].request_body.response.body_mutation.body == changed
    assert code is grpc.StatusCode.OK


async def test_a_large_streamed_body_there_and_back(make: Make) -> None:
    data = bytes(range(256)) * (8 * 4096)
    pieces = [data[start : start + 100_000] for start in range(0, len(data), 100_000)]
    handler = FakeHandler(verdict=Forward("m"))
    messages = [headers(mode=protocol(DUPLEX)), *(body(piece, piece is pieces[-1]) for piece in pieces)]
    async with serving(make(handler)) as call:
        answers, code = await exchange(call(), *messages)
    assert streamed(answers)[0] == data
    assert code is grpc.StatusCode.OK


async def test_a_body_at_the_limit_fits_and_one_above_it_is_the_handlers_to_refuse(make: Make) -> None:
    limit = 100_000
    for size, expected in ((limit, "request_body"), (limit + 1, "immediate_response")):
        options = ServerOptions(machine=MachineOptions(max_body_bytes=limit))
        async with serving(make(FakeHandler(), options)) as call:
            answers, code = await exchange(call(), headers(), body(b"x" * size))
        assert kinds(answers)[-1] == expected
        assert code is grpc.StatusCode.OK


async def test_many_streams_at_once_keep_apart(make: Make) -> None:
    class Echo(FakeHandler):
        async def on_request(self, head: Head, body: bytes) -> Reply | Forward:
            await asyncio.sleep(0)
            return Forward("m", {"x-vsr-echo": body.decode()})

    async with serving(make(Echo())) as call:
        results = await asyncio.gather(
            *(exchange(call(), headers(), body(str(number).encode())) for number in range(50))
        )
    for number, (answers, _) in enumerate(results):
        (option,) = answers[1].request_body.response.header_mutation.set_headers
        assert option.header.raw_value == str(number).encode()


async def test_a_unix_socket(make: Make, tmp_path: Path) -> None:
    address = f"unix:{tmp_path}/ext.sock"
    server = make(FakeHandler(), address=address)
    async with serving(server, address) as call:
        _, code = await exchange(call(), headers(), body(b"{}"))
    assert code is grpc.StatusCode.OK
    assert server.port == 0


async def test_an_address_that_is_taken_is_named(make: Make) -> None:
    first = make(FakeHandler())
    async with serving(first):
        second = make(FakeHandler(), address=f"127.0.0.1:{first.port}")
        with pytest.raises(ListenError, match=str(first.port)):
            await second.start()


def health_stub(channel: grpc.aio.Channel) -> Any:
    return HealthStub(channel)


async def health(server: Server, service: str = "") -> int:
    async with grpc.aio.insecure_channel(f"127.0.0.1:{server.port}") as channel:
        response = await health_stub(channel).Check(HealthCheckRequest(service=service))
    return int(response.status)


async def test_health_follows_readiness(make: Make) -> None:
    server = make(FakeHandler())
    await server.start()
    assert await health(server) == HealthCheckResponse.NOT_SERVING
    server.set_serving(True)
    assert await health(server) == HealthCheckResponse.SERVING
    assert await health(server, SERVICE) == HealthCheckResponse.SERVING
    server.set_serving(False)
    assert await health(server, SERVICE) == HealthCheckResponse.NOT_SERVING
    with pytest.raises(grpc.aio.AioRpcError) as unknown:
        await health(server, "other")
    assert unknown.value.code() is grpc.StatusCode.NOT_FOUND
    await server.stop()


async def test_health_is_watched(make: Make) -> None:
    server = make(FakeHandler(), ServerOptions(settle_s=0))
    await server.start()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{server.port}") as channel:
        call = health_stub(channel).Watch(HealthCheckRequest(service=""))
        seen = [(await call.read()).status]
        server.set_serving(True)
        seen.append((await call.read()).status)
        draining = asyncio.create_task(server.drain(5))
        seen.append((await call.read()).status)
        assert await call.read() is grpc.aio.EOF
        await draining
    serving_, not_serving = HealthCheckResponse.SERVING, HealthCheckResponse.NOT_SERVING
    assert seen == [not_serving, serving_, not_serving]


async def test_a_drain_fails_nobody(make: Make) -> None:
    """Streams in flight, streams that begin while it settles, and the order of what happens."""
    handler = SlowHandler()
    settling, settled = asyncio.Event(), asyncio.Event()
    waits: list[float] = []

    async def settle(seconds: float) -> None:
        waits.append(seconds)
        settling.set()
        await settled.wait()

    server = make(handler, ServerOptions(settle_s=7), sleep=settle)
    async with serving(server) as call:
        running = asyncio.create_task(exchange(call(), headers(), body(b"{}")))
        await handler.started.wait()
        draining = asyncio.create_task(server.drain(10))
        await settling.wait()
        assert await health(server) == HealthCheckResponse.NOT_SERVING
        server.set_serving(True)
        assert await health(server) == HealthCheckResponse.NOT_SERVING
        handler.started.clear()
        late = asyncio.create_task(exchange(call(), headers(), body(b"{}")))
        await handler.started.wait()
        settled.set()
        stopped = asyncio.create_task(server.wait())
        await server.drain(1)
        assert not draining.done()
        assert not stopped.done()
        handler.release.set()
        for answers, code in (await running, await late):
            assert kinds(answers) == ["request_headers", "request_body"]
            assert code is grpc.StatusCode.OK
        await draining
        await stopped
    assert waits == [7]
    assert server.streams == 0


async def test_a_stream_that_outlives_the_grace_ends_with_an_error(make: Make) -> None:
    handler = SlowHandler()
    server = make(handler, ServerOptions(settle_s=0))
    async with serving(server) as call:
        running = asyncio.create_task(exchange(call(), headers(), body(b"{}")))
        await handler.started.wait()
        await server.drain(0.01)
        _, code = await running
    assert code is not grpc.StatusCode.OK
    assert handler.cancelled.is_set()
