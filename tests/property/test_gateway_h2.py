"""Our HTTP/2 under any chunking, any windows, and bytes that make no sense."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from router.gateway.h2 import frames
from router.gateway.h2.connection import Connection
from router.gateway.h2.frames import ErrorCode, Setting
from router.gateway.h2.inflow import Limits
from router.gateway.h2.messages import Deframer
from router.gateway.h2.stream import Gone, Opened, Stream, tell
from router.gateway.h2.streams import ProcessStream
from router.gateway.proto.ext_proc_pb2 import ProcessingResponse
from router.gateway.transport import Server
from router.verdict import Forward
from tests.support.gateway import DUPLEX, FakeHandler, body, headers, protocol
from tests.support.h2_peer import HELLO, Peer, block, cut, data, fields, message, open_stream, words

LIMITS = Limits(message_bytes=2000, streams=8, stream_window=4000, connection_window=70_000, incomplete_bytes=6000)

payloads = st.binary(max_size=60)
numbers = st.sampled_from([1, 3, 5, 7])
whole_calls = st.lists(st.tuples(st.lists(payloads, max_size=4), st.booleans()), min_size=1, max_size=4)
cuts = st.lists(st.integers(1, 50), min_size=1, max_size=200)


def chunked(sent: bytes, sizes: Sequence[int]) -> list[bytes]:
    """`sent` in pieces of `sizes`, over and over."""
    pieces, at, index = list[bytes](), 0, 0
    while at < len(sent):
        size = sizes[index % len(sizes)]
        pieces.append(sent[at : at + size])
        at, index = at + size, index + 1
    return pieces


@settings(max_examples=150)
@given(whole_calls, cuts)
def test_chunks_do_not_matter(calls: list[tuple[list[bytes], bool]], sizes: list[int]) -> None:
    sent = HELLO + frames.SETTINGS_ACK
    for index, (messages, padded) in enumerate(calls):
        number = 2 * index + 1
        head = b"\x20" * (index == 0) + block(fields())
        sent += frames.frame(frames.HEADERS, 0, number, head[:5])
        sent += frames.frame(frames.CONTINUATION, frames.END_HEADERS, number, head[5:])
        for payload in messages:
            framed = message(payload)
            if padded:
                sent += frames.frame(frames.DATA, frames.PADDED, number, b"\x03" + framed[:4] + bytes(3))
                framed = framed[4:]
            sent += data(number, framed)
        sent += data(number, b"", end=True)
    at_once, in_chunks = Connection(LIMITS), Connection(LIMITS)
    expected = words(at_once.receive(sent))
    assert len(expected) == sum(len(messages) + 2 for messages, _ in calls)
    assert [word for piece in chunked(sent, sizes) for word in words(in_chunks.receive(piece))] == expected


raw_frames = st.builds(
    frames.frame, st.integers(0, 11), st.integers(0, 255), st.sampled_from([0, 1, 2, 3, 5]), st.binary(max_size=24)
)
sensible = st.one_of(
    st.builds(open_stream, numbers),
    st.builds(lambda number, payload, end: data(number, message(payload), end=end), numbers, payloads, st.booleans()),
    st.builds(data, numbers, payloads),
    st.builds(frames.window_update, st.sampled_from([0, 1, 3]), st.integers(0, 2**31 - 1)),
    st.builds(frames.rst_stream, numbers, st.just(ErrorCode.CANCEL)),
    st.builds(lambda value: frames.settings([(Setting.INITIAL_WINDOW_SIZE, value)]), st.integers(0, 2**31)),
    st.just(frames.ping(b"drain...", frames.ACK)),
)
hostile = st.lists(sensible | sensible | raw_frames | st.binary(max_size=40), max_size=14)


@settings(max_examples=300)
@given(hostile, cuts, st.booleans())
def test_nothing_raises_and_everything_opened_is_told_to_be_over(
    parts: list[bytes], sizes: list[int], leave: bool
) -> None:
    connection = Connection(LIMITS)
    opened: dict[int, Stream] = {}
    gone: set[int] = set()
    for piece in chunked(HELLO + b"".join(parts), sizes):
        for event in connection.receive(piece):
            assert event.stream.id not in gone
            if isinstance(event, Opened):
                opened[event.stream.id] = event.stream
            if isinstance(event, Gone):
                gone.add(event.stream.id)
        if leave:
            connection.leave()
        cut(connection.take())
    assert {number for number, stream in opened.items() if stream.closed} == gone
    assert len(connection.streams) <= LIMITS.streams
    assert connection._inflow.incomplete == sum(stream.deframer.held for stream in connection.streams)
    connection.close(ErrorCode.NO_ERROR)
    connection.receive(b"")
    assert connection._inflow.incomplete == 0


@settings(max_examples=100)
@given(
    st.lists(st.binary(max_size=700), min_size=1, max_size=5),
    st.integers(1, 900),
    st.lists(st.tuples(st.booleans(), st.integers(1, 700)), max_size=60),
)
def test_no_byte_is_sent_without_window_and_none_is_lost(
    answers: list[bytes], window: int, grants: list[tuple[bool, int]]
) -> None:
    peer = Peer(LIMITS, [(Setting.INITIAL_WINDOW_SIZE, window)])
    (event,) = peer.feed(open_stream(3))
    for answer in answers:
        peer.connection.send(event.stream, answer)
    peer.connection.finish(event.stream, 0)
    expected = b"".join(map(message, answers))
    room, got = window, b""
    for paused, grant in [*grants, (False, 100_000)]:
        peer.connection.paused = paused
        peer.feed(frames.window_update(3, grant))
        room += grant
        for kind, _, _, payload in peer.out():
            if kind == frames.DATA:
                room -= len(payload)
                got += payload
        assert room >= 0
    assert got == expected
    assert not peer.connection.streams


class Quiet(Server):
    """A server without a socket."""

    async def start(self) -> None: ...

    async def drain(self, grace_s: float) -> None: ...

    async def stop(self) -> None: ...

    async def wait(self) -> None: ...


class AtOnce(FakeHandler):
    """Decides without waiting."""

    def on_request(self, head: Any, body: bytes) -> Any:
        self.bodies.append(body)
        return Forward("m", {"x-selected-model": "m"})


class Loose:
    """A connection without a socket."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection

    def flush_soon(self) -> None:
        raise AssertionError

    def own(self, work: Any, name: str) -> Any:
        raise AssertionError


