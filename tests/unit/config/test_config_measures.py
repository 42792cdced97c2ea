"""Selectors that read what was measured of backends: what is written, what holds where nothing is, and mistakes."""

from __future__ import annotations

import pytest

from router.config.measures import FactorRule, LatencyRule, Limits, MeasureRule
from router.config.read_headers import read_headers, reads_answers
from tests.support.config_samples import errors, read

PRICED = "pricing: {prompt_per_1m: 1, completion_per_1m: 3}, quality_score: 0.5, "
CONFIG = """\
version: v0.5
listeners: [{{name: public, address: 127.0.0.1, port: 8801}}]
providers:
  models:
    - {{name: small, {small}backend_refs: [{{endpoint: "http://127.0.0.1:9101/v1"}}]}}
    - {{name: large, {large}backend_refs: [{{endpoint: "http://127.0.0.1:9102/v1"}}]}}
recipes:
  - name: default
    decisions:
      - name: all
        rules: {{}}
        modelRefs: [{{model: small}}, {{model: large}}]
        algorithm: {algorithm}
entrypoints: [{{model_names: [auto], recipe: default, default: true}}]
"""


def text(algorithm: str, small: str = PRICED, large: str = PRICED) -> str:
    return CONFIG.format(algorithm=algorithm, small=small, large=large)


def rule(algorithm: str, small: str = PRICED, large: str = PRICED) -> MeasureRule | None:
    plan = read(text(algorithm, small, large)).plan
    return plan.recipes["default"].decisions[0].selector.measured


def factors(settings: str = "", small: str = PRICED, large: str = PRICED) -> FactorRule:
    found = rule("{type: multi_factor" + (f", multi_factor: {{{settings}}}" if settings else "") + "}", small, large)
    assert isinstance(found, FactorRule)
    return found


def problem(settings: str, small: str = PRICED, large: str = PRICED) -> str:
    (found,) = errors(text(f"{{type: multi_factor, multi_factor: {{{settings}}}}}", small, large))
    return str(found)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ("", LatencyRule(95, 95, 5)),
        (", latency_aware: {ttft_percentile: 50}", LatencyRule(50, None, 5)),
        (", latency_aware: {response_percentile: 99, min_answers: 20}", LatencyRule(None, 99, 20)),
    ],
)
def test_latency_aware(settings: str, expected: LatencyRule) -> None:
    assert rule(f"{{type: latency_aware{settings}}}", "", "") == expected


def test_every_factor_counts_alike_where_nothing_is_written() -> None:
    assert factors().weights == (("quality", 0.25), ("latency", 0.25), ("cost", 0.25), ("load", 0.25))
    assert factors().on_none == "cheapest"
    assert factors().latency == LatencyRule(95, 95, 5)


def test_a_factor_of_which_a_candidate_says_nothing_does_not_count() -> None:
    found = factors(small="")
    assert found.weights == (("latency", 0.25), ("load", 0.25))
    assert found.on_none == "first"


def test_what_is_written() -> None:
    found = factors(
        "weights: {quality: 0, latency: 2}, latency_percentile: 50, min_answers: 1, on_no_candidates: fail, slo: "
        "{max_ttft_ms: 500, max_response_ms: 2000, max_cost_per_1m: 0, max_inflight: 9, max_error_rate: 0.5}"
    )
    assert found.weights == (("latency", 2.0), ("cost", 0.25), ("load", 0.25))
    assert found.limits == Limits(0.5, 2.0, 0.0, 9, 0.5)
    assert (found.latency, found.on_none) == (LatencyRule(50, 50, 1), "fail")


@pytest.mark.parametrize(
    ("settings", "small", "expected"),
    [
        ("weights: {quality: 1}", "", 'quality needs quality_score of every candidate; without: "small"'),
        (
            "weights: {cost: 1}",
            "pricing: {prompt_per_1m: 1}, ",
            "cost needs pricing {prompt_per_1m, completion_per_1m}",
        ),
        ("slo: {max_cost_per_1m: 1}", "", "max_cost_per_1m needs pricing"),
        ("on_no_candidates: cheapest", "", "on_no_candidates needs pricing"),
        ("weights: {quality: 0, latency: 0, cost: 0, load: 0}", PRICED, "weighs nothing"),
        ("slo: {max_tpot_ms: 5}", PRICED, "not supported yet"),
        (
            "weights: {}",
            PRICED.replace("{prompt", "{currency: EUR, prompt"),
            "prices in EUR and USD cannot be compared",
        ),
        ("weights: {}", "pricing: {currency: eur}, ", "must be three upper-case letters, such as USD"),
    ],
)
def test_mistakes(settings: str, small: str, expected: str) -> None:
    assert expected in problem(settings, small)


def test_free_is_a_price() -> None:
    free = "pricing: {prompt_per_1m: 0, completion_per_1m: 0}, "
    assert ("cost", 0.25) in factors(small=free).weights


def test_answers_are_read_only_where_somebody_does() -> None:
    assert reads_answers(read(text("{type: latency_aware}")).plan)
    assert not reads_answers(read(text("{type: weighted}")).plan)
    assert "x-session-id" in read_headers(read(text("{type: latency_aware}")).plan)
