"""The connection as playbooks: what a client sends, what is made of it, what it is told."""

from __future__ import annotations

import pytest

from router.gateway.h2 import frames
from router.gateway.h2.connection import Connection
from router.gateway.h2.frames import ErrorCode, Setting
from router.gateway.h2.inflow import Limits
from router.gateway.h2.stream import Opened, Stream
from tests.support.h2_peer import (
    HELLO,
    LIMITS,
    PROCESS,
    Peer,
    block,
    cut,
    data,
    fields,
    goaway,
    message,
    open_stream,
    resets,
    words,
)

KIB = 1024


def opened(peer: Peer, number: int = 3) -> Stream:
    (event,) = peer.feed(open_stream(number))
    assert isinstance(event, Opened)
    return event.stream


def test_the_server_greets_first() -> None:
    (settings, window) = Peer().greeting
    assert dict(frames.read_settings(settings[3])) == {
        Setting.HEADER_TABLE_SIZE: 0,
        Setting.MAX_CONCURRENT_STREAMS: LIMITS.streams,
        Setting.INITIAL_WINDOW_SIZE: LIMITS.stream_window,
        Setting.MAX_HEADER_LIST_SIZE: 64 * KIB,
    }
    assert window[:3] == (frames.WINDOW_UPDATE, 0, 0)
    assert frames.read_number(window[3]) == LIMITS.connection_window - 65_535


def test_a_call_and_its_answer() -> None:
    peer = Peer()
    events = peer.feed(open_stream(3) + data(3, message(b"hello"), end=True))
    assert words(events) == [f"open 3 {PROCESS}", "message 3 b'hello'", "ended 3"]
    stream = events[0].stream
    peer.connection.send(stream, b"answer")
    peer.connection.finish(stream, 0)
    head, body, end = peer.out()
    assert peer.headers(head[3]) == {":status": "200", "content-type": "application/grpc"}
    assert body == (frames.DATA, 0, 3, message(b"answer"))
    assert end[:3] == (frames.HEADERS, frames.END_HEADERS | frames.END_STREAM, 3)
    assert peer.headers(end[3]) == {"grpc-status": "0"}
    assert not peer.connection.streams


def test_an_end_before_the_clients_end_tells_it_to_send_no_more() -> None:
    peer = Peer()
    stream = opened(peer)
    peer.connection.finish(stream, 13, "why")
    only, reset = peer.out()
    assert only[:3] == (frames.HEADERS, frames.END_HEADERS | frames.END_STREAM, 3)
    assert peer.headers(only[3])["grpc-message"] == "why"
    assert resets([reset]) == {3: ErrorCode.NO_ERROR}
    assert words(peer.feed(data(3, message(b"late")) + open_stream(3, [("late", "trailers")], 0x5))) == []
    assert peer.out() == []


def test_a_stream_that_is_over_takes_nothing() -> None:
    peer = Peer()
    stream = opened(peer)
    assert words(peer.feed(frames.rst_stream(3, ErrorCode.CANCEL))) == ["gone 3"]
    peer.connection.send(stream, b"x")
    peer.connection.finish(stream, 0)
    peer.connection.abort(stream, 13, "")
    peer.connection.refuse(stream, 415)
    peer.connection.release(stream)
    assert peer.out() == []


def test_messages_over_frames_and_several_in_one() -> None:
    peer = Peer()
    opened(peer)
    whole = message(b"a" * 40_000) + message(b"") + message(b"b")
    events = peer.feed(data(3, whole))
    assert [word[:12] for word in words(events)] == ["message 3 b'"] * 3
    assert words(peer.feed(frames.frame(frames.HEADERS, 0x5, 3, block([("x", "trailers")])))) == ["ended 3"]


