"""Projections: weighted sums of what the rules say, and the bands that a sum falls into.

An input that is unknown is not taken for zero. It may be anything in its range, so a sum is a range too, and a band is
known as soon as the whole range agrees about it. Ranges pass through sums that read other sums.

Rounding is safe: a sum adds its terms in one order for both ends, and rounding preserves order, so the sum of any
possible inputs lies between the ends. Sums are rounded to twelve decimals, so that 0.3 x 3 reaches a bound of 0.9.

Sources: `reference.md` 2.6 (projections), `rulings.md` 7.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from router.config.projections import BandMapping, Output, Score, ScoreInput
from router.deciding.bands import Region, contains, first_regions, region
from router.deciding.kleene import FALSE, UNKNOWN, ScoreKind, Truth, Verdict
from router.signals.reading import Reading
from router.signals.traits import Trait


class Range(NamedTuple):
    """The numbers that a value can be; both ends are equal when it is known."""

    low: float
    high: float

    @property
    def known(self) -> bool:
        """Whether there is just one."""
        return self.low == self.high


_DECIMALS = 12

UNIT: Final = Range(0.0, 1.0)
_ZERO: Final = Range(0.0, 0.0)


@dataclass(slots=True)
class Projected:
    """Scores by name and outputs by name, of one request. Filled in an order in which inputs come first."""

    scores: dict[str, Range]
    outputs: dict[str, Verdict]


Readings = Mapping[str, Reading]
_Term = Callable[[Readings, Projected], Range]
_Step = Callable[[Readings, Projected], None]


class Projections:
    """The projections of one recipe, compiled. Raises ValueError when inputs are missing or circular."""

    __slots__ = ("_steps", "sources")

    def __init__(self, scores: Sequence[Score], mappings: Sequence[BandMapping], rules: Mapping[str, Trait]) -> None:
        self._steps = tuple(_in_order(scores, mappings, rules))
        self.sources: Mapping[str, str] = {
            output.name: mapping.source for mapping in mappings for output in mapping.outputs
        }
        """The score that each output is a band of."""

    def evaluate(self, readings: Readings) -> Projected:
        """Every score and output for one request's readings."""
        projected = Projected({}, {})
        for step in self._steps:
            step(readings, projected)
        return projected


def confidence_in_band(bounds: Output, slope: float, value: float) -> float:
    """How far inside its band a score lies, 0.5 at the nearest bound towards 1 far from it."""
    limits = (bounds.bounds.gt, bounds.bounds.gte, bounds.bounds.lt, bounds.bounds.lte)
    distance = min((abs(value - limit) for limit in limits if limit is not None), default=1.0)
    return 1.0 / (1.0 + math.exp(-slope * distance))


def _in_order(scores: Sequence[Score], mappings: Sequence[BandMapping], rules: Mapping[str, Trait]) -> list[_Step]:
    """Scores and mappings interleaved: a score may read an output's confidence, so neither kind simply goes first."""
    steps: list[_Step] = []
    done_scores: set[str] = set()
    done_outputs: set[str] = set()
    todo: list[Score | BandMapping] = [*scores, *mappings]
    while todo:
        ready = [item for item in todo if _is_ready(item, done_scores, done_outputs)]
        if not ready:
            names = ", ".join(repr(item.name) for item in todo)
            raise ValueError(f"projections read each other in a circle, or read what is not defined: {names}")
        for item in ready:
            if isinstance(item, Score):
                steps.append(_score_step(item, rules))
                done_scores.add(item.name)
            else:
                steps.append(_mapping_step(item))
                done_outputs.update(output.name for output in item.outputs)
        todo = [item for item in todo if item not in ready]
    return steps


def _is_ready(item: Score | BandMapping, scores: set[str], outputs: set[str]) -> bool:
    if isinstance(item, BandMapping):
        return item.source in scores
    return all(
        term.name in (scores if term.source == "score" else outputs)
        for term in item.inputs
        if term.family == "projection"
    )


def _score_step(score: Score, rules: Mapping[str, Trait]) -> _Step:
    # A weight of zero removes its input altogether: even an unknown one changes nothing.
    terms = tuple((item.weight, _term(score, item, rules)) for item in score.inputs if item.weight != 0.0)
    name = score.name

    def step(readings: Readings, projected: Projected) -> None:
        low = high = 0.0
        for weight, term in terms:
            least, most = term(readings, projected)
            if weight < 0.0:
                least, most = most, least
            low += weight * least
            high += weight * most
        projected.scores[name] = Range(round(low, _DECIMALS), round(high, _DECIMALS))

    return step


