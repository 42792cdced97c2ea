"""HTTP as bytes: what no well-behaved client library sends, such as unusual paths and trailers after a body."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import h2.config
import h2.connection
import h2.events

TIMEOUT_S = 20.0


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back; header names in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


def http1(
    port: int,
    target: str,
    body: bytes = b"",
    *,
    method: str = "POST",
    headers: Iterable[tuple[str, str]] = (),
    trailers: Iterable[tuple[str, str]] | None = None,
) -> Answer:
    """One request over HTTP/1.1, its target spelled exactly as given; with `trailers` in chunks."""
    lines = [f"{method} {target} HTTP/1.1", "host: localhost", "connection: close"]
    lines += [f"{name}: {value}" for name, value in headers]
    if trailers is None:
        lines.append(f"content-length: {len(body)}")
        message = body
    else:
        lines.append("transfer-encoding: chunked")
        cut = max(1, len(body) // 2)
        chunks = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in (body[:cut], body[cut:]) if piece)
        message = chunks + b"0\r\n" + "".join(f"{name}: {value}\r\n" for name, value in trailers).encode() + b"\r\n"
    with socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_S) as connection:
        connection.sendall("\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + message)
        received = b""
        while piece := connection.recv(65536):
            received += piece
    head, _, content = received.partition(b"\r\n\r\n")
    first, *rest = head.decode("latin-1").split("\r\n")
    pairs = (line.partition(":") for line in rest)
    answered = {name.strip().lower(): value.strip() for name, _, value in pairs}
    if answered.get("transfer-encoding") == "chunked":
        content = _dechunked(content)
    return Answer(int(first.split()[1]), answered, content)


def _dechunked(content: bytes) -> bytes:
    whole = b""
    while content:
        size, _, content = content.partition(b"\r\n")
        length = int(size, 16)
        whole, content = whole + content[:length], content[length + 2 :]
    return whole


def http2(
    port: int,
    path: str,
    body: bytes,
    *,
    method: str = "POST",
    headers: Iterable[tuple[str, str]] = (),
    trailers: Iterable[tuple[str, str]] | None = None,
) -> Answer:
    """One request over HTTP/2 without TLS, of prior knowledge; `trailers` end the body instead of its last frame."""
    connection = h2.connection.H2Connection(h2.config.H2Configuration(header_encoding="utf-8"))
    with socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_S) as channel:
        connection.initiate_connection()
        stream = connection.get_next_available_stream_id()
        pseudo = [(":method", method), (":path", path), (":scheme", "http"), (":authority", "localhost")]
        connection.send_headers(stream, [*pseudo, *headers])
        exchange = _Exchange(channel, connection, stream)
        exchange.upload(body, end=trailers is None)
        if trailers is not None:
            connection.send_headers(stream, list(trailers), end_stream=True)
        return exchange.answer()


class _Exchange:
    """One stream of an HTTP/2 connection, which has no other."""

    def __init__(self, channel: socket.socket, connection: h2.connection.H2Connection, stream: int) -> None:
        self._channel, self._connection, self._stream = channel, connection, stream
        self._headers: dict[str, str] = {}
        self._body = b""
        self._over = False

    def upload(self, body: bytes, *, end: bool) -> None:
        """Send a body as flow control allows; less of it when the answer comes first."""
        while body and not self._over:
            room = min(
                self._connection.local_flow_control_window(self._stream), self._connection.max_outbound_frame_size
            )
            if room == 0:
                self._flush()
                self._read()
                continue
            piece, body = body[:room], body[room:]
            self._connection.send_data(self._stream, piece, end_stream=end and not body)
        self._flush()

    def answer(self) -> Answer:
        """Wait for the whole answer."""
        self._flush()
        while not self._over:
            self._read()
        return Answer(int(self._headers.pop(":status")), self._headers, self._body)

    def _flush(self) -> None:
        self._channel.sendall(self._connection.data_to_send())

    def _read(self) -> None:
        data = self._channel.recv(65536)
        assert data, "the connection ended before the answer"
        for event in self._connection.receive_data(data):
            if isinstance(event, h2.events.ResponseReceived):
                self._headers = {str(name): str(value) for name, value in event.headers or ()}
            elif isinstance(event, h2.events.DataReceived):
                self._body += event.data or b""
                self._connection.acknowledge_received_data(event.flow_controlled_length or 0, self._stream)
            elif isinstance(event, h2.events.StreamEnded):
                self._over = True
            assert not isinstance(event, h2.events.StreamReset | h2.events.ConnectionTerminated), event
        with contextlib.suppress(OSError):
            self._flush()