def test_padding_and_priority_are_taken_off() -> None:
    peer = Peer()
    head = b"\x02" + b"\x00\x00\x00\x00\x10" + block(fields()) + b"\x00\x00"
    payload = b"\x04" + message(b"x") + bytes(4)
    events = peer.feed(
        frames.frame(frames.HEADERS, frames.END_HEADERS | frames.PADDED | frames.WITH_PRIORITY, 3, head)
        + frames.frame(frames.PRIORITY, 0, 3, b"\x00\x00\x00\x01\x10")
        + frames.frame(frames.DATA, frames.PADDED, 3, payload)
    )
    assert words(events) == [f"open 3 {PROCESS}", "message 3 b'x'"]


def test_headers_in_several_frames() -> None:
    peer = Peer()
    whole = block(fields())
    first = frames.frame(frames.HEADERS, frames.END_STREAM, 3, whole[:7])
    rest = frames.frame(frames.CONTINUATION, 0, 3, whole[7:9])
    last = frames.frame(frames.CONTINUATION, frames.END_HEADERS, 3, whole[9:])
    assert words(peer.feed(first + rest + last)) == [f"open 3 {PROCESS}", "ended 3"]


def test_pings_and_settings_are_answered() -> None:
    peer = Peer()
    peer.feed(frames.ping(b"12345678") + frames.settings([(Setting.ENABLE_PUSH, 0)]) + frames.frame(99, 0, 0, b"?"))
    assert peer.out() == [(frames.PING, frames.ACK, 0, b"12345678"), (frames.SETTINGS, frames.ACK, 0, b"")]


CONNECTION_FAULTS = {
    "no preface": (b"GET / HTTP/1.1\r\n\r\n", ErrorCode.PROTOCOL_ERROR),
    "settings are due": (frames.PREFACE + frames.ping(bytes(8)), ErrorCode.PROTOCOL_ERROR),
    "an acknowledgement first": (frames.PREFACE + frames.SETTINGS_ACK, ErrorCode.PROTOCOL_ERROR),
    "odd settings": (HELLO + frames.frame(frames.SETTINGS, 0, 0, b"123"), ErrorCode.FRAME_SIZE_ERROR),
    "settings of a stream": (HELLO + frames.frame(frames.SETTINGS, 0, 1), ErrorCode.PROTOCOL_ERROR),
    "a full acknowledgement": (HELLO + frames.frame(frames.SETTINGS, 1, 0, bytes(6)), ErrorCode.FRAME_SIZE_ERROR),
    "push": (HELLO + frames.settings([(Setting.ENABLE_PUSH, 2)]), ErrorCode.PROTOCOL_ERROR),
    "a small frame size": (HELLO + frames.settings([(Setting.MAX_FRAME_SIZE, 100)]), ErrorCode.PROTOCOL_ERROR),
    "a huge window": (HELLO + frames.settings([(Setting.INITIAL_WINDOW_SIZE, 2**31)]), ErrorCode.FLOW_CONTROL_ERROR),
    "an even stream": (HELLO + open_stream(2), ErrorCode.PROTOCOL_ERROR),
    "stream zero": (HELLO + open_stream(0), ErrorCode.PROTOCOL_ERROR),
    "data of no stream": (HELLO + data(1, b"x"), ErrorCode.PROTOCOL_ERROR),
    "data of stream zero": (HELLO + data(0, b"x"), ErrorCode.PROTOCOL_ERROR),
    "a reset of no stream": (HELLO + frames.rst_stream(1, ErrorCode.CANCEL), ErrorCode.PROTOCOL_ERROR),
    "a short reset": (HELLO + open_stream(1) + frames.frame(frames.RST_STREAM, 0, 1), ErrorCode.FRAME_SIZE_ERROR),
    "a window of no stream": (HELLO + frames.window_update(1, 1), ErrorCode.PROTOCOL_ERROR),
    "a window that does not grow": (HELLO + frames.window_update(0, 0), ErrorCode.PROTOCOL_ERROR),
    "a window that overflows": (HELLO + frames.window_update(0, 2**31 - 1), ErrorCode.FLOW_CONTROL_ERROR),
    "a short ping": (HELLO + frames.ping(b"1"), ErrorCode.FRAME_SIZE_ERROR),
    "a ping of a stream": (HELLO + frames.frame(frames.PING, 0, 1, bytes(8)), ErrorCode.PROTOCOL_ERROR),
    "a push": (HELLO + frames.frame(frames.PUSH_PROMISE, 4, 1, bytes(8)), ErrorCode.PROTOCOL_ERROR),
    "a continuation of nothing": (HELLO + frames.frame(frames.CONTINUATION, 4, 1), ErrorCode.PROTOCOL_ERROR),
    "something within headers": (HELLO + open_stream(1, flags=0) + frames.ping(bytes(8)), ErrorCode.PROTOCOL_ERROR),
    "another's continuation": (
        HELLO + open_stream(1, flags=0) + frames.frame(frames.CONTINUATION, 4, 3),
        ErrorCode.PROTOCOL_ERROR,
    ),
    "a short priority": (HELLO + frames.frame(frames.PRIORITY, 0, 1, b"1"), ErrorCode.FRAME_SIZE_ERROR),
    "priority of nothing": (HELLO + frames.frame(frames.PRIORITY, 0, 0, bytes(5)), ErrorCode.PROTOCOL_ERROR),
    "headers without their priority": (HELLO + frames.frame(frames.HEADERS, 0x24, 1), ErrorCode.FRAME_SIZE_ERROR),
    "a short goaway": (HELLO + frames.frame(frames.GOAWAY, 0, 0, bytes(4)), ErrorCode.FRAME_SIZE_ERROR),
    "a goaway of a stream": (HELLO + frames.frame(frames.GOAWAY, 0, 1, bytes(8)), ErrorCode.PROTOCOL_ERROR),
    "padding alone": (HELLO + open_stream(1) + frames.frame(frames.DATA, 8, 1), ErrorCode.PROTOCOL_ERROR),
    "no header block": (HELLO + frames.frame(frames.HEADERS, 4, 1, b"\xff"), ErrorCode.COMPRESSION_ERROR),
}


