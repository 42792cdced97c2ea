"""A client's side of an HTTP/2 connection for tests: bytes to send, and what came back, frame by frame."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hpack import Decoder, Encoder

from router.gateway.h2 import frames
from router.gateway.h2.connection import Connection
from router.gateway.h2.frames import ErrorCode, Frame, Setting
from router.gateway.h2.inflow import Limits
from router.gateway.h2.stream import Ended, Event, Gone, Message, Opened
from router.gateway.transport import SERVICE

PROCESS = f"/{SERVICE}/Process"
LIMITS = Limits(message_bytes=100_000)
HELLO = frames.PREFACE + frames.settings(())


def cut(data: bytes) -> list[Frame]:
    """The frames in `data`, which must be whole."""
    found: list[Frame] = []
    while data:
        length, kind, flags = int.from_bytes(data[:3], "big"), data[3], data[4]
        assert len(data) >= 9 + length
        found.append((kind, flags, int.from_bytes(data[5:9], "big"), data[9 : 9 + length]))
        data = data[9 + length :]
    return found


def fields(path: str = PROCESS, **changes: str | None) -> list[tuple[str, str]]:
    """A gRPC request's headers. `changes` replace by name, with `_` for `-` and `p_` for `:`; None leaves out."""
    found: dict[str, str | None] = {
        ":method": "POST",
        ":scheme": "http",
        ":path": path,
        ":authority": "router",
        "te": "trailers",
        "content-type": "application/grpc",
    }
    for name, value in changes.items():
        found[f":{name[2:]}" if name.startswith("p_") else name.replace("_", "-")] = value
    return [(name, value) for name, value in found.items() if value is not None]


def block(headers: Iterable[tuple[str, str]]) -> bytes:
    """A header block that needs no table."""
    encoder = Encoder()
    encoder.header_table_size = 0
    encoder.table_size_changes = []
    return encoder.encode([(name, value) for name, value in headers])


def open_stream(
    number: int, headers: Iterable[tuple[str, str]] | None = None, flags: int = frames.END_HEADERS
) -> bytes:
    return frames.frame(frames.HEADERS, flags, number, block(fields() if headers is None else headers))


def data(number: int, payload: bytes, *, end: bool = False) -> bytes:
    """DATA, in as many frames as it takes."""
    pieces = [payload[at : at + 16384] for at in range(0, len(payload), 16384)] or [b""]
    return b"".join(
        frames.frame(frames.DATA, frames.END_STREAM if end and index == len(pieces) - 1 else 0, number, piece)
        for index, piece in enumerate(pieces)
    )


def message(payload: bytes) -> bytes:
    """gRPC's framing."""
    return b"\x00" + len(payload).to_bytes(4, "big") + payload


class Peer:
    """A connection under test and what a client knows of it."""

    def __init__(self, limits: Limits = LIMITS, settings: Sequence[tuple[Setting, int]] = ()) -> None:
        self.connection = Connection(limits)
        self.decoder = Decoder()
        self.greeting = cut(self.connection.take())
        self.feed(frames.PREFACE + frames.settings(settings) + frames.SETTINGS_ACK)
        # From now on the encoder keeps no table, as it was asked to.
        self.feed(frames.frame(frames.HEADERS, 0x5, 1, b"\x20" + block(fields())))
        self.feed(frames.rst_stream(1, ErrorCode.CANCEL))
        self.out()

    def feed(self, data: bytes) -> list[Event]:
        return self.connection.receive(data)

    def out(self) -> list[Frame]:
        """What is to be written, moving what waits for it to be written."""
        written = b""
        while piece := self.connection.take():
            written += piece
            self.connection.resume()
        return cut(written)

    def headers(self, payload: bytes) -> dict[str, str]:
        return dict(self.decoder.decode(payload))  # type: ignore[arg-type]


def words(events: Iterable[Event]) -> list[str]:
    """Events in short."""
    found: list[str] = []
    for event in events:
        if isinstance(event, Opened):
            found.append(f"open {event.stream.id} {event.request.path.decode()}")
        elif isinstance(event, Message):
            found.append(f"message {event.stream.id} {event.data!r}")
        elif isinstance(event, Ended):
            found.append(f"ended {event.stream.id}")
        elif isinstance(event, Gone):
            found.append(f"gone {event.stream.id}")
        else:
            found.append(f"writable {event.stream.id}")
    return found


def goaway(found: Iterable[Frame]) -> ErrorCode | None:
    """The code of the last GOAWAY."""
    codes = [ErrorCode(int.from_bytes(payload[4:8], "big")) for kind, _, _, payload in found if kind == frames.GOAWAY]
    return codes[-1] if codes else None


def resets(found: Iterable[Frame]) -> dict[int, ErrorCode]:
    """The streams that were reset, and why."""
    return {
        number: ErrorCode(int.from_bytes(payload, "big"))
        for kind, _, number, payload in found
        if kind == frames.RST_STREAM
    }
