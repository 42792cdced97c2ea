"""How candidates stand by what was measured of them: which has answered fastest, and which must be tried first. Pure.

Sources: `reference.md` 5.8 (latency_aware: mean of per-percentile ratios to the best).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final, NamedTuple

from router.acting.latencies import Measured
from router.config.measures import LatencyRule
from router.config.plan import ProviderModel


class Why(StrEnum):
    """Why the picked one was picked. A closed set."""

    UNMEASURED = "unmeasured"
    BEST = "best_score"
    CHEAPEST = "cheapest_outside_limits"
    FIRST = "first_outside_limits"
    NONE = "none_within_limits"
    CONVERSATION = "conversation"


class Part(NamedTuple):
    """One factor of one candidate: what it is (seconds, price, ...), what that comes to, and its weight.

    Of latency_aware, `comes_to` is the ratio to the best, so 1 is best; of multi_factor it is 0 (worst) to 1 (best).
    """

    value: float | None
    comes_to: float | None
    weight: float


@dataclass(frozen=True, slots=True)
class Standing:
    """One candidate. `exceeds` names the limits that it does not keep to. No `score`: it was not weighed."""

    model: str
    asked: int
    in_flight: int
    error_rate: float
    unmeasured: bool
    parts: Mapping[str, Part]
    exceeds: tuple[str, ...] = ()
    score: float | None = None


@dataclass(frozen=True, slots=True)
class Contestants:
    """All candidates in their order, the index of the picked one (None: none may be), and why that one."""

    all: tuple[Standing, ...]
    picked: int | None
    why: Why


Candidate = tuple[ProviderModel, Measured]

TTFT: Final = "ttft_s"
RESPONSE: Final = "response_s"


def by_latency(rule: LatencyRule, candidates: Sequence[Candidate]) -> Contestants:
    """What has answered fastest, of at least one candidate."""
    standings = [standing(rule, one) for one in candidates]
    probe = to_measure(standings)
    scored = with_latency(standings)
    if probe is not None:
        return Contestants(tuple(scored), probe, Why.UNMEASURED)
    known = [index for index, one in enumerate(scored) if not one.unmeasured]
    return Contestants(tuple(scored), min(known, key=lambda index: _slowness(scored[index])), Why.BEST)


def _slowness(one: Standing) -> tuple[float, float]:
    """What is least for the fastest; among those that never answered well, for the one that fails least."""
    return one.score if one.score is not None else math.inf, one.error_rate


def standing(rule: LatencyRule, candidate: Candidate) -> Standing:
    """A candidate with the times that count, not compared yet."""
    model, now = candidate
    parts: dict[str, Part] = {}
    if rule.ttft is not None:
        parts[TTFT] = Part(now.ttft(rule.ttft), None, 1.0)
    if rule.response is not None:
        parts[RESPONSE] = Part(now.response(rule.response), None, 1.0)
    return Standing(model.name, now.asked, now.in_flight, now.error_rate, now.asked < rule.min_answers, parts)


def to_measure(standings: Sequence[Standing]) -> int | None:
    """Who is asked to be measured: one that is not, and has no request in flight, so that a model that nobody knows is
    tried by one request at a time. While nobody is measured, whoever has the fewest requests.
    """
    unmeasured = [index for index, one in enumerate(standings) if one.unmeasured]
    idle = [index for index in unmeasured if standings[index].in_flight == 0]
    if idle:
        return idle[0]
    if len(unmeasured) == len(standings):
        return min(unmeasured, key=lambda index: (standings[index].in_flight, standings[index].asked))
    return None


def with_latency(standings: Sequence[Standing]) -> list[Standing]:
    """The same with ratios to the best, and their mean as score. Errors count as if each were asked again."""
    best: dict[str, float] = {}
    for one in standings:
        for name, part in one.parts.items():
            if part.value is not None and not one.unmeasured:
                best[name] = min(part.value, best.get(name, math.inf))
    found = []
    for one in standings:
        parts = {
            name: part._replace(comes_to=part.value / best[name]) if part.value is not None and name in best else part
            for name, part in one.parts.items()
        }
        ratios = [part.comes_to for part in parts.values() if part.comes_to is not None]
        succeeds = 1.0 - one.error_rate
        score = math.fsum(ratios) / len(ratios) / succeeds if ratios and succeeds > 0.0 and not one.unmeasured else None
        found.append(replace(one, parts=parts, score=score))
    return found
