"""The sending half of a connection: windows, what waits for them, and the ends of streams."""

from __future__ import annotations

from collections import deque
from typing import Final

from router.gateway.h2 import frames, headers
from router.gateway.h2.frames import ErrorCode
from router.gateway.h2.inflow import DEFAULT_WINDOW, Inflow, Limits
from router.gateway.h2.messages import PREFIX_BYTES
from router.gateway.h2.stream import Event, Stream, Writable

_ROUND_BYTES: Final = 128 * 1024


class Sender:
    """What the shell and the streams' owners call to send.

    `take` gives what is to be written; when that is written, `resume` moves what had to wait.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._streams: dict[int, Stream] = {}
        self._send_window = DEFAULT_WINDOW
        self._peer_window = DEFAULT_WINDOW  # what a new stream may be sent
        self._peer_frame = frames.MAX_FRAME_BYTES
        self._first_block = headers.NO_TABLE
        self._waiting: dict[int, Stream] = {}  # streams with something pending, who is next first
        self._events: list[Event] = []
        self._out: list[bytes | memoryview] = []
        self._inflow = Inflow(limits, self._out.append)
        self._room = limits.output_bytes
        self.paused = False
        """Set by the shell while the socket takes nothing."""

    @property
    def waiting(self) -> bool:
        """Whether something waits for a window, or for what went before to be written."""
        return bool(self._waiting)

    @property
    def streams(self) -> tuple[Stream, ...]:
        """Streams that are not over."""
        return tuple(self._streams.values())

    def send(self, stream: Stream, message: bytes) -> None:
        """Send one gRPC message; what finds no window waits, and `stream.writable` says so."""
        if stream.closed or stream.end is not None:
            return
        if not stream.started:
            stream.started = True
            self._write_block(stream, headers.RESPONSE, 0)
        size = len(message) + PREFIX_BYTES
        if (
            not stream.pending
            and size <= self._send_window
            and size <= stream.send_window
            and size <= self._peer_frame
            and self._room > 0
            and not self.paused
        ):
            self._send_window -= size
            stream.send_window -= size
            self._room -= size
            self._out += (frames.message_head(size - PREFIX_BYTES, stream.id), message)
            return
        stream.pending += (b"\x00" + len(message).to_bytes(4, "big"), message)
        if stream.id not in self._waiting:
            self._pump(stream)

    def finish(self, stream: Stream, status: int, detail: str = "") -> None:
        """End a stream with a gRPC status, behind everything that was sent."""
        if stream.closed or stream.end is not None:
            return
        block = headers.trailers(status, detail)
        if not stream.started:
            stream.started = True
            block = headers.RESPONSE + block
        if stream.pending:
            stream.end = block
        else:
            self._end(stream, block)

    def abort(self, stream: Stream, status: int, detail: str) -> None:
        """End a stream with an error at once: what still waits is not sent."""
        if stream.closed:
            return
        if stream.pending:  # perhaps in the middle of a message
            self._reset(stream, ErrorCode.CANCEL)
        else:
            self.finish(stream, status, detail)

    def refuse(self, stream: Stream, http_status: int) -> None:
        """Answer what is no gRPC call."""
        if not stream.closed:
            self._end(stream, headers.plain_status(http_status))

    def take(self) -> bytes:
        """What is to be written now."""
        self._inflow.credit_starved()
        if not self._out:
            return b""
        data = b"".join(self._out)
        self._out.clear()
        self._room = self._limits.output_bytes
        return data

    def resume(self) -> list[Event]:
        """Move what waits, now that what was taken is written."""
        for stream in tuple(self._waiting.values()):
            if self._room <= 0 or self.paused or self._send_window <= 0:
                break
            self._pump(stream)
        return self._told()

    def _pump(self, stream: Stream) -> None:
        """Send what waits on a stream as far as windows and room go, and no more than its share of a round."""
        pending = stream.pending
        share = _ROUND_BYTES
        while pending and share > 0:
            room = 0 if self.paused else min(self._send_window, stream.send_window, self._peer_frame, self._room)
            if room <= 0:
                break
            parts, size = _cut(pending, room)
            self._out.append(frames.head(size, frames.DATA, 0, stream.id))
            self._out += parts
            self._send_window -= size
            stream.send_window -= size
            self._room -= size
            share -= size
        waited = self._waiting.pop(stream.id, None) is not None
        if pending:
            self._waiting[stream.id] = stream  # behind the others
        elif stream.end is not None:
            self._end(stream, stream.end)
        elif waited:
            self._events.append(Writable(stream))

    def _write_block(self, stream: Stream, block: bytes, flags: int) -> None:
        if self._first_block:
            block, self._first_block = self._first_block + block, b""
        self._out.append(frames.frame(frames.HEADERS, flags | frames.END_HEADERS, stream.id, block))

    def _end(self, stream: Stream, block: bytes) -> None:
        self._write_block(stream, block, frames.END_STREAM)
        if not stream.remote_closed:  # the rest of the request is not wanted
            self._out.append(frames.rst_stream(stream.id, ErrorCode.NO_ERROR))
        self._forget(stream)

    def _reset(self, stream: Stream, code: ErrorCode) -> None:
        self._out.append(frames.rst_stream(stream.id, code))
        self._forget(stream)

    def _forget(self, stream: Stream) -> None:
        stream.closed = True
        self._inflow.incomplete -= stream.deframer.held
        stream.deframer.clear()
        stream.pending.clear()
        self._streams.pop(stream.id, None)
        self._waiting.pop(stream.id, None)

    def _told(self) -> list[Event]:
        events, self._events = self._events, []
        return events


def _cut(pending: deque[bytes | memoryview], room: int) -> tuple[list[bytes | memoryview], int]:
    """Take at most `room` bytes off the front."""
    parts: list[bytes | memoryview] = []
    size = 0
    while pending and size < room:
        part = pending.popleft()
        left = room - size
        if len(part) > left:
            view = memoryview(part)
            part = view[:left]
            pending.appendleft(view[left:])
        parts.append(part)
        size += len(part)
    return parts, size
