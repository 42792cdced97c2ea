"""gRPC's own framing inside a stream: one byte of flags, four of length, the message."""

from __future__ import annotations

from typing import Final

PREFIX_BYTES: Final = 5
_SMALL: Final = 4096


class TooLarge(Exception):
    """A message announces more bytes than allowed."""


class Compressed(Exception):
    """A message is compressed, which was never offered."""


class Deframer:
    """Joins the messages of one stream from whatever pieces they come in. Each byte is copied twice at most."""

    __slots__ = ("_due", "_limit", "_parts", "held")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._parts: list[bytes] = []  # of the prefix while `_due` is negative, else of the message
        self._due = -1
        self.held = 0
        """Bytes of an incomplete message."""

    @property
    def whole(self) -> bool:
        """Whether no message is incomplete."""
        return self._due < 0 and not self.held

    def feed(self, data: bytes) -> list[bytes]:
        """The messages that `data` completes. Raises TooLarge, Compressed; nothing may be fed after that."""
        size = len(data)
        if size >= PREFIX_BYTES and self._due < 0 and not self.held:  # nearly always one whole message
            length = self._length(data)
            if size == length + PREFIX_BYTES:
                return [data[PREFIX_BYTES:]]
        messages: list[bytes] = []
        at = 0
        while True:
            want = (PREFIX_BYTES if self._due < 0 else self._due) - self.held
            piece = data[at : at + want]
            at += len(piece)
            if len(piece) < want:
                self._keep(piece)
                return messages
            whole = b"".join((*self._parts, piece)) if self._parts else piece
            self._parts.clear()
            self.held = 0
            if self._due < 0:
                self._due = self._length(whole)
            else:
                self._due = -1
                messages.append(whole)

    def clear(self) -> None:
        """Let an incomplete message go."""
        self._parts.clear()
        self.held = 0

    def _keep(self, piece: bytes) -> None:
        self.held += len(piece)
        if self._parts and len(self._parts[-1]) + len(piece) <= _SMALL:
            self._parts[-1] += piece  # or a message in pieces of a byte would take fifty times its size
        elif piece:
            self._parts.append(piece)

    def _length(self, prefix: bytes) -> int:
        if prefix[0]:
            raise Compressed
        length = int.from_bytes(prefix[1:PREFIX_BYTES], "big")
        if length > self._limit:
            raise TooLarge
        return length
