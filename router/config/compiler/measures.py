"""Selectors that read how backends have answered: what they read, and whether the configuration says enough for it."""

from __future__ import annotations

from collections.abc import Sequence

from router.config.compiler.context import Context
from router.config.measures import FACTORS, PERCENTILE, Factor, FactorRule, LatencyRule, Limits, OnNone
from router.config.model.decisions import Algorithm
from router.config.model.selectors import FactorWeights, LatencyAwareSelector, MultiFactorSelector, Objectives
from router.config.plan import ProviderModel

DEFAULT_WEIGHT = 0.25


def latency_rule(settings: LatencyAwareSelector | None) -> LatencyRule:
    """Which times count: what is written, and both where nothing is."""
    if settings is None:
        return LatencyRule()
    ttft, response = settings.ttft_percentile, settings.response_percentile
    if ttft is None and response is None:
        ttft = response = PERCENTILE
    return LatencyRule(ttft, response, settings.min_answers)


def factor_rule(context: Context, algorithm: Algorithm, models: Sequence[ProviderModel]) -> FactorRule:
    """What is weighed between `models`; mistakes are reported.

    A factor of which some candidate says nothing counts for none, unless its weight is written: then that is an error.
    """
    settings = algorithm.multi_factor or MultiFactorSelector.model_validate({})
    missing = {"quality": _without_quality(models), "cost": _without_price(models)}
    if not missing["cost"]:
        _check_currencies(context, algorithm, models)
    percentile = settings.latency_percentile
    return FactorRule(
        _weights(context, settings, missing),
        _limits(context, settings.slo, missing["cost"]),
        LatencyRule(percentile, percentile, settings.min_answers),
        _on_none(context, settings, missing["cost"]),
    )


def _without_quality(models: Sequence[ProviderModel]) -> list[str]:
    return [model.name for model in models if model.quality is None]


def _without_price(models: Sequence[ProviderModel]) -> list[str]:
    return [model.name for model in models if model.price is None or model.price.mean is None]


def _weights(
    context: Context, settings: MultiFactorSelector, missing: dict[str, list[str]]
) -> tuple[tuple[Factor, float], ...]:
    written = settings.weights or FactorWeights.model_validate({})
    found: list[tuple[Factor, float]] = []
    for factor in FACTORS:
        weight = getattr(written, factor)
        if weight and missing.get(factor):
            _say_missing(context, written, factor, missing[factor])
        if weight is None:
            weight = 0.0 if missing.get(factor) else DEFAULT_WEIGHT
        if weight:
            found.append((factor, weight))
    if not found and not context.is_cut(settings.at()):
        context.error(written.at(), "weighs nothing", "give one factor a weight above 0", key=True)
    return tuple(found)


def _limits(context: Context, slo: Objectives | None, unpriced: list[str]) -> Limits:
    if slo is None:
        return Limits()
    if slo.max_cost_per_1m is not None and unpriced:
        _say_missing(context, slo, "max_cost_per_1m", unpriced)
    return Limits(
        _seconds(slo.max_ttft_ms),
        _seconds(slo.max_response_ms),
        slo.max_cost_per_1m,
        slo.max_inflight,
        slo.max_error_rate,
    )


def _on_none(context: Context, settings: MultiFactorSelector, unpriced: list[str]) -> OnNone:
    if settings.on_no_candidates is None:
        return "first" if unpriced else "cheapest"
    if settings.on_no_candidates == "cheapest" and unpriced:
        _say_missing(context, settings, "on_no_candidates", unpriced)
    return settings.on_no_candidates


def _say_missing(
    context: Context, block: FactorWeights | Objectives | MultiFactorSelector, key: str, names: list[str]
) -> None:
    needed = "quality_score" if key == "quality" else "pricing {prompt_per_1m, completion_per_1m}"
    shown = ", ".join(context.shown(name) for name in names)
    context.error(block.at(key), f"{key} needs {needed} of every candidate; without: {shown}", "add it there", key=True)


def _check_currencies(context: Context, algorithm: Algorithm, models: Sequence[ProviderModel]) -> None:
    currencies = sorted({model.price.currency for model in models if model.price is not None})
    if len(currencies) > 1:
        message = f"prices in {' and '.join(currencies)} cannot be compared"
        context.error(algorithm.at("type"), message, "write pricing of the candidates in one currency")


def _seconds(milliseconds: int | None) -> float | None:
    return None if milliseconds is None else milliseconds / 1000
