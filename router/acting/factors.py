"""Quality, latency, cost and load weighed against each other, within limits. Pure.

Sources: `reference.md` 5.8 (multi_factor: min-max normalised factors, limits, on_no_candidates).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from router.acting.standing import (
    RESPONSE,
    TTFT,
    Candidate,
    Contestants,
    Part,
    Standing,
    Why,
    standing,
    to_measure,
    with_latency,
)
from router.config.measures import Factor, FactorRule

_HIGHER_IS_BETTER: Final = frozenset({"quality"})


def by_factors(rule: FactorRule, candidates: Sequence[Candidate]) -> Contestants:
    """What weighs most of the candidates that keep to the limits; else what `on_none` says, perhaps none."""
    standings = [replace(one, exceeds=_exceeds(rule, one, price)) for one, price in _timed(rule, candidates)]
    within = [index for index, one in enumerate(standings) if not one.exceeds]
    if not within:
        return _outside(rule, candidates, standings)
    scored = _weighed(rule, [candidates[index] for index in within], [standings[index] for index in within])
    for index, one in zip(within, scored, strict=True):
        standings[index] = one
    if any(factor == "latency" for factor, _ in rule.weights):
        probe = to_measure(scored)
        if probe is not None:
            return Contestants(tuple(standings), within[probe], Why.UNMEASURED)
    best = max(within, key=lambda index: (standings[index].score or 0.0, -index))
    return Contestants(tuple(standings), best, Why.BEST)


def _timed(rule: FactorRule, candidates: Sequence[Candidate]) -> list[tuple[Standing, float | None]]:
    return [(standing(rule.latency, one), _price(one)) for one in candidates]


def _exceeds(rule: FactorRule, one: Standing, price: float | None) -> tuple[str, ...]:
    """The limits that a candidate does not keep to; what is not known keeps to all."""
    limits = rule.limits
    in_flight = one.in_flight + 1 if limits.in_flight is not None else None  # with this request
    rate = one.error_rate if not one.unmeasured else None
    seen: Sequence[tuple[str, float | None, float | None]] = (
        ("max_ttft_ms", _known(one, TTFT), limits.ttft_s),
        ("max_response_ms", _known(one, RESPONSE), limits.response_s),
        ("max_cost_per_1m", price, limits.cost),
        ("max_inflight", in_flight, limits.in_flight),
        ("max_error_rate", rate, limits.error_rate),
    )
    return tuple(name for name, value, limit in seen if value is not None and limit is not None and value > limit)


def _known(one: Standing, name: str) -> float | None:
    return None if one.unmeasured else one.parts[name].value


def _weighed(rule: FactorRule, candidates: Sequence[Candidate], standings: Sequence[Standing]) -> list[Standing]:
    timed = with_latency(standings)
    values: Mapping[Factor, list[float | None]] = {
        "quality": [model.quality for model, _ in candidates],
        "latency": [one.score for one in timed],
        "cost": [_price(one) for one in candidates],
        "load": [float(one.in_flight) for one in standings],
    }
    whole = math.fsum(weight for _, weight in rule.weights)
    found = []
    for index, one in enumerate(timed):
        parts = {name: part._replace(weight=0.0) for name, part in one.parts.items()}  # latency is made of these
        for factor, weight in rule.weights:
            parts[factor] = Part(values[factor][index], _goodness(factor, values[factor], index), weight / whole)
        score = math.fsum(part.weight * (part.comes_to or 0.0) for part in parts.values())
        found.append(replace(one, parts=parts, score=score))
    return found


def _goodness(factor: Factor, values: Sequence[float | None], index: int) -> float:
    """From 0, the worst of all, to 1, the best. A value that is not known counts as worst."""
    value, known = values[index], [one for one in values if one is not None]
    if value is None:
        return 0.0
    low, high = min(known), max(known)
    if low == high:
        return 1.0
    share = (value - low) / (high - low)
    return share if factor in _HIGHER_IS_BETTER else 1.0 - share


def _outside(rule: FactorRule, candidates: Sequence[Candidate], standings: Sequence[Standing]) -> Contestants:
    match rule.on_none:
        case "fail":
            return Contestants(tuple(standings), None, Why.NONE)
        case "first":
            return Contestants(tuple(standings), 0, Why.FIRST)
        case "cheapest":
            prices = [_price(one) for one in candidates]
            cheapest = min(
                range(len(prices)), key=lambda index: math.inf if (found := prices[index]) is None else found
            )
            return Contestants(tuple(standings), cheapest, Why.CHEAPEST)


def _price(candidate: Candidate) -> float | None:
    price = candidate[0].price
    return price.mean if price is not None else None
