"""HTTP/2 frames (RFC 9113, section 6): cutting them out of a byte stream, and writing them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import IntEnum
from struct import Struct
from typing import Final

PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
HEAD_BYTES: Final = 9
MAX_FRAME_BYTES: Final = 16 * 1024
"""The largest payload that we accept: the smallest limit that the protocol lets an endpoint have."""
MAX_WINDOW: Final = 2**31 - 1

# Plain numbers, because they are compared for every frame.
DATA: Final = 0
HEADERS: Final = 1
PRIORITY: Final = 2
RST_STREAM: Final = 3
SETTINGS: Final = 4
PUSH_PROMISE: Final = 5
PING: Final = 6
GOAWAY: Final = 7
WINDOW_UPDATE: Final = 8
CONTINUATION: Final = 9

END_STREAM: Final = 0x1
ACK: Final = 0x1
END_HEADERS: Final = 0x4
PADDED: Final = 0x8
WITH_PRIORITY: Final = 0x20


class Setting(IntEnum):
    """The settings that mean something here."""

    HEADER_TABLE_SIZE = 1
    ENABLE_PUSH = 2
    MAX_CONCURRENT_STREAMS = 3
    INITIAL_WINDOW_SIZE = 4
    MAX_FRAME_SIZE = 5
    MAX_HEADER_LIST_SIZE = 6


class ErrorCode(IntEnum):
    """Why a stream or a connection ends (RFC 9113, section 7)."""

    NO_ERROR = 0
    PROTOCOL_ERROR = 1
    INTERNAL_ERROR = 2
    FLOW_CONTROL_ERROR = 3
    STREAM_CLOSED = 5
    FRAME_SIZE_ERROR = 6
    REFUSED_STREAM = 7
    CANCEL = 8
    COMPRESSION_ERROR = 9
    ENHANCE_YOUR_CALM = 11


class ConnectionFault(Exception):
    """The peer broke a rule so that the connection cannot go on. `code` goes into GOAWAY."""

    def __init__(self, code: ErrorCode, why: str) -> None:
        super().__init__(why)
        self.code = code
        self.why = why


Frame = tuple[int, int, int, bytes]
"""Type, flags, stream, payload."""

_HEAD = Struct(">HBBBL")
_MESSAGE_HEAD = Struct(">HBBBLBL")
_SETTING = Struct(">HL")
_NUMBER = Struct(">L")
_TWO_NUMBERS = Struct(">LL")


class FrameReader:
    """Cuts a byte stream into frames; keeps at most one incomplete frame."""

    __slots__ = ("_rest", "_started")

    def __init__(self) -> None:
        self._rest = b""
        self._started = False

    def feed(self, data: bytes) -> Iterator[Frame]:
        """The frames that `data` completes. Raises ConnectionFault where it cannot go on."""
        if self._rest:
            data = self._rest + data
        at, end = 0, len(data)
        try:
            if not self._started:
                if not PREFACE.startswith(data[: len(PREFACE)]):
                    raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "no HTTP/2 connection preface")
                if end < len(PREFACE):
                    return
                self._started = True
                at = len(PREFACE)
            while end - at >= HEAD_BYTES:
                high, low, kind, flags, stream = _HEAD.unpack_from(data, at)
                length = high << 8 | low
                if length > MAX_FRAME_BYTES:
                    raise ConnectionFault(ErrorCode.FRAME_SIZE_ERROR, "a frame is larger than allowed")
                start = at + HEAD_BYTES
                if start + length > end:
                    return
                at = start + length
                yield kind, flags, stream & MAX_WINDOW, data[start:at]
        finally:
            self._rest = data[at:]


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    """One frame."""
    return head(len(payload), kind, flags, stream) + payload


def head(length: int, kind: int, flags: int, stream: int) -> bytes:
    """The nine bytes before a payload of `length` bytes."""
    return _HEAD.pack(length >> 8, length & 0xFF, kind, flags, stream)


def message_head(length: int, stream: int) -> bytes:
    """What stands before a gRPC message of `length` bytes that travels in one DATA frame: the frame's head, its own."""
    payload = length + 5
    return _MESSAGE_HEAD.pack(payload >> 8, payload & 0xFF, DATA, 0, stream, 0, length)


def settings(values: Iterable[tuple[Setting, int]]) -> bytes:
    """SETTINGS."""
    return frame(SETTINGS, 0, 0, b"".join(_SETTING.pack(name, value) for name, value in values))


SETTINGS_ACK: Final = frame(SETTINGS, ACK, 0)


def read_settings(payload: bytes) -> Iterator[tuple[int, int]]:
    """The pairs in a SETTINGS payload; raises ConnectionFault where a pair is cut off."""
    if len(payload) % _SETTING.size:
        raise ConnectionFault(ErrorCode.FRAME_SIZE_ERROR, "SETTINGS of an odd size")
    return _SETTING.iter_unpack(payload)


def ping(payload: bytes, flags: int = 0) -> bytes:
    """PING, or with ACK its answer."""
    return frame(PING, flags, 0, payload)


def goaway(last_stream: int, code: ErrorCode, why: str = "") -> bytes:
    """GOAWAY."""
    return frame(GOAWAY, 0, 0, _TWO_NUMBERS.pack(last_stream, code) + why.encode())


def rst_stream(stream: int, code: ErrorCode) -> bytes:
    """RST_STREAM."""
    return frame(RST_STREAM, 0, stream, _NUMBER.pack(code))


def window_update(stream: int, increment: int) -> bytes:
    """WINDOW_UPDATE; stream 0 is the connection."""
    return frame(WINDOW_UPDATE, 0, stream, _NUMBER.pack(increment))


def read_number(payload: bytes, mask: int = MAX_WINDOW) -> int:
    """The number that is the whole payload of RST_STREAM and WINDOW_UPDATE; raises ConnectionFault on another size."""
    if len(payload) != _NUMBER.size:
        raise ConnectionFault(ErrorCode.FRAME_SIZE_ERROR, "a payload of four bytes was due")
    number: int = _NUMBER.unpack(payload)[0]
    return number & mask


def unpad(payload: bytes) -> bytes:
    """A padded payload without its padding; raises ConnectionFault where the padding is longer than the frame."""
    if not payload or payload[0] >= len(payload):
        raise ConnectionFault(ErrorCode.PROTOCOL_ERROR, "padding is longer than its frame")
    return payload[1 : len(payload) - payload[0]]
