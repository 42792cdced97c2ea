"""What a connection knows of one stream, and what happens to it."""

from __future__ import annotations

from collections import deque
from typing import Protocol

import msgspec

from router.gateway.h2.headers import Request
from router.gateway.h2.messages import Deframer


class Owner(Protocol):
    """Whoever acts on a stream."""

    def message(self, data: bytes) -> None:
        """Take a message of the peer's."""

    def ended(self) -> None:
        """Take the end of the peer's messages."""

    def reset(self) -> None:
        """The stream is gone: nothing can be sent on it any more."""

    def writable(self) -> None:
        """Everything that was sent has found room."""

    def fail(self, status: int, detail: str) -> None:
        """End the stream with an error, whatever is going on."""

    def release(self) -> None:
        """End the stream if it is open only to watch an answer."""


class Stream:
    """State of one stream. The connection alone changes it, but for `owner` and `hold`."""

    __slots__ = (
        "closed",
        "deframer",
        "end",
        "hold",
        "id",
        "owner",
        "pending",
        "receive_window",
        "remote_closed",
        "send_window",
        "started",
        "uncredited",
    )

    def __init__(self, id: int, send_window: int, receive_window: int, message_bytes: int) -> None:
        self.id = id
        self.send_window = send_window
        self.receive_window = receive_window
        self.uncredited = 0  # bytes received for which the peer has not been given new window
        self.deframer = Deframer(message_bytes)
        self.pending: deque[bytes | memoryview] = deque()  # framed messages for which there is no window
        self.end: bytes | None = None  # trailers that wait behind them
        self.started = False  # response headers are out
        self.remote_closed = False
        self.closed = False
        self.hold = False
        """Set by the owner while it takes no messages: the peer gets no new window meanwhile."""
        self.owner: Owner | None = None

    @property
    def writable(self) -> bool:
        """Whether what is sent now need not wait."""
        return not self.pending


class Opened(msgspec.Struct, frozen=True):
    """A stream begins."""

    stream: Stream
    request: Request


class Message(msgspec.Struct, frozen=True):
    """A whole gRPC message has come."""

    stream: Stream
    data: bytes


class Ended(msgspec.Struct, frozen=True):
    """The peer sends nothing more on the stream."""

    stream: Stream


class Gone(msgspec.Struct, frozen=True):
    """The stream is over without an end from us: the peer has reset it, or broken a rule."""

    stream: Stream


class Writable(msgspec.Struct, frozen=True):
    """What waited for window is sent."""

    stream: Stream


EventOfOwner = Message | Ended | Gone | Writable
Event = Opened | Message | Ended | Gone | Writable


def tell(owner: Owner, event: EventOfOwner) -> None:
    """Tell whoever acts on a stream what has happened to it."""
    if isinstance(event, Message):
        owner.message(event.data)
    elif isinstance(event, Ended):
        owner.ended()
    elif isinstance(event, Gone):
        owner.reset()
    else:
        owner.writable()
