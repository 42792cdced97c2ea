"""One HTTP/2 connection of a gRPC server, with no socket and no clock: bytes in, events and bytes out.

The shell feeds `receive` and acts on its events, calls `send`, `finish`, `abort`, and writes what `take` returns. When
that has been written, `resume` moves what had to wait.

What a peer can make us hold is bounded: one incomplete frame, one block of headers, `Limits.streams` streams, on each
of them a window of messages; beyond that `Limits.incomplete_bytes` of incomplete messages, and the rest of one. Answers
are made as the peer takes them.
"""

from __future__ import annotations

from typing import Final

from router.gateway.h2 import frames, headers
from router.gateway.h2.frames import ConnectionFault, ErrorCode, FrameReader, Setting
from router.gateway.h2.headers import HeaderReader
from router.gateway.h2.inflow import DEFAULT_WINDOW, Limits
from router.gateway.h2.messages import Compressed, TooLarge
from router.gateway.h2.sending import Sender
from router.gateway.h2.stream import Ended, Event, Gone, Message, Opened, Stream

_LAST_CALL: Final = b"drain..."  # eight bytes that a peer sends back
_BLOCK_BYTES: Final = 64 * 1024
_BLOCK_FRAMES: Final = 32
RESOURCE_EXHAUSTED: Final = 8
UNIMPLEMENTED: Final = 12


