"""The fast server over sockets: the `h2` library and raw bytes as its clients."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any

import h2.config
import h2.connection
import h2.events
import h2.settings
import pytest
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse

from router.gateway.commands import Status
from router.gateway.h2 import frames
from router.gateway.h2.connection import Connection
from router.gateway.h2.frames import ErrorCode, Setting
from router.gateway.h2.server import FastServer
from router.gateway.h2.stream import Stream
from router.gateway.h2.streams import ProcessStream
from router.gateway.proto.ext_proc_pb2 import ProcessingRequest, ProcessingResponse
from router.gateway.transport import ServerOptions
from router.verdict import Fault, Forward, Handler
from router.wire.http import Head, Reply
from tests.support.gateway import DUPLEX, FORWARD, FakeHandler, body, headers, protocol, streamed
from tests.support.h2_peer import HELLO, PROCESS, block, data, fields, goaway, message, open_stream

NOW = ServerOptions(settle_s=0)
CHECK = "/grpc.health.v1.Health/Check"


@dataclass
class Answer:
    """What came back on a stream."""

    headers: dict[str, str] = field(default_factory=dict)
    data: bytearray = field(default_factory=bytearray)
    trailers: dict[str, str] = field(default_factory=dict)
    reset: int | None = None
    over: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def messages(self) -> list[bytes]:
        found, at = list[bytes](), 0
        while at < len(self.data):
            length = int.from_bytes(self.data[at + 1 : at + 5], "big")
            found.append(bytes(self.data[at + 5 : at + 5 + length]))
            at += 5 + length
        return found

    @property
    def responses(self) -> list[ProcessingResponse]:
        return [ProcessingResponse.FromString(one) for one in self.messages]

    @property
    def status(self) -> str | None:
        return (self.trailers or self.headers).get("grpc-status")


class Client:
    """One connection of the `h2` library, which checks every rule that it knows."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.state = h2.connection.H2Connection(h2.config.H2Configuration(header_encoding="utf-8"))
        self.answers: dict[int, Answer] = {}
        self.seen: list[h2.events.Event] = []
        self.changed = asyncio.Event()
        self.credit = True  # give window back at once

    async def connect(self, **values: int) -> None:
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port)
        initial = {getattr(h2.settings.SettingCodes, name): value for name, value in values.items()}
        self.state.local_settings = h2.settings.Settings(client=True, initial_values=initial)
        self.state.initiate_connection()
        self.flush()
        self.reading = asyncio.create_task(self.read())

    async def close(self) -> None:
        self.reading.cancel()
        self.writer.close()
        await asyncio.gather(self.reading, return_exceptions=True)

    def flush(self) -> None:
        self.writer.write(self.state.data_to_send())

    async def read(self) -> None:
        while received := await self.reader.read(65536):
            for event in self.state.receive_data(received):
                self.seen.append(event)
                self.take(event)
            self.flush()
            self.changed.set()
            self.changed = asyncio.Event()
        self.changed.set()

    def take(self, event: Any) -> None:
        answer = self.answers.get(getattr(event, "stream_id", 0) or 0)
        if answer is None:
            return
        if isinstance(event, h2.events.ResponseReceived):
            answer.headers = dict(event.headers)  # type: ignore[arg-type]
        elif isinstance(event, h2.events.TrailersReceived):
            answer.trailers = dict(event.headers)  # type: ignore[arg-type]
        elif isinstance(event, h2.events.DataReceived):
            answer.data += event.data or b""
            if self.credit and event.flow_controlled_length:
                self.state.acknowledge_received_data(event.flow_controlled_length, event.stream_id or 0)
        elif isinstance(event, h2.events.StreamEnded):
            answer.over.set()
        elif isinstance(event, h2.events.StreamReset):
            answer.reset = answer.reset if answer.over.is_set() else int(event.error_code or 0)
            answer.over.set()

    def open(self, path: str = PROCESS, **changes: str | None) -> tuple[int, Answer]:
        number = self.state.get_next_available_stream_id()
        answer = self.answers[number] = Answer()
        self.state.send_headers(number, fields(path, **changes))
        self.flush()
        return number, answer

    async def send(self, number: int, payload: bytes, *, end: bool = False) -> None:
        left = memoryview(payload)
        while left:
            changed = self.changed
            room = min(self.state.local_flow_control_window(number), self.state.max_outbound_frame_size, len(left))
            if room <= 0:
                await changed.wait()
                continue
            piece, left = bytes(left[:room]), left[room:]
            self.state.send_data(number, piece, end_stream=end and not left)
            self.flush()

    async def begin(self, *messages: ProcessingRequest) -> tuple[int, Answer]:
        number, answer = self.open()
        for one in messages:
            await self.send(number, message(one.SerializeToString()))
        return number, answer

    async def ask(self, *messages: ProcessingRequest) -> Answer:
        number, answer = self.open()
        for one in messages:
            if answer.over.is_set():
                break
            await self.send(number, message(one.SerializeToString()))
        await answer.over.wait()
        return answer