@pytest.mark.parametrize("case", CONNECTION_FAULTS)
def test_what_ends_a_connection(case: str) -> None:
    sent, code = CONNECTION_FAULTS[case]
    connection = Connection(LIMITS)
    events = words(connection.receive(sent))
    assert connection.closed
    assert goaway(cut(connection.take())) is code
    assert [word.split()[0] for word in events] in ([], ["open", "gone"])
    assert connection.receive(HELLO) == []
    assert connection.take() == b""


STREAM_FAULTS = {
    "a malformed request": (open_stream(3, [(":method", "POST")]), ErrorCode.PROTOCOL_ERROR, []),
    "data after the end": (open_stream(3, flags=5) + data(3, b"x"), ErrorCode.STREAM_CLOSED, ["open", "ended", "gone"]),
    "trailers after the end": (
        open_stream(3, flags=5) + open_stream(3, [("a", "b")], 5),
        ErrorCode.STREAM_CLOSED,
        ["open", "ended", "gone"],
    ),
    "trailers that do not end": (
        open_stream(3) + open_stream(3, [("a", "b")]),
        ErrorCode.PROTOCOL_ERROR,
        ["open", "gone"],
    ),
    "half a message": (
        open_stream(3) + data(3, message(b"abc")[:6], end=True),
        ErrorCode.PROTOCOL_ERROR,
        ["open", "gone"],
    ),
    "a window that does not grow": (
        open_stream(3) + frames.window_update(3, 0),
        ErrorCode.PROTOCOL_ERROR,
        ["open", "gone"],
    ),
    "a window that overflows": (
        open_stream(3) + frames.window_update(3, 2**31 - 1),
        ErrorCode.FLOW_CONTROL_ERROR,
        ["open", "gone"],
    ),
}


@pytest.mark.parametrize("case", STREAM_FAULTS)
def test_what_ends_a_stream_and_leaves_the_connection(case: str) -> None:
    sent, code, expected = STREAM_FAULTS[case]
    peer = Peer()
    assert [word.split()[0] for word in words(peer.feed(sent))] == expected
    assert resets(peer.out()) == {3: code}
    assert words(peer.feed(open_stream(5))) == [f"open 5 {PROCESS}"]


