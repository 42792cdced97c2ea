"""What a rule wants of a scan, and what comes of it.

A match in any window decides a rule. Without one, a rule of which all was read does not match; one of which only a part
was read is decided by its `on_unscanned`, and one of which nothing was read is unknown whatever that says. A window
that the model got and would not or could not answer is not one that time ran out for: an attack that makes it so would
hide behind the others, so `best_effort` leaves the rule unknown then.

Sources: "Long inputs" (Coverage and failures).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Literal

from router.questions import Answer, Levels, Predicate, QuestionType, UnknownReason, level_at
from router.scan.evidence import Found, matches

OnUnscanned = Literal["best_effort", "match", "no_match", "unknown"]


@dataclass(frozen=True, slots=True)
class WatchedRule:
    """A rule that waits for a scan.

    A noul matches by `predicate`; a set or span by one of `labels`, any of the question's if None, whose probability
    meets the predicate if there is one. `threshold` is where near misses are measured from (None: nothing is read again
    for this rule): the rule's own, or the calibrated one as it holds for an input of this length. With `whole`, windows
    are read for its question after it has matched too, because something wants all that is found (masking) or its
    exact value. `levels` correct both for the length of an input, before its first window is read (`at`).
    """

    key: str
    predicate: Predicate | None = None
    labels: frozenset[str] | None = None
    threshold: float | None = None
    on_unscanned: OnUnscanned = "best_effort"
    min_coverage: float | None = None
    whole: bool = False
    levels: Levels = ()

    def at(self, size: int) -> WatchedRule:
        """The rule for an input of so many bytes."""
        level = level_at(self.levels, size)
        return self if level is None else replace(self, threshold=level, predicate=Predicate(gte=level))

    @property
    def decisive(self) -> bool:
        """Whether a window can decide it: not where a higher probability elsewhere could undo a match."""
        return self.predicate is None or (self.predicate.lt is None and self.predicate.lte is None)

    def matches(self, answer: Found) -> bool:
        """Whether an answer is a match."""
        return matches(answer, self.labels, self.predicate)


@dataclass(frozen=True, slots=True)
class WatchedQuestion:
    """A question that is asked about every window, for the rules that share it. `key` is the caller's."""

    key: str
    type: QuestionType
    rules: tuple[WatchedRule, ...]

    def at(self, size: int) -> WatchedQuestion:
        """The question with its rules for an input of so many bytes."""
        if not any(rule.levels for rule in self.rules):
            return self
        return replace(self, rules=tuple(rule.at(size) for rule in self.rules))


class Result(StrEnum):
    """What a rule comes to."""

    MATCH = "match"
    NO_MATCH = "no_match"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Coverage:
    """How much of an input was read for a question: windows, and bytes; `unread` are the stretches left, in bytes."""

    windows: int
    of_windows: int
    bytes: int
    of_bytes: int
    unread: tuple[tuple[int, int], ...] = ()

    @property
    def share(self) -> float:
        """The share of the windows, 0 to 1."""
        return self.windows / self.of_windows

    @property
    def result(self) -> Literal["full", "partial", "none"]:
        """How metrics count it."""
        if self.windows == self.of_windows:
            return "full"
        return "partial" if self.windows else "none"

    def __str__(self) -> str:
        """As previews, records and traces show it."""
        return f"partial {self.windows}/{self.of_windows}" if self.result == "partial" else self.result


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a scan says of a rule.

    `answer` is what the windows say together, also where the rule was decided otherwise; None when none was read.
    `decided` is set when a window decided the rule before the rest was read, `by_policy` when `on_unscanned` or too
    little coverage did. `unread` is why windows were left unread, also where the rule is decided without them.
    `rereads_left` counts second looks at near misses that were not to be had.
    """

    result: Result
    answer: Answer | None
    coverage: Coverage
    reason: UnknownReason | None = None
    decided: bool = False
    by_policy: bool = False
    unread: UnknownReason | None = None
    rereads_left: int = 0


def outcome(
    rule: WatchedRule,
    answer: Found | None,
    coverage: Coverage,
    unread: UnknownReason,
    *,
    matched: bool,
    cut: bool,
    judged: bool = True,
) -> Outcome:
    """Decide a rule. `unread` is why something was left unread; `cut` says that the request was refused before.

    Not `judged`: the model had a window and gave no judgement of it, which no amount of other windows makes up for.
    """
    if matched:
        return Outcome(Result.MATCH, answer, coverage, decided=coverage.result != "full")
    full = coverage.windows == coverage.of_windows
    if cut and not full:
        return Outcome(Result.UNKNOWN, answer, coverage, UnknownReason.NOT_ASKED)
    if answer is None or not coverage.windows:
        return Outcome(Result.UNKNOWN, answer, coverage, unread)
    enough = judged and coverage.share >= (rule.min_coverage or 0.0)
    if full or (rule.on_unscanned == "best_effort" and enough):
        return Outcome(Result.MATCH if rule.matches(answer) else Result.NO_MATCH, answer, coverage)
    if rule.on_unscanned in ("best_effort", "unknown"):
        return Outcome(Result.UNKNOWN, answer, coverage, unread, by_policy=True)
    return Outcome(Result(rule.on_unscanned), answer, coverage, by_policy=True)