@asynccontextmanager
async def running(server: FastServer) -> AsyncIterator[FastServer]:
    await server.start()
    server.set_serving(True)
    try:
        async with asyncio.timeout(20):
            yield server
    finally:
        await server.stop()


@asynccontextmanager
async def connected(server: FastServer, **values: int) -> AsyncIterator[Client]:
    client = Client(server.port)
    await client.connect(**values)
    try:
        yield client
    finally:
        await client.close()


@asynccontextmanager
async def raw(server: FastServer) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    try:
        yield reader, writer
    finally:
        writer.close()


def local(handler: Handler | None = None, options: ServerOptions = NOW, **hooks: Any) -> FastServer:
    return FastServer(handler or FakeHandler(), "127.0.0.1:0", options, **hooks)


async def works(server: FastServer) -> bool:
    """Whether a new connection gets a decision."""
    async with connected(server) as client:
        return (await client.ask(headers(), body(b"{}"))).status == "0"


# -- calls ------------------------------------------------------------------------------------------------------------


async def test_two_calls_on_one_connection() -> None:
    async with running(local()) as server, connected(server) as client:
        for _ in range(2):
            answer = await client.ask(headers(), body(b"{}"))
            assert answer.headers == {":status": "200", "content-type": "application/grpc"}
            assert [one.WhichOneof("response") for one in answer.responses] == ["request_headers", "request_body"]
            assert (answer.status, answer.reset) == ("0", None)


@pytest.mark.parametrize(
    ("path", "changes", "expected"),
    [
        (PROCESS, {"p_method": "GET"}, {":status": "405"}),
        (PROCESS, {"content_type": "text/plain"}, {":status": "415"}),
        ("/other.Service/Method", {}, {"grpc-status": "12", "grpc-message": "unknown method"}),
        ("/", {}, {"grpc-status": "12"}),
    ],
)
async def test_what_is_not_served(path: str, changes: dict[str, str | None], expected: dict[str, str]) -> None:
    async with running(local()) as server, connected(server) as client:
        _, answer = client.open(path, **changes)
        await answer.over.wait()
        assert expected.items() <= answer.headers.items()


@pytest.mark.parametrize("sent", [b"", b"\x00\x00\x00\x00\x00" * 2, message(b"\xff")])
async def test_health_asked_wrongly(sent: bytes) -> None:
    async with running(local()) as server, connected(server) as client:
        number, answer = client.open(CHECK)
        if sent == b"":
            client.state.end_stream(number)
            client.flush()
        else:
            await client.send(number, sent)
        await answer.over.wait()
        if sent.startswith(b"\x00\x00\x00\x00\x00"):  # the first question is answered
            assert HealthCheckResponse.FromString(answer.messages[0]).status == HealthCheckResponse.SERVING
        else:
            assert answer.status == "3"


async def test_health_of_a_service_that_is_not_there() -> None:
    async with running(local()) as server, connected(server) as client:
        number, answer = client.open(CHECK)
        await client.send(number, message(HealthCheckRequest(service="x").SerializeToString()))
        await answer.over.wait()
        assert answer.status == "5"


async def test_a_decision_at_once_costs_no_task() -> None:
    class AtOnce(FakeHandler):
        def on_request(self, head: Head, body: bytes) -> Forward:  # type: ignore[override]
            tasks.append(len(asyncio.all_tasks()))
            return FORWARD

    tasks: list[int] = []
    async with running(local(AtOnce())) as server, connected(server) as client:
        before = len(asyncio.all_tasks())
        answer = await client.ask(headers(), body(b"{}"))
    assert answer.status == "0"
    assert tasks == [before]


