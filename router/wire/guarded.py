"""What guards read of a request, and where each piece of it came from.

Guards read what could be an attack or a leak: everything that users and tools said since the assistant last spoke, the
reminders that clients add for users included, and an answer that the client began for the assistant. System text is the
operator's. The texts of turns stay as they are and stand in order with an empty line between them, so that a place in
the whole is a place in one turn.

Source: `rulings.md` 12b.
"""

from __future__ import annotations

import bisect
from typing import Final, NamedTuple

from router.wire.document import LONG_TEXT
from router.wire.longtext import Words
from router.wire.neutral import LlmRequest, fresh_turns
from router.wire.text import join, long_join

SEPARATOR: Final = "\n\n"


class Segment(NamedTuple):
    """The text of the turn of this number in `LlmRequest.turns`: from `start` to `end` (exclusive), in code points."""

    turn: int
    start: int
    end: int


class GuardText(NamedTuple):
    """One input of guards. `segments` are in order; between them stands `SEPARATOR`."""

    text: Words
    segments: tuple[Segment, ...]

    def places(self, start: int, end: int) -> tuple[Segment, ...]:
        """Where a span of the text is: in each turn that it touches, in code points of that turn's own text.

        What of it lies between turns is nowhere.
        """
        first = max(bisect.bisect_right(self.segments, start, key=lambda segment: segment.start) - 1, 0)
        found: list[Segment] = []
        for segment in self.segments[first:]:
            if segment.start >= end:
                break
            begin, finish = max(start, segment.start), min(end, segment.end)
            if begin < finish:
                found.append(Segment(segment.turn, begin - segment.start, finish - segment.start))
        return tuple(found)


def guard_text(request: LlmRequest, *, history: bool = False) -> GuardText:
    """What came since the assistant last spoke; with `history` also what users and tools said before.

    "" when there is nothing to read: then nothing is asked.
    """
    fresh = len(request.turns) - len(fresh_turns(request.turns))
    texts: list[Words] = []
    segments: list[Segment] = []
    at = 0
    for number, turn in enumerate(request.turns):
        earlier = number < fresh
        if turn.role == "system" or (earlier and (turn.role == "assistant" or not history)):
            continue
        if not turn.said or turn.said.isspace():
            continue
        segments.append(Segment(number, at, at + len(turn.said)))
        texts.append(turn.said)
        at += len(turn.said) + len(SEPARATOR)
    long = len(texts) > 1 and at >= LONG_TEXT
    return GuardText(long_join(texts, SEPARATOR) if long else join(texts, SEPARATOR), tuple(segments))
