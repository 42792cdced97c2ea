"""One question of a scan: what its windows have said, which rules it has decided, and what of the input it has read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Final

from router.questions import UnknownReason
from router.scan.evidence import Evidence, Found, shortfall
from router.scan.rules import Coverage, Outcome, WatchedQuestion, WatchedRule, outcome
from router.scan.units import BOTH, Side
from router.scan.windows import Window

UNANSWERABLE: Final = (UnknownReason.INVALID_ANSWER, UnknownReason.INPUT_LIMIT)
"""What a window's own text can bring about: a model that will not take it, or answers what is no answer."""

Stretch = tuple[int, int]
"""From a byte to a byte, end exclusive."""


class AskedQuestion:
    """The state of a question. `matched` holds the rules that a window has decided."""

    __slots__ = ("_failures", "_lost", "_lost_room", "_read", "_small", "evidence", "matched", "question")

    def __init__(self, question: WatchedQuestion, windows: int) -> None:
        self.question = question
        self.evidence = Evidence(question.type)
        self.matched: set[str] = set()
        self._read = bytearray(windows)
        self._small: dict[Side, list[Stretch]] = {side: [] for side in BOTH}
        self._failures: Counter[UnknownReason] = Counter()
        self._lost = 0
        self._lost_room = False

    @property
    def open(self) -> bool:
        """Whether a further window could tell it anything."""
        return any(rule.whole or rule.key not in self.matched for rule in self.question.rules)

    @property
    def undecided(self) -> bool:
        """Whether a second look could decide a rule."""
        return any(rule.threshold is not None and rule.key not in self.matched for rule in self.question.rules)

    def add(self, found: Found, back: Callable[[int, int], tuple[int, int]]) -> list[WatchedRule]:
        """Count an answer. The rules that it decides."""
        self.evidence.add(found, back)
        decided = [
            rule
            for rule in self.question.rules
            if rule.decisive and rule.key not in self.matched and rule.matches(found)
        ]
        self.matched.update(rule.key for rule in decided)
        return decided

    def fail(self, reason: UnknownReason, *, again: bool) -> None:
        """A window, or a second look (`again`), has no answer."""
        if again:
            self._lost += 1
            self._lost_room |= reason is UnknownReason.OVERLOADED
        else:
            self._failures[reason] += 1

    def near_miss(self, found: Found) -> float | None:
        """How far the answer is below the nearest threshold of a rule that is not decided; None if below none."""
        gaps = (
            shortfall(found, rule.labels, rule.threshold)
            for rule in self.question.rules
            if rule.threshold is not None and rule.key not in self.matched
        )
        return min((gap for gap in gaps if gap > 0), default=None)

    def read(self, windows: Iterable[int]) -> None:
        """These planned windows have been read."""
        for window in windows:
            self._read[window] = 1

    def read_small(self, window: Window, sides: Iterable[Side]) -> None:
        """A stretch has been read at the configured size, or below."""
        for side in sides:
            self._small[side].append((window.start.byte, window.end.byte))

    def not_read_small(self, window: Window, side: Side) -> list[Stretch]:
        """The stretches of a window that have not been read at the configured size."""
        return without((window.start.byte, window.end.byte), self._small[side])

    def outcome(
        self, rule: WatchedRule, windows: Sequence[Window], unread: UnknownReason, *, cut: bool, looks: int
    ) -> Outcome:
        """What a rule comes to, as far as things have come. `unread` is why a window that did not fail is unread.

        `cut` says that the request was refused before; `looks` counts second looks that there was no time for.
        """
        unanswerable = max(UNANSWERABLE, key=lambda reason: self._failures[reason])
        if self._failures[UnknownReason.OVERLOADED]:
            unread = UnknownReason.OVERLOADED
        elif self._failures[unanswerable]:
            unread = unanswerable
        elif self._failures:
            unread = self._failures.most_common(1)[0][0]
        coverage, matched = self._coverage(windows), rule.key in self.matched
        judged = not self._failures[unanswerable]
        found = outcome(rule, self.evidence.answer, coverage, unread, matched=matched, cut=cut, judged=judged)
        found = replace(found, rereads_left=0 if matched else looks + self._lost)
        if coverage.result == "full":
            # A rule is undecided before the second look that is due, so to have had no room for that is to be unread.
            lacking = self._lost_room and not (cut or matched)
            return replace(found, unread=UnknownReason.OVERLOADED) if lacking else found
        return replace(found, unread=UnknownReason.NOT_ASKED if cut or matched else unread)

    def _coverage(self, windows: Sequence[Window]) -> Coverage:
        whole = (0, windows[-1].end.byte)
        read = [(w.start.byte, w.end.byte) for w, is_read in zip(windows, self._read, strict=True) if is_read]
        unread = without(whole, read)
        left = sum(end - start for start, end in unread)
        return Coverage(sum(self._read), len(windows), whole[1] - left, whole[1], tuple(unread))


def without(whole: Stretch, parts: Iterable[Stretch]) -> list[Stretch]:
    """What is left of a stretch, in order."""
    at, end = whole
    left: list[Stretch] = []
    for start, stop in sorted(parts):
        if start > at:
            left.append((at, min(start, end)))
        at = max(at, stop)
        if at >= end:
            return left
    if at < end:
        left.append((at, end))
    return left


def joined(stretches: Iterable[Stretch]) -> list[Stretch]:
    """Stretches in order, those that meet as one."""
    found: list[Stretch] = []
    for start, end in sorted(stretches):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((start, end))
    return found
