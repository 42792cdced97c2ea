"""Partitions: at most one member matches, and an unknown member makes every match beside it uncertain."""

from __future__ import annotations

import math

import pytest

from router.config.projections import Partition
from router.deciding.partitions import Partitions
from router.questions import QuestionType, UnknownReason
from router.signals.reading import Reading

MEMBERS = ("domain:a", "domain:b", "domain:c")


def hit(confidence: float) -> Reading:
    return Reading(QuestionType.CHOICE, True, confidence, {"": confidence}, {"x": confidence}, "x")


MISS = Reading(QuestionType.CHOICE, False, None, {"": 0.2})
LATE = Reading(QuestionType.CHOICE, None, reason=UnknownReason.TIMEOUT)


def settle(a: Reading | None, b: Reading | None, c: Reading | None, temperature: float | None = None) -> list[Reading]:
    partitions = Partitions([Partition("p", MEMBERS, "domain:c", temperature)])
    given = {name: one for name, one in zip(MEMBERS, (a, b, c), strict=True) if one is not None}
    settled = partitions.apply(given)
    assert settled.keys() == given.keys()
    return [settled[name] for name in MEMBERS if name in settled]


def test_the_surest_keeps_its_match() -> None:
    a, b, c = settle(hit(0.4), hit(0.9), MISS)
    assert (a.matched, b.matched, c.matched) == (False, True, False)
    assert (a.confidence, a.labels, b.confidence) == (None, {}, 0.9)
    assert a.values == {"": 0.4}


def test_the_first_of_equals_wins() -> None:
    assert [one.matched for one in settle(MISS, hit(0.5), hit(0.5))] == [False, True, False]


def test_the_default_matches_when_nothing_does_and_has_no_confidence() -> None:
    a, b, c = settle(MISS, MISS, MISS)
    assert (a.matched, b.matched, c.matched, c.confidence) == (False, False, True, None)


def test_one_match_stays_as_it_is() -> None:
    assert settle(hit(0.3), MISS, MISS, 0.1) == [hit(0.3), MISS, MISS]


def test_softmax_replaces_the_winners_confidence() -> None:
    _, b, _ = settle(hit(0.4), hit(0.6), MISS, 0.1)
    assert b.confidence == pytest.approx(1 / (1 + math.exp(-2)))
    assert b.labels == {"x": b.confidence}


@pytest.mark.parametrize("other", [LATE, None])
def test_beside_an_unknown_no_match_is_certain(other: Reading | None) -> None:
    assert [one.matched for one in settle(hit(0.9), other, MISS)] == [None, *[None] * (other is not None), False]
    assert settle(MISS, other, MISS)[-1].matched is None


def test_no_partition_changes_nothing() -> None:
    given = {"a": hit(0.5)}
    assert Partitions([]).apply(given) is given
