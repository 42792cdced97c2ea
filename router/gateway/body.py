"""Collects a request body up to a limit."""

from __future__ import annotations


class BodyBuffer:
    """The pieces of one body, at most `limit` bytes of them."""

    __slots__ = ("_limit", "_pieces", "_size")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._pieces: list[bytes] = []
        self._size = 0

    def announced_too_large(self, content_length: str | None) -> bool:
        """Whether a `content-length` says that the body will not fit. What is no number says nothing."""
        if content_length is None or not (content_length.isascii() and content_length.isdigit()):
            return False
        if len(content_length) < 7:
            return int(content_length) > self._limit
        limit, length = str(self._limit), content_length.lstrip("0")
        return (len(length), length) > (len(limit), limit)  # as text, because int() refuses absurdly long numbers

    def add(self, piece: bytes) -> bool:
        """Keep `piece`; False, with everything let go, when the body has outgrown the limit."""
        self._size += len(piece)
        if self._size > self._limit:
            self._pieces.clear()
            return False
        self._pieces.append(piece)
        return True

    def take(self) -> bytes:
        """The whole body, which is kept no longer. A body that came in one piece is not copied."""
        pieces, self._pieces = self._pieces, []
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def clear(self) -> None:
        """Let everything go."""
        self._pieces.clear()