steps = st.one_of(
    st.sampled_from([headers(), headers(path="/other"), headers(mode=protocol(DUPLEX))]),
    st.builds(body, st.binary(min_size=1, max_size=8), st.booleans()),
).map(lambda one: message(one.SerializeToString()))


@settings(max_examples=300)
@given(st.lists(steps | steps | steps | payloads, max_size=4), hostile, cuts, st.sampled_from([0, 7, 65_535]))
def test_an_ok_never_comes_without_an_answer(
    asked: list[bytes], parts: list[bytes], sizes: list[int], window: int
) -> None:
    """Envoy would forward the request unchecked."""
    handler = AtOnce()
    server = Quiet(handler, "")
    peer = Peer(LIMITS, [(Setting.INITIAL_WINDOW_SIZE, window)])
    line = Loose(peer.connection)
    sent = open_stream(3) + data(3, b"".join(asked)) + b"".join(parts)
    written = b""
    for piece in chunked(sent, sizes):
        for event in peer.feed(piece):
            if isinstance(event, Opened):
                if event.stream.id == 3:
                    event.stream.owner = ProcessStream(line, event.stream, server)
            elif event.stream.owner is not None:
                tell(event.stream.owner, event)
        written += peer.connection.take()
    answers = Deframer(2**20).feed(b"".join(body for kind, _, _, body in cut(written) if kind == frames.DATA))
    ends = [body for kind, flags, _, body in cut(written) if kind == frames.HEADERS and flags & frames.END_STREAM]
    if any(end.endswith(b"\x0bgrpc-status\x010") for end in ends):
        kinds = [ProcessingResponse.FromString(answer).WhichOneof("response") for answer in answers]
        passed = any(head.path == "/other" for head in handler.heads)
        assert kinds
        assert passed or "immediate_response" in kinds or (handler.bodies and kinds[-1] != "request_headers")
    peer.connection.close(ErrorCode.NO_ERROR)
    for event in peer.feed(b""):
        if event.stream.owner is not None:
            event.stream.owner.reset()
    assert server.streams == 0
