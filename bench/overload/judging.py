"""What a flood came to, held against an idle system and against what the witness saw."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from bench.lib.load import LoadError
from bench.overload.client import Answered, Verdict
from bench.overload.witness import digest
from router.asking.overload.gate import FIRST_STEP_S, LEAST_OF_STEP


@dataclass(frozen=True, slots=True)
class Judged:
    """One flood. `read` are requests read and forwarded or rightly refused, `goodput` so many a second.

    `wrong_refusals` were refused though an idle system forwards them, and `attacks_forwarded` came to the backend
    though it refuses them. `unchecked_forwards` came to the backend although the model had answered nothing about them.
    `first_refused` and `again_refused` are calls to the model a second that it had no room for: of new requests, and of
    those that waited; `again_vs_rule` is the most of the latter in a second, to what the gate's rule allows: one for an
    answer, and one for a step. `most_calls` is the most that any request made.
    """

    requests: int
    read: int
    retry: int
    wrong_refusals: int
    attacks_forwarded: int
    unchecked_forwards: int
    other: int
    goodput: float
    median_s: float
    first_refused: float
    again_refused: float
    again_vs_rule: float
    most_calls: int
    calls: int


def verdicts(answered: Sequence[Answered]) -> Mapping[int, Verdict]:
    """What an idle system says of each text. Raises LoadError when it says nothing."""
    found = {each.text.number: each.verdict for each in answered}
    if strange := Counter(found.values()).keys() - {"forwarded", "refused"}:
        raise LoadError(f"an idle system answered {', '.join(strange)}")
    return found


def judge(
    answered: Sequence[Answered], seen: Mapping[str, Any], idle: Mapping[int, Verdict], window: tuple[float, float]
) -> Judged:
    """Judge a flood; goodput counts what was answered in a window of it."""
    of = {digest(each.sent): each for each in answered}
    read, forwarded = seen["read"], {text for text, _ in seen["forwarded"]}
    right = [
        each
        for text, each in of.items()
        if each.verdict == idle[each.text.number] and (each.verdict == "forwarded" or text in read)
    ]
    began, ended = window
    inside = sum(began <= each.at < ended for each in right)
    again = seen["refused"]["again"]
    return Judged(
        requests=len(answered),
        read=len(right),
        retry=sum(each.verdict == "retry" for each in answered),
        wrong_refusals=sum(each.verdict == "refused" and idle[each.text.number] == "forwarded" for each in answered),
        attacks_forwarded=sum(idle[of[text].text.number] == "refused" for text in forwarded),
        unchecked_forwards=sum(text not in read for text in forwarded),
        other=sum(each.verdict == "other" for each in answered),
        goodput=inside / (ended - began),
        median_s=median(each.seconds for each in answered),
        first_refused=len(seen["refused"]["first"]) / ended,
        again_refused=len(again) / ended,
        again_vs_rule=_against_the_rule(again, seen["answered"]),
        # What normalising changes in a text is read besides, and may be the same for all its copies.
        most_calls=max((calls for text, calls in seen["calls"].items() if text in of), default=0),
        calls=sum(seen["calls"].values()),
    )


def _against_the_rule(again: Sequence[float], answered: Sequence[float]) -> float:
    """The worst second: calls made again and refused, to the answers of that second (and of the moment before, whose
    news was on its way) and the steps in it at their shortest."""
    shortest = FIRST_STEP_S * LEAST_OF_STEP

    def within(times: Sequence[float], since: float, until: float) -> int:
        return bisect_left(times, until) - bisect_left(times, since)

    found = [within(again, at, at + 1) / (within(answered, at - shortest, at + 1) + 1 / shortest) for at in again]
    return max(found, default=0.0)
