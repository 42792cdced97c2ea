"""What is sent: a window, and right after it its twin.

A unit is a stretch of the input that is read at one size: a planned window, several of them as one (a run), or part of
one that is read again. A part is one call of it. It was read for a question when every part was answered.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from router.scan.evidence import Back
from router.scan.text import Text
from router.scan.twin import Twin, Twins, Written
from router.scan.windows import Window


class Side(Enum):
    """Which of the two texts."""

    ORIGINAL = 0
    TWIN = 1


BOTH = (Side.ORIGINAL, Side.TWIN)


@dataclass(slots=True)
class Unit:
    """A stretch to read. `planned` are the numbers of the windows that it stands for; none when it is a second look.

    `questions` are asked, by number. `parts` are still to be sent, last one first; `open` counts those not yet done.
    `answered` are the questions to which some part has an answer, `unanswered` those to which some part has none.
    """

    window: Window
    planned: tuple[int, ...]
    questions: frozenset[int]
    sides: tuple[Side, ...]
    parts: list[Part] = field(default_factory=list)
    open: int = 0
    answered: set[int] = field(default_factory=set)
    unanswered: set[int] = field(default_factory=set)

    def split(self, twins: Twins, size: int) -> None:
        """Make its parts, of at most `size` bytes."""
        if Side.ORIGINAL in self.sides:
            self.parts.append(Part(self, None, self.window.size))
        if Side.TWIN in self.sides:
            self.parts += [Part(self, twin, twins.size(twin)) for twin in twins.of(self.window, size)]
        self.parts.reverse()
        self.open = len(self.parts)

    @property
    def left(self) -> int:
        """Bytes of the parts that are still to be sent."""
        return sum(part.size for part in self.parts)


class Part(NamedTuple):
    """One call of a unit. `size` is in bytes; without a twin it is the text as it came."""

    unit: Unit
    twin: Twin | None
    size: int

    @property
    def side(self) -> Side:
        """Which of the two texts it is of."""
        return Side.ORIGINAL if self.twin is None else Side.TWIN

    def written(self, text: Text, twins: Twins) -> str:
        """Its text, made now."""
        window = self.unit.window
        if self.twin is None:
            return text.text[window.start.point : window.end.point]
        return twins.write(self.twin).text

    def origins(self, length: int, twins: Twins) -> Back:
        """The way back from its text of `length` code points to the whole input. A span that points outside is cut.

        That of a twin is made when it is first gone, because few answers hold spans.
        """
        offset = self.unit.window.start.point
        written: list[Written] = []

        def back(start: int, end: int) -> tuple[int, int]:
            start = min(max(start, 0), max(length - 1, 0))
            end = min(max(end, start + 1), max(length, 1))
            if self.twin is None:
                return offset + start, offset + end
            if not written:
                written.append(twins.write(self.twin))
            return written[0].back(start, end)

        return back
