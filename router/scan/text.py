"""A text as bytes and as code points: windows are measured in the one and cut in the other.

The text is never copied or encoded as a whole. A text of ASCII needs nothing; of any other, the byte offset of every
few thousand code points is noted once, and an offset between two notes is found by encoding that stretch.

JSON can spell half a surrogate pair, which plain UTF-8 cannot: it counts as the three bytes it would take.

Sources: "Long inputs" (sizes in bytes), `reference.md` 1.4 (span offsets in code points, converted to bytes once).
"""

from __future__ import annotations

import unicodedata
from array import array
from bisect import bisect_right
from collections.abc import Iterable
from typing import Final, NamedTuple

from router.wire.longtext import STRIDE, LongText, Words

_JOINER: Final = "\u200d"
_SKIN_TONES: Final = range(0x1F3FB, 0x1F400)


class Place(NamedTuple):
    """A boundary between two characters: how many code points, and how many bytes, stand before it."""

    point: int
    byte: int


def utf8_length(text: str) -> int:
    """Bytes of UTF-8, half surrogates counted as three."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def joined(text: str, point: int) -> bool:
    """Whether a reader would see the code points on both sides of `point` as one character."""
    if not 0 < point < len(text):
        return False
    left, right = text[point - 1], text[point]
    if right.isascii():
        return left == "\r" and right == "\n"
    return _JOINER in (left, right) or unicodedata.category(right).startswith("M") or ord(right) in _SKIN_TONES


class Text:
    """A text with a way from bytes to code points and back. Immutable."""

    __slots__ = ("_marks", "ascii", "bytes", "text")

    def __init__(self, text: Words) -> None:
        self.text = text
        self.ascii = text.isascii()
        self._marks = array("Q")
        total = 0
        if isinstance(text, LongText):
            self._marks, total = text.marks, text.bytes
        elif not self.ascii:
            for start in range(0, len(text), STRIDE):
                self._marks.append(total)
                total += utf8_length(text[start : start + STRIDE])
        self.bytes = len(text) if self.ascii else total

    @property
    def end(self) -> Place:
        """The end of the text."""
        return Place(len(self.text), self.bytes)

    def at_point(self, point: int) -> Place:
        """The place before a code point."""
        point = min(max(point, 0), len(self.text))
        if self.ascii:
            return Place(point, point)
        mark = min(point // STRIDE, len(self._marks) - 1)
        start = mark * STRIDE
        return Place(point, self._marks[mark] + utf8_length(self.text[start:point]))

    def floor(self, byte: int) -> Place:
        """The last place at or before a byte."""
        byte = min(max(byte, 0), self.bytes)
        if self.ascii:
            return Place(byte, byte)
        mark = bisect_right(self._marks, byte) - 1
        start = mark * STRIDE
        data = self.text[start : start + STRIDE].encode("utf-8", "surrogatepass")
        cut = byte - self._marks[mark]
        while 0 < cut < len(data) and data[cut] & 0xC0 == 0x80:
            cut -= 1
        points = len(data[:cut].decode("utf-8", "surrogatepass"))
        return Place(start + points, self._marks[mark] + cut)

    def ceil(self, byte: int) -> Place:
        """The first place at or after a byte."""
        place = self.floor(byte)
        return place if place.byte >= byte or place.point == len(self.text) else self.at_point(place.point + 1)

    def better_cut(self, place: Place, slack: int) -> Place:
        """A place for a cut at most `slack` bytes before `place`: after white space, else between two characters that a
        reader tells apart; `place` itself when there is neither.
        """
        fallback = place
        first = max(place.point - slack - 1, 0)
        near = self.text[first : place.point + 1]
        for point in range(place.point, max(place.point - slack, 0), -1):
            if near[point - 1 - first].isspace() and not joined(near, point - first):
                return self._within(point, place, slack) or fallback
            if fallback is place and not joined(near, point - first):
                fallback = self._within(point, place, slack) or place
        return fallback

    def bytes_of(self, spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
        """Spans of code points, end exclusive, as spans of bytes, in the order given."""
        return [(self.at_point(start).byte, self.at_point(end).byte) for start, end in spans]

    def _within(self, point: int, place: Place, slack: int) -> Place | None:
        back = utf8_length(self.text[point : place.point])
        return Place(point, place.byte - back) if back <= slack else None