class Connection(Sender):
    """The server's end. Nothing raises, whatever arrives: a peer that breaks rules is told so, and `closed` is set."""

    def __init__(self, limits: Limits) -> None:
        super().__init__(limits)
        self._frames = FrameReader()
        self._headers = HeaderReader()
        self._last = 0
        self._block: tuple[int, int, bytearray, int] | None = None  # stream, flags, what has come, in how many frames
        self._greeted = False  # the peer's SETTINGS have come
        self._controls = 0
        self._leaving = False  # the peer knows that it should open no more streams
        self._left = False  # and from now on gets none
        self.closed = False
        """Nothing more is read: what is left to write is the last."""
        self._out += (
            frames.settings(
                (
                    (Setting.HEADER_TABLE_SIZE, 0),
                    (Setting.MAX_CONCURRENT_STREAMS, limits.streams),
                    (Setting.INITIAL_WINDOW_SIZE, limits.stream_window),
                    (Setting.MAX_HEADER_LIST_SIZE, headers.MAX_LIST_BYTES),
                )
            ),
            frames.window_update(0, limits.connection_window - DEFAULT_WINDOW),
        )

    @property
    def finished(self) -> bool:
        """Whether the connection has been left in good order, and may be closed."""
        return self._left and not self._streams

    # -- what the shell says ------------------------------------------------------------------------------------------

    def leave(self) -> None:
        """Ask the peer to open no more streams here: those on their way are still taken, until it has heard of it."""
        if not self._leaving and not self.closed:
            self._leaving = True
            if self._greeted:
                self._out += (frames.goaway(frames.MAX_WINDOW, ErrorCode.NO_ERROR), frames.ping(_LAST_CALL))
            else:
                self._leave_now()

    def close(self, code: ErrorCode, why: str = "") -> None:
        """End the connection, and every stream with it."""
        if self.closed:
            return
        self.closed = True
        self._out.append(frames.goaway(self._last, code, why))
        for stream in self.streams:
            self._forget(stream)
            self._events.append(Gone(stream))

    def release(self, stream: Stream) -> None:
        """The owner takes messages again."""
        stream.hold = False
        self._inflow.credit(stream)

    # -- what comes in ------------------------------------------------------------------------------------------------

    def receive(self, data: bytes) -> list[Event]:
        """Take bytes from the peer; what they mean, in order."""
        if self.closed:
            return self._told()
        self._controls = 0
        try:
            for kind, flags, stream, payload in self._frames.feed(data):
                if self._block is not None and kind != frames.CONTINUATION:
                    raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "a header block was not finished")
                if not self._greeted and kind != frames.SETTINGS:
                    raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "SETTINGS must come first")
                _ON.get(kind, Connection._on_unknown)(self, flags, stream, payload)
        except ConnectionFault as fault:
            self.close(fault.code, fault.why)
        return self._told()

    def _on_data(self, flags: int, number: int, payload: bytes) -> None:
        size = len(payload)
        self._inflow.arrived(size)
        stream = self._known(number)
        if stream is None:
            return  # on its way while we ended the stream
        if stream.remote_closed:
            self._break(stream, ErrorCode.STREAM_CLOSED)
            return
        stream.receive_window -= size
        if stream.receive_window < 0:
            self._break(stream, ErrorCode.FLOW_CONTROL_ERROR)
            return
        if flags & frames.PADDED:
            payload = frames.unpad(payload)
        if payload:
            self._deframe(stream, payload)
        elif not flags & frames.END_STREAM:
            self._control()
        if stream.closed:
            return
        stream.uncredited += size
        if flags & frames.END_STREAM:
            self._on_end(stream)
        else:
            self._inflow.credit(stream)

    def _deframe(self, stream: Stream, payload: bytes) -> None:
        deframer = stream.deframer
        self._inflow.incomplete -= deframer.held
        try:
            for message in deframer.feed(payload):
                self._events.append(Message(stream, message))
        except TooLarge:
            failure = (RESOURCE_EXHAUSTED, "a message is larger than allowed")
        except Compressed:
            failure = (UNIMPLEMENTED, "compressed messages are not taken")
        else:
            self._inflow.incomplete += deframer.held
            return
        deframer.clear()
        self.abort(stream, *failure)
        self._events.append(Gone(stream))

    def _on_end(self, stream: Stream) -> None:
        stream.remote_closed = True
        if stream.deframer.whole:
            self._events.append(Ended(stream))
        else:
            self._break(stream, ErrorCode.PROTOCOL_ERROR)

    def _on_headers(self, flags: int, number: int, payload: bytes) -> None:
        if flags & frames.PADDED:
            payload = frames.unpad(payload)
        if flags & frames.WITH_PRIORITY:
            if len(payload) < 5:
                raise ConnectionFault(ErrorCode.FRAME_SIZE_ERROR, "HEADERS without the priority they announce")
            payload = payload[5:]
        if number % 2 == 0:
            raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "a stream's number is not a client's")
        if flags & frames.END_HEADERS:
            self._on_block(number, flags, payload)
        else:
            self._block = (number, flags, bytearray(payload), 1)

    def _on_continuation(self, flags: int, number: int, payload: bytes) -> None:
        if self._block is None or self._block[0] != number:
            raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "CONTINUATION of nothing")
        _, first_flags, block, count = self._block
        block += payload
        if len(block) > _BLOCK_BYTES or count >= _BLOCK_FRAMES:
            raise ConnectionFault(ErrorCode.ENHANCE_YOUR_CALM, "a header block is larger than allowed")
        self._block = (number, first_flags, block, count + 1)
        if flags & frames.END_HEADERS:
            self._block = None
            self._on_block(number, first_flags, bytes(block))

    def _on_block(self, number: int, flags: int, block: bytes) -> None:
        if number > self._last:
            self._last = number
            self._open(number, flags, block)
            return
        self._headers.skip(block)
        stream = self._streams.get(number)
        if stream is None:
            return
        if stream.remote_closed:
            self._break(stream, ErrorCode.STREAM_CLOSED)
        elif flags & frames.END_STREAM:
            self._on_end(stream)
        else:
            self._break(stream, ErrorCode.PROTOCOL_ERROR)  # trailers are the end

    def _open(self, number: int, flags: int, block: bytes) -> None:
        request = self._headers.read(block)
        if self._left or len(self._streams) >= self._limits.streams:
            self._out.append(frames.rst_stream(number, ErrorCode.REFUSED_STREAM))
            return
        if request is None:
            self._out.append(frames.rst_stream(number, ErrorCode.PROTOCOL_ERROR))
            return
        stream = Stream(number, self._peer_window, self._limits.stream_window, self._limits.message_bytes)
        self._streams[number] = stream
        self._events.append(Opened(stream, request))
        if flags & frames.END_STREAM:
            self._on_end(stream)

    def _on_priority(self, flags: int, number: int, payload: bytes) -> None:
        self._control()
        if not number:
            raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "PRIORITY of no stream")
        if len(payload) != 5:
            raise ConnectionFault(ErrorCode.FRAME_SIZE_ERROR, "PRIORITY of a wrong size")

    def _on_goaway(self, flags: int, number: int, payload: bytes) -> None:
        self._control()
        if number:
            raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "GOAWAY on a stream")
        if len(payload) < 8:
            raise ConnectionFault(ErrorCode.FRAME_SIZE_ERROR, "GOAWAY of a wrong size")

    def _on_push(self, flags: int, number: int, payload: bytes) -> None:
        raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "a client cannot push")

    def _on_unknown(self, flags: int, number: int, payload: bytes) -> None:
        self._control()  # kinds of frames that are not known are to be ignored

    def _on_settings(self, flags: int, number: int, payload: bytes) -> None:
        self._control()
        if number:
            raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "SETTINGS on a stream")
        if flags & frames.ACK:
            if payload:
                raise ConnectionFault(ErrorCode.FRAME_SIZE_ERROR, "an acknowledgement with a payload")
            if not self._greeted:
                raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "SETTINGS must come first")
            self._headers.forbid_table()
            return
        self._greeted = True
        for name, value in frames.read_settings(payload):
            self._set(name, value)
        # Before anything that a wider window lets through: until it reads this, the peer counts by the old one.
        self._out.append(frames.SETTINGS_ACK)
        for stream in tuple(self._waiting.values()):
            self._pump(stream)

    def _set(self, name: int, value: int) -> None:
        if name == Setting.INITIAL_WINDOW_SIZE:
            if value > frames.MAX_WINDOW:
                raise ConnectionFault(ErrorCode.FLOW_CONTROL_ERROR, "a window is larger than windows can be")
            change, self._peer_window = value - self._peer_window, value
            for stream in self.streams:
                stream.send_window += change
                if stream.send_window > frames.MAX_WINDOW:
                    raise ConnectionFault(ErrorCode.FLOW_CONTROL_ERROR, "a window is larger than windows can be")
        elif name == Setting.MAX_FRAME_SIZE:
            if not frames.MAX_FRAME_BYTES <= value < 2**24:
                raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "MAX_FRAME_SIZE out of its range")
            self._peer_frame = value
        elif name == Setting.ENABLE_PUSH and value > 1:
            raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "ENABLE_PUSH out of its range")

    def _on_window_update(self, flags: int, number: int, payload: bytes) -> None:
        increment = frames.read_number(payload)
        if number == 0:
            self._send_window += increment
            if not increment or self._send_window > frames.MAX_WINDOW:
                raise ConnectionFault(_window_fault(increment), "WINDOW_UPDATE out of its range")
            for waiting in tuple(self._waiting.values()):
                self._pump(waiting)
            return
        stream = self._known(number)
        if stream is None:
            return
        stream.send_window += increment
        if not increment or stream.send_window > frames.MAX_WINDOW:
            self._break(stream, _window_fault(increment))
        elif stream.pending:
            self._pump(stream)

    def _on_reset(self, flags: int, number: int, payload: bytes) -> None:
        frames.read_number(payload)
        stream = self._known(number)
        if stream is not None:
            self._forget(stream)
            self._events.append(Gone(stream))

    def _on_ping(self, flags: int, number: int, payload: bytes) -> None:
        self._control()
        if number:
            raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "PING on a stream")
        if len(payload) != 8:
            raise ConnectionFault(ErrorCode.FRAME_SIZE_ERROR, "PING of a wrong size")
        if not flags & frames.ACK:
            self._out.append(frames.ping(payload, frames.ACK))
        elif self._leaving and payload == _LAST_CALL and not self._left:
            self._leave_now()

    def _control(self) -> None:
        self._controls += 1
        if self._controls > self._limits.controls:
            raise ConnectionFault(ErrorCode.ENHANCE_YOUR_CALM, "too many frames that ask for nothing")

    def _known(self, number: int) -> Stream | None:
        """The stream, or None when it is over; a number that was never used ends the connection."""
        stream = self._streams.get(number)
        if stream is None and (number > self._last or number % 2 == 0):
            raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "a frame of a stream that was never opened")
        return stream

    # -- on the way ----------------------------------------------------------------------------------------------------

    def _leave_now(self) -> None:
        self._left = True
        self._out.append(frames.goaway(self._last, ErrorCode.NO_ERROR))

    def _break(self, stream: Stream, code: ErrorCode) -> None:
        self._reset(stream, code)
        self._events.append(Gone(stream))


_ON = {
    frames.DATA: Connection._on_data,
    frames.HEADERS: Connection._on_headers,
    frames.PRIORITY: Connection._on_priority,
    frames.RST_STREAM: Connection._on_reset,
    frames.SETTINGS: Connection._on_settings,
    frames.PUSH_PROMISE: Connection._on_push,
    frames.PING: Connection._on_ping,
    frames.GOAWAY: Connection._on_goaway,
    frames.WINDOW_UPDATE: Connection._on_window_update,
    frames.CONTINUATION: Connection._on_continuation,
}


def _window_fault(increment: int) -> ErrorCode:
    return ErrorCode.FLOW_CONTROL_ERROR if increment else ErrorCode.PROTOCOL_ERROR
