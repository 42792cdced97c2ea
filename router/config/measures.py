"""Selectors that read how backends have answered so far, compiled: part of a `Plan`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

MIN_ANSWERS = 5
"""Answers after which a candidate counts as measured."""
PERCENTILE = 95

OnNone = Literal["cheapest", "first", "fail"]
Factor = Literal["quality", "latency", "cost", "load"]
FACTORS: tuple[Factor, ...] = ("quality", "latency", "cost", "load")


@dataclass(frozen=True, slots=True)
class LatencyRule:
    """Which percentiles (1 to 100) of a model's times count: to the first byte of answers that stream, and of whole
    answers. None: not at all.
    """

    ttft: int | None = PERCENTILE
    response: int | None = PERCENTILE
    min_answers: int = MIN_ANSWERS


@dataclass(frozen=True, slots=True)
class Limits:
    """What a candidate must not exceed; None: no limit. Times in seconds, the price per million tokens, errors 0..1."""

    ttft_s: float | None = None
    response_s: float | None = None
    cost: float | None = None
    in_flight: int | None = None
    error_rate: float | None = None


@dataclass(frozen=True, slots=True)
class FactorRule:
    """Weights by factor, of those that count at all, and limits. `latency` says how times are read.

    `on_none` is what happens when no candidate keeps to the limits.
    """

    weights: tuple[tuple[Factor, float], ...]
    limits: Limits
    latency: LatencyRule
    on_none: OnNone


MeasureRule = LatencyRule | FactorRule


@dataclass(frozen=True, slots=True)
class Price:
    """Of a million tokens, in one currency; None where it is not known, which is not the same as free."""

    currency: str
    prompt: float | None
    completion: float | None

    @property
    def mean(self) -> float | None:
        """Of a million tokens, half of them read and half written."""
        return None if self.prompt is None or self.completion is None else (self.prompt + self.completion) / 2
