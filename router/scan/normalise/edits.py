"""One pass of edits over a text, and the way back from the edited text to the original.

A span of the edited text goes back to the smallest stretch of the original that holds everything it was made of.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Final, NamedTuple

_CLOSE: Final = 16


class Edit(NamedTuple):
    """Code points `start` to `end` become `text`.

    Every `taken` code points became `given`, in order, so that a part of the text goes back to a part of the stretch;
    with 0 it goes back to all of it.
    """

    start: int
    end: int
    text: str
    taken: int = 0
    given: int = 0


class Step:
    """Edits that do not overlap, in order, applied to one text."""

    __slots__ = ("_edits", "_starts", "text")

    def __init__(self, text: str, edits: Sequence[Edit]) -> None:
        self._edits = edits
        self._starts: list[int] = []
        pieces: list[str] = []
        before = length = 0
        for edit in edits:
            pieces += (text[before : edit.start], edit.text)
            length += edit.start - before
            self._starts.append(length)
            length += len(edit.text)
            before = edit.end
        pieces.append(text[before:])
        self.text = "".join(pieces)

    @property
    def changed(self) -> list[tuple[int, int]]:
        """The stretches of the original that are written otherwise, those close to each other as one."""
        found: list[tuple[int, int]] = []
        begin = finish = -_CLOSE
        for edit in self._edits:
            if edit.start - finish >= _CLOSE:
                if finish >= 0:
                    found.append((begin, finish))
                begin = edit.start
            finish = edit.end
        if finish >= 0:
            found.append((begin, finish))
        return found

    def back(self, start: int, end: int) -> tuple[int, int]:
        """Where a span came from, end exclusive. An empty span comes from nothing, at the place of its start."""
        first, last = self._origin(start)
        if start >= end:
            return first, first
        return first, max(last, self._origin(end - 1)[1])

    def _origin(self, point: int) -> tuple[int, int]:
        number = bisect_right(self._starts, point) - 1
        if number < 0:
            return point, point + 1
        edit, inside = self._edits[number], point - self._starts[number]
        if inside >= len(edit.text):
            at = edit.end + inside - len(edit.text)
            return at, at + 1
        if not edit.given:
            return edit.start, edit.end
        at = edit.start + inside // edit.given * edit.taken
        return min(at, edit.end - 1), min(at + edit.taken, edit.end)