def _term(score: Score, item: ScoreInput, rules: Mapping[str, Trait]) -> _Term:
    if item.family == "projection":
        return _projection_term(score, item)
    rule = rules.get(item.name)
    if rule is None:
        raise ValueError(f"score {score.name!r} reads the rule {item.name!r}, which the recipe does not ask")
    if item.source == "raw":
        return _raw_term(item, rule)
    if item.source == "confidence":
        return _confidence_term(item)
    if item.source == "binary":
        return _binary_term(item)
    raise ValueError(f"score {score.name!r} cannot read value_source {item.source!r} of the rule {item.name!r}")


def _projection_term(score: Score, item: ScoreInput) -> _Term:
    name = item.name
    if item.source == "score":
        return lambda _, projected: projected.scores[name]
    if item.source == "confidence":
        return lambda _, projected: _confidence_range(projected.outputs[name])
    if item.source == "binary":
        choose = _two_way(item)
        return lambda _, projected: choose(_as_bool(projected.outputs[name]))
    raise ValueError(f"score {score.name!r} cannot read value_source {item.source!r} of the projection {name!r}")


def _raw_term(item: ScoreInput, rule: Trait) -> _Term:
    name, key = item.name, item.key
    unknown = Range(0.0, rule.highest)

    def term(readings: Readings, _: Projected) -> Range:
        reading = readings.get(name)
        value = reading.value(key) if reading is not None else None
        return unknown if value is None else Range(value, value)

    return term


def _confidence_term(item: ScoreInput) -> _Term:
    name, key = item.name, item.key

    def term(readings: Readings, _: Projected) -> Range:
        reading = readings.get(name)
        matched = reading.matches(key) if reading is not None else None
        if reading is None or matched is None:
            return UNIT
        if not matched:
            return _ZERO
        confidence = reading.sureness(key)
        # A matched rule that measures no confidence, a score, counts as fully sure.
        return Range(1.0, 1.0) if confidence is None else Range(confidence, confidence)

    return term


def _binary_term(item: ScoreInput) -> _Term:
    name, key, choose = item.name, item.key, _two_way(item)

    def term(readings: Readings, _: Projected) -> Range:
        reading = readings.get(name)
        return choose(reading.matches(key) if reading is not None else None)

    return term


def _two_way(item: ScoreInput) -> Callable[[bool | None], Range]:
    ranges = {
        True: Range(item.match, item.match),
        False: Range(item.miss, item.miss),
        None: Range(min(item.match, item.miss), max(item.match, item.miss)),
    }
    return ranges.__getitem__


def _as_bool(verdict: Verdict) -> bool | None:
    return None if verdict.truth is Truth.UNKNOWN else verdict.truth is Truth.TRUE


def _confidence_range(verdict: Verdict) -> Range:
    if verdict.truth is Truth.UNKNOWN:
        return UNIT
    if verdict.truth is Truth.FALSE:
        return _ZERO
    # An output of an unknown score carries the least confidence it can have, and no kind.
    return Range(verdict.confidence, verdict.confidence if verdict.scored else 1.0)


def _mapping_step(mapping: BandMapping) -> _Step:
    bounds = [output.bounds for output in mapping.outputs]
    regions = first_regions(bounds) if mapping.method == "threshold_bands" else tuple(region(one) for one in bounds)
    outputs = tuple(zip(mapping.outputs, regions, strict=True))
    source, slope = mapping.source, mapping.slope

    def step(_: Readings, projected: Projected) -> None:
        score = projected.scores[source]
        for output, pieces in outputs:
            projected.outputs[output.name] = _output(output, pieces, slope, score)

    return step


def _output(output: Output, pieces: Region, slope: float, score: Range) -> Verdict:
    truth = contains(pieces, score.low, score.high)
    if truth is Truth.FALSE:
        return FALSE
    if truth is Truth.UNKNOWN:
        return UNKNOWN
    confidence = confidence_in_band(output, slope, score.low)
    if score.known:
        return Verdict(Truth.TRUE, confidence, ScoreKind.DISTANCE)
    # Between two bounds the distance to the nearest is least at an end of the range. The true confidence may be higher,
    # so it is reported as a floor and not ranked by.
    return Verdict(Truth.TRUE, min(confidence, confidence_in_band(output, slope, score.high)))
