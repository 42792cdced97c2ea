"""The scan of one input: what is read next, what is read again, and what a window's answers change.

The order of what is sent: second looks that may still end the scan; the twin of the window before; the next window of
the plan; and when all windows are done, the other second looks, nearest to its threshold first.

Sources: "Long inputs" (Guard rules read the whole input), `rulings.md` 11, 12d.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from router.config.sizes import ScanWindow
from router.questions import UnknownReason
from router.scan.asked import AskedQuestion, joined
from router.scan.evidence import Found, uncut
from router.scan.pace import ScanPace
from router.scan.rules import Outcome, WatchedQuestion, WatchedRule
from router.scan.runs import Runs, merged
from router.scan.text import Text
from router.scan.twin import Twins
from router.scan.units import BOTH, Part, Side, Unit
from router.scan.windows import RandomBelow, Window, cover, last_half, reread
from router.wire.longtext import Words

PLANNED: Final = 2
LATER: Final = 3


@dataclass(frozen=True, slots=True)
class Input:
    """A text to read whole at one deployment, and what to ask about it. `name` is the caller's.

    `normalise`: its normalised twin is read too, where there is one.
    """

    name: str
    deployment: str
    text: Words
    questions: tuple[WatchedQuestion, ...]
    normalise: bool = True


class _Second(NamedTuple):
    """A second look that waits; nearest first, then in the order of their coming."""

    gap: float
    number: int
    window: Window
    side: Side
    questions: frozenset[int]


class InputScan:
    """The state of one input. `in_flight` is kept by whoever sends."""

    def __init__(self, given: Input, sizes: ScanWindow, randbelow: RandomBelow) -> None:
        self.given = given
        self.sizes = sizes
        self.text = Text(given.text)
        self.twins = Twins(given.text if given.normalise else "", sizes.size)
        self.plan = cover(self.text, sizes, randbelow, self.twins.count)
        self.questions = [AskedQuestion(question, len(self.plan.windows)) for question in given.questions]
        self.pace = ScanPace()
        self.waited = False
        self.in_flight = 0
        self.run_length = 1
        self._everything = frozenset(range(len(self.questions)))
        self._at_once: deque[Unit] = deque()
        self._begun: deque[Unit] = deque()
        self._planned = deque(self._unit((number,)) for number in self.plan.order)
        self._again: deque[Unit] = deque()
        self._later: list[_Second] = []
        self._looked: set[tuple[int, int, Side, int]] = set()
        self._unfinished = len(self._planned)
        self._started = 0

    @property
    def alone(self) -> bool:
        """Whether the input is one window, which needs no call of its own."""
        return len(self.plan.windows) == 1

    @property
    def open(self) -> bool:
        """Whether anything is left to find out."""
        return any(question.open for question in self.questions) and (self.in_flight > 0 or self.offer() is not None)

    def offer(self) -> tuple[int, float] | None:
        """How urgent what it would send next is: a class, and a rank in it; None for nothing."""
        for kind, units in enumerate((self._at_once, self._begun, self._planned)):
            if self._next(units) is not None:
                return kind, self._started if kind == PLANNED else 0.0
        while not self._unfinished:
            if self._next(self._again) is not None:
                return LATER, 0.0
            if not self._later:
                break
            self._second_look(heapq.heappop(self._later), self._again)
        return None

    def take(self, kind: int) -> Part:
        """What `offer` offered, by its class."""
        units = (self._at_once, self._begun, self._planned, self._again)[kind]
        unit = units[0]
        part = unit.parts.pop()
        if kind == PLANNED:
            self._started += 1
        if not unit.parts:
            units.popleft()
        elif kind == PLANNED:
            self._begun.appendleft(units.popleft())
        return part

    def asked(self, part: Part) -> tuple[int, ...]:
        """The questions that are worth asking about a part now."""
        return tuple(sorted(number for number in part.unit.questions if self.questions[number].open))

    def answered(
        self, part: Part, length: int, answers: Mapping[int, Found | UnknownReason]
    ) -> list[tuple[AskedQuestion, WatchedRule]]:
        """Count the answers of a part of `length` code points, or why there is none. The rules that they decide."""
        unit, back = part.unit, part.origins(length, self.twins)
        decided: list[tuple[AskedQuestion, WatchedRule]] = []
        near: dict[int, float] = {}
        for number, told in answers.items():
            question = self.questions[number]
            if isinstance(told, UnknownReason):
                question.fail(told, again=not unit.planned)
                unit.unanswered.add(number)
                continue
            found = told
            if part.twin is None:
                found = uncut(told, self.text.text, unit.window.start.point, unit.window.end.point)
            unit.answered.add(number)
            rules = question.add(found, back)
            if rules:
                question.read(unit.planned)
                decided += ((question, rule) for rule in rules)
            gap = question.near_miss(found)
            if gap is not None and gap <= self.sizes.reread_margin:
                near[number] = gap
        if near:
            self._look_again(part, near)
        unit.open -= 1
        if not unit.open:
            self._finish(unit)
        return decided

    def outcomes(self, *, cut: bool) -> dict[str, Outcome]:
        """What every rule comes to. `cut` says that the request was refused before everything was read."""
        unread = UnknownReason.TIMEOUT
        if len(self.plan.order) < len(self.plan.windows) and not self._unfinished:
            unread = UnknownReason.INPUT_LIMIT
        found: dict[str, Outcome] = {}
        for number, question in enumerate(self.questions):
            waiting = [look.questions for look in self._later]
            waiting += [unit.questions for unit in (*self._at_once, *self._again)]
            looks = sum(number in questions for questions in waiting)
            for rule in question.question.rules:
                found[rule.key] = question.outcome(rule, self.plan.windows, unread, cut=cut, looks=looks)
        return found

    # Runs.

    def left(self) -> tuple[int, int]:
        """Calls and bytes of the windows that are still to be sent."""
        parts = [part for units in (self._begun, self._planned) for unit in units for part in unit.parts]
        return len(parts), sum(part.size for part in parts)

    def runs(self, length: int) -> Runs | None:
        """The middle windows still to be sent, in runs of at most `length` read as one; None if none can be."""
        last = len(self.plan.windows) - 1
        middle = [number for unit in self._planned for number in unit.planned if 0 < number < last]
        runs = merged(self.plan.windows, middle, length, self.sizes.max_size)
        if runs is None:
            return None
        calls = size = 0
        for run in runs:
            window = self._window(run)
            twins = self.twins.of(window, max(window.size, self.sizes.size)) if self.twins else ()
            calls += 1 + len(twins)
            size += window.size + sum(self.twins.size(twin) for twin in twins)
        return Runs(tuple(runs), length, calls, size)

    @property
    def longest_run(self) -> int:
        """The most windows that can be read as one."""
        return self.sizes.max_size // max(self.plan.size - self.sizes.overlap, 1) + 1

    def use(self, runs: Runs) -> None:
        """Read these in place of the windows that they stand for."""
        self.run_length = runs.length
        covered = {number for run in runs.runs for number in run}
        ends = [unit for unit in self._planned if covered.isdisjoint(unit.planned)]
        self._unfinished += len(runs.runs) + len(ends) - len(self._planned)
        self._planned = deque([*ends, *map(self._unit, runs.runs)])

    # Second looks.

    def _look_again(self, part: Part, near: Mapping[int, float]) -> None:
        unit, margin = part.unit, self.sizes.reread_margin
        if part.size > self.sizes.size:
            at_once = {number for number, gap in near.items() if gap <= margin / 2}
            later = near.keys() - at_once
            if at_once:
                self._second_look(_Second(0.0, 0, unit.window, part.side, frozenset(at_once)), self._at_once)
            if later:
                gap = min(near[number] for number in later)
                look = _Second(gap, len(self._later), unit.window, part.side, frozenset(later))
                heapq.heappush(self._later, look)
        elif unit.planned == (len(self.plan.windows) - 1,) and not self.alone:
            half = last_half(self.text, unit.window)
            self._queue(half, frozenset(near), part.side, self._at_once)

    def _second_look(self, look: _Second, units: deque[Unit]) -> None:
        """Queue what of a stretch has not been read at the configured size."""
        window, side = look.window, look.side
        keys = {number: (window.start.byte, window.end.byte, side, number) for number in look.questions}
        wanted = [n for n in look.questions if keys[n] not in self._looked and self.questions[n].undecided]
        self._looked.update(keys[number] for number in wanted)
        lo, hi = window.start.byte, window.end.byte
        stretches = joined(
            # Text across the edge of what has been read is read whole by one window.
            (max(start - self.sizes.overlap, lo), min(end + self.sizes.overlap, hi))
            for number in wanted
            for start, end in self.questions[number].not_read_small(window, side)
        )
        for start, end in stretches:
            part = Window(self.text.floor(start), self.text.ceil(end))
            for small in reread(self.text, part, self.sizes):
                self._queue(small, frozenset(wanted), side, units)

    def _queue(self, window: Window, questions: frozenset[int], side: Side, units: deque[Unit]) -> None:
        unit = Unit(window, (), questions, (side,))
        unit.split(self.twins, self.sizes.size)
        if unit.open:
            units.append(unit)

    # Units.

    def _window(self, planned: tuple[int, ...]) -> Window:
        return Window(self.plan.windows[planned[0]].start, self.plan.windows[planned[-1]].end)

    def _unit(self, planned: tuple[int, ...]) -> Unit:
        window = self._window(planned)
        unit = Unit(window, planned, self._everything, BOTH)
        unit.split(self.twins, max(window.size, self.sizes.size))
        return unit

    def _next(self, units: deque[Unit]) -> Unit | None:
        while units and not self._wanted(units[0]):
            self._drop(units.popleft())
        return units[0] if units else None

    def _wanted(self, unit: Unit) -> bool:
        if unit.planned:
            return any(self.questions[number].open for number in unit.questions)
        return any(self.questions[number].undecided for number in unit.questions)

    def _drop(self, unit: Unit) -> None:
        unit.open -= len(unit.parts)
        unit.parts.clear()
        if not unit.open:
            self._finish(unit)

    def _finish(self, unit: Unit) -> None:
        small = unit.window.size <= self.sizes.size
        for number in unit.answered - unit.unanswered:
            self.questions[number].read(unit.planned)
            if small:
                self.questions[number].read_small(unit.window, unit.sides)
        if unit.planned:
            self._unfinished -= 1
