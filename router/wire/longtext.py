"""A long text in no more memory than its UTF-8 takes.

Python holds a text in one, two or four bytes a character, by the widest: one emoji makes a text of ASCII four times as
large. Guards read long texts in windows and need no more than one of those at a time as a `str`.

The byte offset of every few thousand code points is noted, and an offset between two notes is found by decoding what
stands between them.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from typing import Final

STRIDE: Final = 4096
"""Code points between two notes."""
_ERRORS: Final = "surrogatepass"


class LongText:
    """Reads like a `str` where it is cut, measured or compared; `str()` makes one of it, which is kept. Immutable."""

    __slots__ = ("_data", "_points", "_whole", "marks")

    def __init__(self, pieces: Iterable[str], room: int = 0) -> None:
        """The pieces one after the other. `room` in bytes, if it is enough, saves moving it while it grows."""
        self.marks = array("Q")
        """The byte at which every stretch of `STRIDE` code points begins."""
        self._data = bytearray(room)
        self._points = written = 0
        self._whole: str | None = None
        for piece in pieces:
            at = 0
            while at < len(piece):
                taken = self._points % STRIDE
                if not taken:
                    self.marks.append(written)
                part = piece[at : at + STRIDE - taken]
                data = part.encode("utf-8", _ERRORS)
                self._data[written : written + len(data)] = data
                written += len(data)
                self._points += len(part)
                at += len(part)
        del self._data[written:]

    def __len__(self) -> int:
        return self._points

    def __getitem__(self, where: int | slice) -> str:
        if isinstance(where, int):
            point = where + self._points if where < 0 else where
            if not 0 <= point < self._points:
                raise IndexError("text index out of range")
            return self._cut(point, point + 1)
        start, end, step = where.indices(self._points)
        cut = self._cut(start, end)
        return cut if step == 1 else cut[::step] if step > 0 else str(self)[where]

    def __str__(self) -> str:
        if self._whole is None:
            self._whole = self._data.decode("utf-8", _ERRORS)
        return self._whole

    def __repr__(self) -> str:
        return f"LongText({self._points} code points)"

    def __eq__(self, other: object) -> bool:
        if isinstance(other, LongText):
            return self._data == other._data
        return len(other) == self._points and str(self) == other if isinstance(other, str) else NotImplemented

    def __hash__(self) -> int:
        return hash(str(self))

    @property
    def bytes(self) -> int:
        """Bytes of UTF-8, half surrogates counted as three."""
        return len(self._data)

    def isascii(self) -> bool:
        """As of a `str`."""
        return len(self._data) == self._points

    def isspace(self) -> bool:
        """As of a `str`."""
        return bool(self._points) and all(piece.isspace() for piece in self.pieces())

    def pieces(self, size: int = 16 * STRIDE) -> Iterable[str]:
        """The text in pieces of so many code points."""
        return (self._cut(start, min(start + size, self._points)) for start in range(0, self._points, size))

    def _cut(self, start: int, end: int) -> str:
        if start >= end:
            return ""
        return self._data[self._byte(start) : self._byte(end)].decode("utf-8", _ERRORS)

    def _byte(self, point: int) -> int:
        """The byte at which a code point begins."""
        mark, over = divmod(point, STRIDE)
        if self.isascii() or mark == len(self.marks):
            return min(point, self._points) if self.isascii() else len(self._data)
        start = self.marks[mark]
        if not over:
            return start
        end = self.marks[mark + 1] if mark + 1 < len(self.marks) else len(self._data)
        if end - start == min(STRIDE, self._points - mark * STRIDE):  # ASCII; the last stretch may be a shorter one
            return start + over
        return start + len(self._data[start:end].decode("utf-8", _ERRORS)[:over].encode("utf-8", _ERRORS))


Words = str | LongText
"""Text that somebody wrote, in either form."""


def pieces_of(text: Words) -> Iterable[str]:
    """A text in pieces."""
    return (text,) if isinstance(text, str) else text.pieces()


def byte_length(text: Words) -> int:
    """Bytes of UTF-8, half surrogates counted as three."""
    if isinstance(text, str):
        return len(text) if text.isascii() else len(text.encode("utf-8", _ERRORS))
    return text.bytes