@pytest.mark.parametrize(
    ("payload", "status"), [(b"\x00\xff\xff\xff\xff", "8"), (b"\x01\x00\x00\x00\x01x", "12")], ids=["large", "coded"]
)
def test_messages_that_are_not_taken_end_the_call_with_an_error(payload: bytes, status: str) -> None:
    peer = Peer()
    opened(peer)
    assert words(peer.feed(data(3, message(b"first") + payload)))[-1] == "gone 3"
    only, reset = peer.out()
    assert peer.headers(only[3])["grpc-status"] == status
    assert resets([reset]) == {3: ErrorCode.NO_ERROR}
    assert peer.connection._inflow.incomplete == 0


# -- limits -----------------------------------------------------------------------------------------------------------


def test_streams_beyond_the_limit_are_refused() -> None:
    peer = Peer(Limits(message_bytes=1000, streams=2))
    events = peer.feed(open_stream(3) + open_stream(5) + open_stream(7))
    assert [event.stream.id for event in events] == [3, 5]
    assert resets(peer.out()) == {7: ErrorCode.REFUSED_STREAM}
    peer.feed(frames.rst_stream(3, ErrorCode.CANCEL))
    assert words(peer.feed(open_stream(9))) == [f"open 9 {PROCESS}"]


def test_a_header_block_without_end_is_refused() -> None:
    for piece in (b"", b"x" * 16_000):
        peer = Peer()
        peer.feed(open_stream(3, flags=0))
        for _ in range(40):
            peer.feed(frames.frame(frames.CONTINUATION, 0, 3, piece))
        assert goaway(peer.out()) is ErrorCode.ENHANCE_YOUR_CALM


@pytest.mark.parametrize("flood", [frames.ping(bytes(8)), frames.settings(()), frames.frame(77, 0, 0)])
def test_a_flood_of_frames_that_ask_for_nothing_ends_the_connection(flood: bytes) -> None:
    peer = Peer(Limits(message_bytes=1000, controls=100))
    peer.feed(flood * 100)
    assert goaway(peer.out()) is None
    peer.feed(flood * 101)
    assert goaway(peer.out()) is ErrorCode.ENHANCE_YOUR_CALM


def test_while_too_much_is_incomplete_one_stream_at_a_time_gets_window() -> None:
    peer = Peer(Limits(message_bytes=1000, stream_window=400, incomplete_bytes=1000))
    whole, left = message(b"x" * 995), dict[int, bytes]()
    for number in range(3, 19, 2):
        opened(peer, number)
        left[number] = whole
    windows, finished, most = dict.fromkeys(left, 400), list[int](), 0
    while left:
        before = dict(left)
        for number in tuple(left):
            piece, left[number] = left[number][: windows[number]], left[number][windows[number] :]
            windows[number] -= len(piece)
            if piece:
                finished += [event.stream.id for event in peer.feed(data(number, piece))]
            most = max(most, peer.connection._inflow.incomplete)
            if not left[number]:
                del left[number]
        for kind, _, number, payload in peer.out():
            if kind == frames.WINDOW_UPDATE and number:
                windows[number] += frames.read_number(payload)
        assert left != before, "nobody gets on"
    assert sorted(finished) == list(range(3, 19, 2))
    assert most <= 1000 + 8 * 400 + 1000 < 8 * 1000
    assert peer.connection._inflow.incomplete == 0


def test_a_stream_that_got_window_before_others_and_dies_makes_room() -> None:
    peer = Peer(Limits(message_bytes=1000, stream_window=400, incomplete_bytes=100))
    first, second = opened(peer, 3), opened(peer, 5)
    half = message(b"x" * 900)[:300]
    peer.feed(data(3, half) + data(5, half))
    assert [number for _, _, number, _ in peer.out()] == [3]
    peer.connection.abort(first, 13, "")
    assert (frames.WINDOW_UPDATE, 5) in [(kind, number) for kind, _, number, _ in peer.out()]
    assert second.uncredited == 0