async def test_a_decision_that_takes_time_may_use_everything_of_asyncio() -> None:
    class Busy(FakeHandler):
        async def on_request(self, head: Head, body: bytes) -> Reply | Forward:
            async with asyncio.timeout(5), asyncio.TaskGroup() as group:
                group.create_task(asyncio.to_thread(len, body))
                await asyncio.sleep(0)
            return FORWARD

    async with running(local(Busy())) as server, connected(server) as client:
        answer = await client.ask(headers(), body(b"{}"))
    assert (answer.status, answer.responses[-1].WhichOneof("response")) == ("0", "request_body")


# -- bodies and windows -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [8 * 2**20, 16 * 2**20 - 1])
async def test_large_bodies_both_ways_in_both_modes(size: int) -> None:
    content, changed = bytes(range(256)) * (size // 256), b"\xc3\xa8" * (size // 2)
    handler = FakeHandler(verdict=Forward("m", body=changed))
    async with running(local(handler)) as server, connected(server, INITIAL_WINDOW_SIZE=2**20) as client:
        answer = await client.ask(headers(), body(content))
        assert answer.responses[1].request_body.response.body_mutation.body == changed
        pieces = [content[at : at + 300_000] for at in range(0, len(content), 300_000)]
        full = [headers(mode=protocol(DUPLEX)), *(body(piece, piece is pieces[-1]) for piece in pieces)]
        answer = await client.ask(*full)
        assert streamed(answer.responses)[0] == changed
        assert answer.status == "0"
    assert handler.bodies == [content, content]


@pytest.mark.parametrize("window", [1, 100, 3000])
async def test_tiny_windows(window: int) -> None:
    changed = b"x" * (window * 40)
    handler = FakeHandler(verdict=Forward("m", body=changed))
    async with running(local(handler)) as server, connected(server, INITIAL_WINDOW_SIZE=window) as client:
        answer = await client.ask(headers(mode=protocol(DUPLEX)), body(b"{}"))
        assert streamed(answer.responses)[0] == changed
        assert answer.status == "0"


async def test_answers_are_made_as_they_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[int] = []
    send = Connection.send

    def counted(connection: Connection, stream: Stream, data: bytes) -> None:
        sent.append(len(data))
        send(connection, stream, data)

    monkeypatch.setattr(Connection, "send", counted)
    handler = FakeHandler(verdict=Forward("m", body=b"x" * 2**20))
    async with running(local(handler)) as server, connected(server) as client:
        client.credit = False
        number, answer = client.open()
        for one in (headers(mode=protocol(DUPLEX)), body(b"{}")):
            await client.send(number, message(one.SerializeToString()))
        while len(answer.data) < 65_535:
            await client.changed.wait()
        assert sum(sent) < 3 * 65_536
        client.credit = True
        client.state.acknowledge_received_data(65_535, number)
        client.flush()
        await answer.over.wait()
        assert streamed(answer.responses)[0] == b"x" * 2**20


async def test_messages_wait_while_a_decision_takes_time() -> None:
    class Slow(FakeHandler):
        async def on_request(self, head: Head, body: bytes) -> Reply | Forward:
            started.set()
            await release.wait()
            return FORWARD

    started, release = asyncio.Event(), asyncio.Event()
    async with running(local(Slow())) as server, connected(server) as client:
        number, answer = client.open()
        for one in (headers(), body(b"{}"), body(b"", eos=True)):
            await client.send(number, message(one.SerializeToString()))
        client.state.end_stream(number)
        client.flush()
        await started.wait()
        release.set()
        await answer.over.wait()
        assert answer.status == "0"


async def test_too_many_messages_while_a_decision_takes_time(caplog: pytest.LogCaptureFixture) -> None:
    handler = Waiting()
    async with running(local(handler)) as server, connected(server) as client:
        number, answer = await client.begin(headers(), body(b"{}"))
        await handler.started.wait()
        await client.send(number, message(b"") * 2000)
        await answer.over.wait()
        assert answer.status == str(int(Status.ABORTED))
        await handler.cancelled.wait()


# -- leaving and breaking ---------------------------------------------------------------------------------------------


@dataclass
class Waiting(FakeHandler):
    """Never decides."""

    started: asyncio.Event = field(default_factory=asyncio.Event)
    cancelled: asyncio.Event = field(default_factory=asyncio.Event)

    async def on_request(self, head: Head, body: bytes) -> Reply | Forward:
        self.started.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.cancelled.set()
        raise AssertionError


@dataclass
class Sessions:
    """Hands out a handler, and counts who has it."""

    handler: FakeHandler
    open: int = 0

    @contextmanager
    def __call__(self) -> Iterator[Handler]:
        self.open += 1
        try:
            yield self.handler
        finally:
            self.open -= 1


def vanish(client: Client, number: int) -> None:
    client.writer.transport.abort()


def leave(client: Client, number: int) -> None:
    client.state.reset_stream(number, int(ErrorCode.CANCEL))
    client.flush()


def misbehave(client: Client, number: int) -> None:
    client.writer.write(frames.ping(b"short"))


@pytest.mark.parametrize("how", [vanish, leave, misbehave])
async def test_whoever_leaves_cancels_the_decision_at_once(how: Callable[[Client, int], None]) -> None:
    handler, deltas = Waiting(), list[int]()
    sessions = Sessions(handler)
    server = local(handler, session=sessions, on_stream=deltas.append)
    async with running(server), connected(server) as client:
        number, _ = await client.begin(headers(), body(b"{}"))
        await handler.started.wait()
        assert (sessions.open, server.streams) == (1, 1)
        how(client, number)
        await handler.cancelled.wait()
        assert (sessions.open, server.streams, deltas) == (0, 0, [1, -1])
        assert await works(local_again(server, handler))


def local_again(server: FastServer, handler: FakeHandler) -> FastServer:
    """The same server, with a handler that decides from now on."""
    handler.on_request = FakeHandler().on_request  # type: ignore[method-assign]
    return server


async def test_a_decision_that_is_cancelled_before_it_began() -> None:
    async with running(local(Waiting())) as server, connected(server) as client:
        number, _ = client.open()
        both = [message(one.SerializeToString()) for one in (headers(), body(b"{}"))]
        client.state.send_data(number, b"".join(both))
        client.state.reset_stream(number)
        client.flush()
        assert (await asyncio.gather(*(works_waiting(client) for _ in range(2)))) == [None, None]
        assert server.streams == 0


async def works_waiting(client: Client) -> None:
    """A round trip."""
    number, answer = client.open(CHECK)
    await client.send(number, message(b""))
    await answer.over.wait()


async def test_a_decision_task_that_somebody_else_cancels_ends_with_an_error() -> None:
    handler = Waiting()
    async with running(local(handler)) as server, connected(server) as client:
        _, answer = await client.begin(headers(), body(b"{}"))
        await handler.started.wait()
        for task in asyncio.all_tasks():
            if task.get_name() == "decision":
                task.cancel()
        await answer.over.wait()
        assert answer.status == "14"
        assert server.streams == 0


async def test_a_defect_in_a_stream_ends_that_stream_alone(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def defect(*_: object) -> None:
        raise ValueError("the prompt")

    async with running(local()) as server, connected(server) as client:
        with monkeypatch.context() as patch:
            patch.setattr(ProcessStream, "message", defect)
            answer = await client.ask(headers())
        assert answer.status == "13"
        assert (await client.ask(headers(), body(b"{}"))).status == "0"
        assert server.streams == 0
    assert "ValueError" in caplog.text
    assert "the prompt" not in caplog.text


async def test_a_defect_in_a_connection_ends_that_connection_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def defect(*_: object) -> None:
        raise ValueError

    async with running(local()) as server, connected(server) as client:
        client.open()
        with monkeypatch.context() as patch:
            patch.setattr(Connection, "_known", defect)
            client.writer.write(frames.window_update(1, 1))
            await client.reading
        assert server.streams == 0
        assert await works(server)


@pytest.mark.parametrize("noise", [b"GET / HTTP/1.1\r\nhost: x\r\n\r\n", b"\x16\x03\x01\x02\x00" + bytes(200), b"\x00"])
async def test_other_protocols_are_told_and_left(noise: bytes) -> None:
    async with running(local()) as server, raw(server) as (reader, writer):
        writer.write(noise)
        received = await reader.read()
        assert received[:9] == frames.settings([(Setting.ENABLE_PUSH, 0)] * 4)[:9]
        assert await works(server)


async def test_a_peer_that_reads_nothing_and_asks_for_ever_is_dropped() -> None:
    async with running(local()) as server, raw(server) as (_, writer):
        writer.write(HELLO)
        with contextlib.suppress(ConnectionError):
            while True:
                writer.write(frames.ping(bytes(8)) * 2000)
                await writer.drain()
        assert await works(server)


async def test_a_connection_gets_old() -> None:
    """It is left as in a drain; others, and those after it, are served."""
    options = ServerOptions(settle_s=0, max_connection_age_s=0.02)
    async with running(local(options=options)) as server, raw(server) as (reader, writer):
        writer.write(HELLO + frames.SETTINGS_ACK)
        await reader_until(reader, b"drain...")
        late = frames.frame(frames.HEADERS, frames.END_HEADERS, 3, b"\x20" + block(fields(CHECK)))
        writer.write(late + frames.ping(b"drain...", frames.ACK))
        writer.write(data(3, message(b"")))
        assert b"grpc-status\x010" in await reader.read()
        assert await works(server)


async def test_a_drain_waits_for_nobody_who_asked_nothing() -> None:
    server = local()
    async with running(server), raw(server) as (reader, writer), raw(server) as (idle, greeting):
        greeting.write(HELLO + frames.SETTINGS_ACK)
        await idle.read(20)
        draining = asyncio.create_task(server.drain(15))
        assert b"drain..." in await reader_until(idle, b"drain...")
        greeting.write(frames.ping(b"drain...", frames.ACK))
        await draining
        assert await reader.read()
        writer.close()


async def reader_until(reader: asyncio.StreamReader, word: bytes) -> bytes:
    received = b""
    while word not in received:
        piece = await reader.read(1000)
        assert piece, received
        received += piece
    return received


async def test_a_stop_ends_streams_with_an_error_first() -> None:
    handler = Waiting()
    server = local(handler)
    async with running(server), connected(server) as client:
        _, answer = await client.begin(headers(), body(b"{}"))
        await handler.started.wait()
        await server.stop()
        await answer.over.wait()
        assert answer.status == "14"
        assert handler.cancelled.is_set()
        await server.wait()


async def test_a_decision_that_cannot_be_cancelled_does_not_hold_up_a_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("router.gateway.h2.server._GOODBYE_S", 0.02)
    forever = asyncio.Event()

    class Stubborn(Waiting):
        async def on_request(self, head: Head, body: bytes) -> Reply | Forward:
            self.started.set()
            while not forever.is_set():
                try:
                    await forever.wait()
                except asyncio.CancelledError:
                    self.cancelled.set()
            return FORWARD

    handler = Stubborn()
    server = local(handler)
    async with running(server), connected(server) as client:
        await client.begin(headers(), body(b"{}"))
        await handler.started.wait()
        await server.stop()
        assert handler.cancelled.is_set()
        forever.set()
        await asyncio.sleep(0)


async def test_a_fault_of_the_handler_is_logged_by_its_class(caplog: pytest.LogCaptureFixture) -> None:
    class Wrong(FakeHandler):
        def on_request(self, head: Head, body: bytes) -> Forward:  # type: ignore[override]
            raise ValueError("the prompt")

    handler = Wrong()
    with caplog.at_level(logging.DEBUG, "pointsman.gateway"):
        async with running(local(handler)) as server, connected(server) as client:
            answer = await client.ask(headers(), body(b"{}"))
    assert answer.responses[-1].WhichOneof("response") == "immediate_response"
    assert handler.faults == [Fault.INTERNAL]
    assert "ValueError" in caplog.text
    assert "the prompt" not in caplog.text


async def test_raw_frames_of_every_shape_leave_the_server_working() -> None:
    head = block(fields())
    scripts = [
        HELLO + open_stream(1) + data(1, b"\x00\x00\x00\x00\x05ab"),
        HELLO + frames.frame(frames.HEADERS, 0, 1, head),
        HELLO + open_stream(1) + frames.rst_stream(1, ErrorCode.CANCEL) + data(1, b"x" * 100),
        HELLO + frames.frame(frames.DATA, 0, 0, b"x"),
        frames.PREFACE[:10],
    ]
    async with running(local()) as server:
        for script in scripts:
            async with raw(server) as (_, writer):
                writer.write(script)
                await writer.drain()
        assert await works(server)
        assert goaway([]) is None
        assert server.streams == 0
