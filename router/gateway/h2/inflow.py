"""Flow control of what comes in: how much the peer may send, on each stream and in all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from router.gateway.h2 import frames
from router.gateway.h2.frames import ConnectionFault, ErrorCode
from router.gateway.h2.stream import Stream

DEFAULT_WINDOW: Final = 65_535


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one connection, in bytes unless they count.

    `message_bytes`: largest message. `streams`: streams at a time. `stream_window`, `connection_window`: how much may
    be on its way to us. `incomplete_bytes`: incomplete messages, beyond which streams wait for one another. `controls`:
    frames that carry nothing of a request, in one read. `output_bytes`: how much is handed out before it is written.
    """

    message_bytes: int
    streams: int = 1024
    stream_window: int = 1024 * 1024
    connection_window: int = 32 * 1024 * 1024
    incomplete_bytes: int = 512 * 1024 * 1024
    controls: int = 4096
    output_bytes: int = 256 * 1024


class Inflow:
    """Gives window back when half of it is used, so that most requests cost no WINDOW_UPDATE."""

    __slots__ = ("_fed", "_limits", "_starved", "_window", "_write", "incomplete")

    def __init__(self, limits: Limits, write: Callable[[bytes], None]) -> None:
        self._limits = limits
        self._write = write
        self._window = limits.connection_window
        self._starved: dict[int, Stream] = {}  # streams that get no window until others have their messages whole
        self._fed: Stream | None = None  # the one that gets it meanwhile
        self.incomplete = 0
        """Bytes of incomplete messages on all streams."""

    def arrived(self, size: int) -> None:
        """Count data of the connection, whatever stream it is of."""
        self._window -= size
        if self._window < 0:
            raise ConnectionFault(ErrorCode.FLOW_CONTROL_ERROR, "more data than the connection's window")
        if self._window * 2 < self._limits.connection_window:
            self._write(frames.window_update(0, self._limits.connection_window - self._window))
            self._window = self._limits.connection_window

    def credit(self, stream: Stream) -> None:
        """Give a stream new window if that is due; while too much is incomplete, to one stream at a time."""
        if stream.hold or stream.closed or stream.remote_closed or stream.uncredited * 2 <= self._limits.stream_window:
            return
        if self.incomplete > self._limits.incomplete_bytes and stream.deframer.held:
            if self._fed is None or not self._fed.deframer.held:
                self._fed = stream
            if self._fed is not stream:
                self._starved[stream.id] = stream
                return
        self._write(frames.window_update(stream.id, stream.uncredited))
        stream.receive_window += stream.uncredited
        stream.uncredited = 0

    def credit_starved(self) -> None:
        """Look again at the streams that got none."""
        if self._starved:
            starved, self._starved = self._starved, {}
            for stream in starved.values():
                self.credit(stream)