def test_a_client_that_ignores_its_window() -> None:
    peer = Peer(Limits(message_bytes=10**6, stream_window=1000))
    opened(peer).hold = True
    assert words(peer.feed(data(3, message(b"x" * 2000)))) == ["gone 3"]
    assert resets(peer.out()) == {3: ErrorCode.FLOW_CONTROL_ERROR}
    peer = Peer(Limits(message_bytes=10**6, connection_window=70_000))
    opened(peer)
    peer.connection._inflow._window = 100
    peer.feed(data(3, bytes(200)))
    assert goaway(peer.out()) is ErrorCode.FLOW_CONTROL_ERROR


# -- flow control -----------------------------------------------------------------------------------------------------


def test_window_is_given_back_lazily_and_not_while_the_owner_is_busy() -> None:
    peer = Peer(Limits(message_bytes=10**6, stream_window=1000, connection_window=100_000))
    stream = opened(peer)
    peer.feed(data(3, message(b"x" * 395)))
    assert peer.out() == []
    peer.feed(data(3, message(b"x" * 195)))
    assert peer.out() == [(frames.WINDOW_UPDATE, 0, 3, (600).to_bytes(4, "big"))]
    stream.hold = True
    peer.feed(data(3, message(b"x" * 795)))
    assert peer.out() == []
    peer.connection.release(stream)
    assert peer.out() == [(frames.WINDOW_UPDATE, 0, 3, (800).to_bytes(4, "big"))]
    for _ in range(70):
        peer.feed(data(3, message(b"x" * 795)))
    granted = sum(frames.read_number(payload) for kind, _, number, payload in peer.out() if number == 0)
    assert granted > 40_000


def test_an_answer_waits_for_the_streams_window() -> None:
    peer = Peer(settings=[(Setting.INITIAL_WINDOW_SIZE, 10)])
    stream = opened(peer)
    answer = bytes(range(100))
    peer.connection.send(stream, answer)
    assert not stream.writable
    peer.connection.finish(stream, 0)
    got = [payload for kind, _, _, payload in peer.out() if kind == frames.DATA]
    for _ in range(9):
        peer.feed(frames.window_update(3, 10))
        got += [payload for kind, _, _, payload in peer.out() if kind == frames.DATA]
        assert all(len(piece) <= 10 for piece in got)
    assert peer.connection.streams
    events = peer.feed(frames.window_update(3, 10))
    last, end, _ = peer.out()
    assert b"".join(got) + last[3] == message(answer)
    assert peer.headers(end[3]) == {"grpc-status": "0"}
    assert events == []  # its owner has finished already
    assert not peer.connection.streams


def test_the_owner_hears_when_there_is_room_again() -> None:
    peer = Peer(settings=[(Setting.INITIAL_WINDOW_SIZE, 10)])
    stream = opened(peer)
    peer.connection.send(stream, b"x" * 10)
    assert words(peer.feed(frames.window_update(3, 1))) == []
    assert words(peer.feed(frames.window_update(3, 10))) == ["writable 3"]
    assert stream.writable


def test_a_window_may_shrink_below_nothing_and_grow_again() -> None:
    peer = Peer(settings=[(Setting.INITIAL_WINDOW_SIZE, 100)])
    stream = opened(peer)
    peer.connection.send(stream, b"x" * 85)
    peer.feed(frames.settings([(Setting.INITIAL_WINDOW_SIZE, 20)]))
    assert stream.send_window == -70
    peer.connection.send(stream, b"y")
    assert [kind for kind, *_ in peer.out()] == [frames.HEADERS, frames.DATA, frames.SETTINGS]
    peer.feed(frames.settings([(Setting.INITIAL_WINDOW_SIZE, 100)]))
    # The acknowledgement first: until the client reads it, it counts by the old window.
    assert [kind for kind, *_ in peer.out()] == [frames.SETTINGS, frames.DATA]


