"""The normalised twin of an input: only where normalising changes the text, with some of what stands around it.

The text is looked at in blocks, once. Kept are the stretches that change, not what they become: that is made again when
a twin is sent, so that a twin never costs memory for the whole input. Stretches are shorter than a window, and windows
that overlap share those in their overlap.

Sources: `rulings.md` 12d. The twin itself is Pointsman's own (`router.scan.normalise`).
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from itertools import pairwise
from typing import Final, NamedTuple

from router.scan.normalise import Normalised, is_plain, normalise
from router.scan.normalise.escapes import inside_escape
from router.scan.text import joined, utf8_length
from router.scan.windows import Window
from router.wire.longtext import Words

_LONGEST_BLOCK: Final = 4096
_SHORTEST_BLOCK: Final = 16
_CONTEXT: Final = 128
_BETWEEN: Final = "\n"
_SPACES: Final = " \n\t\u3000"
_GLANCE: Final = 65_536
_SEAM: Final = 256
"""A glance at this much text, and a little more on both sides, may save a closer look at its blocks."""


class Twin(NamedTuple):
    """A part of the twin that one window holds: stretches by number, end exclusive."""

    first: int
    end: int


class Written(NamedTuple):
    """A twin as it is sent. `parts` are the places of its stretches in `text`, and where they came from."""

    text: str
    parts: tuple[tuple[int, int, Normalised], ...]

    def back(self, start: int, end: int) -> tuple[int, int]:
        """The stretch of the whole input, in code points, that holds what a span of this text was made of."""
        first = max(bisect_right(self.parts, start, key=lambda part: part[0]) - 1, 0)
        last = max(bisect_left(self.parts, end, key=lambda part: part[0]) - 1, first)
        return self._back(first, start, start + 1)[0], self._back(last, max(end - 1, start), end)[1]

    def _back(self, number: int, start: int, end: int) -> tuple[int, int]:
        at, origin, plain = self.parts[number]
        # The line between two stretches counts to the one before it.
        length = len(plain.text)
        begin, finish = plain.back(min(start - at, length - 1), min(end - at, length)) if length else (0, 0)
        return origin + begin, origin + finish


class Twins:
    """The stretches of a text that normalising changes."""

    __slots__ = ("_bytes", "_context", "_ends", "_open", "_size", "_starts", "_text")

    def __init__(self, text: Words, size: int) -> None:
        """`size` is that of the smallest windows, in bytes."""
        self._text = text
        self._size = size
        self._context = min(_CONTEXT, size // 32)
        self._starts = array("Q")
        self._ends = array("Q")
        self._bytes = array("Q")
        self._open = False
        block = min(max(size // 16, _SHORTEST_BLOCK), _LONGEST_BLOCK)
        start = 0
        while start < len(text):
            far = start + _GLANCE
            first = max(start - _SEAM, 0)
            near = text[first : far + _SEAM + block]
            if is_plain(near[: far + _SEAM - first]):
                self._pass(start, min(far, len(text)))
                start = far
            while start < min(far, len(text)):
                end = first + _block_end(near, start - first, start + block - first)
                if end <= start:
                    raise ValueError("a text says that it is longer than what it gives")
                self._look(start, end, near[start - first : end - first])
                start = end

    def __bool__(self) -> bool:
        return bool(self._starts)

    @property
    def stretches(self) -> list[tuple[int, int]]:
        """All of them, in code points."""
        return list(zip(self._starts, self._ends, strict=True))

    def of(self, window: Window, size: int) -> list[Twin]:
        """The parts of a window's twin, each of at most `size` bytes.

        Where the twin is cut in the middle of a changed text, the stretch before the cut is in both parts.
        """
        first = bisect_right(self._ends, window.start.point)
        end = bisect_left(self._starts, window.end.point)
        twins: list[Twin] = []
        length = 0
        for number in range(first, end):
            more = self._bytes[number] + self._separated(number)
            if number > first and length + more > size:
                twins.append(Twin(first, number))
                before = number - 1
                again = not self._separated(number) and self._bytes[before] + more <= size and before > first
                first, length = (before, self._bytes[before]) if again else (number, 0)
            length += more
        if first < end:
            twins.append(Twin(first, end))
        return twins

    def count(self, window: Window, size: int) -> int:
        """How many parts a window's twin has."""
        return len(self.of(window, size)) if self._starts else 0

    def size(self, twin: Twin) -> int:
        """Bytes of a part as it is sent."""
        return sum(self._bytes[number] + self._separated(number) for number in range(*twin))

    def write(self, twin: Twin) -> Written:
        """A part, made now."""
        pieces: list[str] = []
        parts: list[tuple[int, int, Normalised]] = []
        length = 0
        for number in range(*twin):
            if parts and self._separated(number):
                pieces.append(_BETWEEN)
                length += 1
            start = self._starts[number]
            plain = normalise(self._text[start : self._ends[number]])
            parts.append((length, start, plain))
            pieces.append(plain.text)
            length += len(plain.text)
        return Written("".join(pieces), tuple(parts))

    def _separated(self, number: int) -> int:
        """1 when something is left out before a stretch, and a line is begun there."""
        return int(number == 0 or self._ends[number - 1] != self._starts[number])

    @property
    def _last(self) -> int:
        """Where the stretches end so far."""
        return self._ends[-1] if self._ends else 0

    def _look(self, start: int, end: int, block: str) -> None:
        """Find what changes in a block. One that changes all over is a stretch as it is."""
        plain = normalise(block)
        near = [(start + first, start + last) for first, last in plain.changed]
        if not near or near[0][0] - start > self._context:
            self._pass(start, end)
        self._open = self._dense(near, start, end)
        if self._open and self._last <= start:
            self._add(max(start - self._context, self._last), start)
            self._append(start, end, plain.text)
            return
        for first, last in self._grouped(near):
            self._add(max(first, self._last), last)

    def _pass(self, start: int, end: int) -> None:
        """Nothing changes at the start of this: what stood before it, if it changed to its end, needs some of it."""
        if self._open:
            self._add(max(start, self._last), min(start + self._context, end))
        self._open = False

    def _dense(self, near: list[tuple[int, int]], start: int, end: int) -> bool:
        places = [start, *(place for stretch in near for place in stretch), end]
        return bool(near) and max(right - left for left, right in pairwise(places[::2])) <= 2 * self._context

    def _grouped(self, near: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
        """Changes with what stands around them, joined where they meet."""
        begin = finish = -1
        for first, last in near:
            if first - self._context > finish:
                if finish >= 0:
                    yield self._whole_words(begin, finish)
                begin = max(first - self._context, 0)
            finish = max(finish, min(last + self._context, len(self._text)))
        if finish >= 0:
            yield self._whole_words(begin, finish)

    def _whole_words(self, begin: int, finish: int) -> tuple[int, int]:
        """A stretch without what it has of a word that begins before it or ends after it."""
        most = self._context // 2
        cut, stop = begin, finish
        head, tail = self._text[max(begin - 1, 0) : begin + most], self._text[max(finish - most, 0) : finish + 1]
        while 0 < cut < begin + most and not head[cut - begin].isspace():
            cut += 1
        while len(self._text) > stop > finish - most and not tail[stop - finish - 1].isspace():
            stop -= 1
        return cut, stop

    def _add(self, begin: int, finish: int) -> None:
        """Keep a stretch; in two where it would not fit a window."""
        if begin >= finish:
            return
        text = normalise(self._text[begin:finish]).text
        if utf8_length(text) > self._size and finish - begin > 1:
            middle = (begin + finish) // 2
            self._add(begin, middle)
            self._add(middle, finish)
        else:
            self._append(begin, finish, text)

    def _append(self, begin: int, finish: int, text: str) -> None:
        self._starts.append(begin)
        self._ends.append(finish)
        self._bytes.append(utf8_length(text))


def _block_end(text: str, start: int, end: int) -> int:
    """A cut at or before `end`: after white space, between words rather than letters, else between characters."""
    if end >= len(text):
        return len(text)
    half = start + (end - start) // 2
    cut = last = _after_space(text, half, end)
    while cut > half:
        if not _alone(text, cut - 2) and not _alone(text, cut):
            return cut
        cut = _after_space(text, half, cut - 1)
    if last > half:
        return last
    for cut in range(end, max(end - 16, start + 1), -1):
        parts = joined(text, cut) or "%" in text[cut - 2 : cut] or inside_escape(text, cut)
        if not parts:
            return cut
    return end


def _after_space(text: str, start: int, end: int) -> int:
    """The last place at or before `end` that a space precedes; 0 if there is none after `start`."""
    return max(text.rfind(space, start, end) for space in _SPACES) + 1


def _alone(text: str, point: int) -> bool:
    """Whether a letter stands alone there, as in a word with spaces between its letters."""
    if not 0 <= point < len(text) or not text[point].isalnum():
        return False
    return not (point and text[point - 1].isalnum()) and not (point + 1 < len(text) and text[point + 1].isalnum())