def test_the_connections_window_is_shared() -> None:
    peer = Peer(settings=[(Setting.INITIAL_WINDOW_SIZE, 10**6)])
    one, two = opened(peer, 3), opened(peer, 5)
    peer.connection.send(one, b"1" * 200_000)
    peer.connection.send(two, b"2" * 200_000)
    sent = {3: 0, 5: 0}
    for _ in range(7):
        for kind, _, number, payload in peer.out():
            if kind == frames.DATA:
                sent[number] += len(payload)
        peer.feed(frames.window_update(0, 60_000))
    assert sent == {3: 200_005, 5: 200_005} or min(sent.values()) > 100_000


def test_large_frames_where_the_client_takes_them() -> None:
    peer = Peer(settings=[(Setting.INITIAL_WINDOW_SIZE, 2**20), (Setting.MAX_FRAME_SIZE, 2**20)])
    peer.feed(frames.window_update(0, 2**20))
    stream = opened(peer)
    peer.connection.send(stream, b"x" * 200_000)
    assert [len(payload) for kind, _, _, payload in peer.out() if kind == frames.DATA] == [200_005]


def test_what_is_handed_out_at_once_is_bounded() -> None:
    peer = Peer(settings=[(Setting.INITIAL_WINDOW_SIZE, 2**30)])
    peer.feed(frames.window_update(0, 2**30))
    stream = opened(peer)
    peer.connection.send(stream, b"x" * 4_000_000)
    sizes = []
    while piece := peer.connection.take():
        sizes.append(len(piece))
        peer.connection.resume()
    assert sum(sizes) > 4_000_000
    assert max(sizes) < LIMITS.output_bytes + 32 * KIB


def test_nothing_is_handed_out_while_the_socket_takes_nothing() -> None:
    peer = Peer()
    stream = opened(peer)
    peer.connection.paused = True
    peer.connection.send(stream, b"x")
    assert [kind for kind, *_ in peer.out()] == [frames.HEADERS]
    peer.connection.paused = False
    assert words(peer.connection.resume()) == ["writable 3"]
    assert [kind for kind, *_ in peer.out()] == [frames.DATA]


def test_an_error_in_the_middle_of_an_answer_is_a_reset() -> None:
    peer = Peer(settings=[(Setting.INITIAL_WINDOW_SIZE, 10)])
    stream = opened(peer)
    peer.connection.send(stream, b"x" * 100)
    peer.out()
    peer.connection.finish(stream, 0)
    peer.connection.abort(stream, 14, "")
    assert resets(peer.out()) == {3: ErrorCode.CANCEL}
    assert not peer.connection.waiting


# -- leaving ----------------------------------------------------------------------------------------------------------


def test_leaving_takes_what_is_on_its_way_and_then_no_more() -> None:
    peer = Peer()
    first = opened(peer, 3)
    peer.connection.leave()
    call, ping = peer.out()
    assert (int.from_bytes(call[3][:4], "big"), goaway([call])) == (2**31 - 1, ErrorCode.NO_ERROR)
    second = opened(peer, 5)
    peer.feed(frames.ping(ping[3], frames.ACK))
    (last,) = peer.out()
    assert int.from_bytes(last[3][:4], "big") == 5
    assert peer.feed(open_stream(7)) == []
    assert resets(peer.out()) == {7: ErrorCode.REFUSED_STREAM}
    peer.connection.finish(first, 0)
    assert not peer.connection.finished
    peer.connection.finish(second, 0)
    assert peer.connection.finished


def test_leaving_whoever_said_nothing_yet() -> None:
    connection = Connection(LIMITS)
    connection.leave()
    assert connection.finished
    assert goaway(cut(connection.take())) is ErrorCode.NO_ERROR


def test_closing_takes_every_stream_along() -> None:
    peer = Peer()
    peer.feed(open_stream(3) + open_stream(5))
    peer.connection.close(ErrorCode.INTERNAL_ERROR)
    assert words(peer.feed(b"")) == ["gone 3", "gone 5"]
    assert goaway(peer.out()) is ErrorCode.INTERNAL_ERROR
