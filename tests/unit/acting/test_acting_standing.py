"""Who answers fastest, and who weighs most."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from router.acting.factors import by_factors
from router.acting.latencies import Measured
from router.acting.standing import RESPONSE, TTFT, Candidate, Why, by_latency
from router.config.measures import FACTORS, FactorRule, LatencyRule, Limits, OnNone, Price
from router.config.plan import ApiFormat, ProviderModel

BOTH = LatencyRule()
ANY = Limits()
EQUAL = tuple((factor, 0.25) for factor in FACTORS)


def candidate(
    name: str = "m",
    *,
    ttft: float | None = None,
    response: float | None = 1.0,
    asked: int = 10,
    in_flight: int = 0,
    errors: float = 0.0,
    price: float | None = None,
    quality: float | None = None,
) -> Candidate:
    cost = Price("USD", price, price) if price is not None else None
    model = ProviderModel(name, ApiFormat.CHAT, name, (), cost, quality)
    return model, Measured(asked, in_flight, errors, lambda _: ttft, lambda _: response)


def rule(limits: Limits = ANY, on_none: OnNone = "first", **weights: float) -> FactorRule:
    return weighing(weights, limits, on_none)


def weighing(weights: Mapping[str, float], limits: Limits = ANY, on_none: OnNone = "first") -> FactorRule:
    written = tuple((factor, weights[factor]) for factor in FACTORS if factor in weights)
    return FactorRule(written or EQUAL, limits, BOTH, on_none)


class TestByLatency:
    def picked(self, *candidates: Candidate, rule: LatencyRule = BOTH) -> tuple[str | None, Why]:
        found = by_latency(rule, candidates)
        return None if found.picked is None else found.all[found.picked].model, found.why

    def test_the_mean_of_ratios_to_the_best(self) -> None:
        found = by_latency(BOTH, [candidate("a", ttft=1.0, response=4.0), candidate("b", ttft=1.2, response=2.0)])
        assert [one.score for one in found.all] == pytest.approx([(1 + 2) / 2, (1.2 + 1) / 2])
        assert found.all[0].parts[RESPONSE].comes_to == 2.0
        assert (found.picked, found.why) == (1, Why.BEST)

    def test_a_time_of_which_nothing_is_known_counts_for_nobody_else(self) -> None:
        found = by_latency(BOTH, [candidate("a", response=4.0), candidate("b", ttft=9.0, response=2.0)])
        assert found.all[0].parts[TTFT].comes_to is None
        assert [one.score for one in found.all] == [2.0, 1.0]

    def test_a_percentile_that_is_not_wanted_is_not_read(self) -> None:
        found = by_latency(LatencyRule(ttft=50, response=None), [candidate("a", ttft=1.0), candidate("b", ttft=2.0)])
        assert list(found.all[0].parts) == [TTFT]

    def test_errors_cost_what_asking_again_costs(self) -> None:
        assert self.picked(candidate("a", errors=0.6), candidate("b", response=2.0)) == ("b", Why.BEST)
        assert self.picked(candidate("a", errors=0.4), candidate("b", response=2.0)) == ("a", Why.BEST)

    def test_level_candidates_come_in_their_order(self) -> None:
        assert self.picked(candidate("a"), candidate("b")) == ("a", Why.BEST)

    def test_who_is_not_measured_is_tried_by_one_request_at_a_time(self) -> None:
        assert self.picked(candidate("a"), candidate("b", asked=4)) == ("b", Why.UNMEASURED)
        assert self.picked(candidate("a"), candidate("b", asked=4, in_flight=1)) == ("a", Why.BEST)

    def test_while_nobody_is_measured_requests_spread(self) -> None:
        assert self.picked(candidate("a", asked=0, in_flight=2), candidate("b", asked=0, in_flight=1))[0] == "b"
        assert self.picked(candidate("a", asked=3, in_flight=1), candidate("b", asked=1, in_flight=1))[0] == "b"

    def test_an_unmeasured_one_is_nobodys_best(self) -> None:
        found = by_latency(BOTH, [candidate("a", response=2.0), candidate("b", response=1.0, asked=1, in_flight=1)])
        assert [one.score for one in found.all] == [1.0, None]

    def test_when_all_always_fail_the_one_that_fails_least(self) -> None:
        def failing(name: str, errors: float) -> Candidate:
            return candidate(name, response=None, errors=errors)

        assert self.picked(failing("a", 1.0), failing("b", 0.9)) == ("b", Why.BEST)


class TestByFactors:
    def test_each_factor_is_normalised_between_best_and_worst(self) -> None:
        found = by_factors(
            rule(),
            [
                candidate("a", response=1.0, price=10, quality=0.9, in_flight=4),
                candidate("b", response=3.0, price=2, quality=0.5, in_flight=0),
                candidate("c", response=2.0, price=6, quality=0.7, in_flight=2),
            ],
        )
        comes = [{name: one.parts[name].comes_to for name in FACTORS} for one in found.all]
        assert comes[0] == pytest.approx({"quality": 1, "latency": 1, "cost": 0, "load": 0})
        assert comes[1] == pytest.approx({"quality": 0, "latency": 0, "cost": 1, "load": 1})
        assert comes[2] == pytest.approx(dict.fromkeys(FACTORS, 0.5))
        assert [one.score for one in found.all] == pytest.approx([0.5, 0.5, 0.5])
        assert (found.picked, found.why) == (0, Why.BEST)

    @pytest.mark.parametrize(
        ("weights", "picked"), [({"quality": 1.0}, 0), ({"cost": 3.0}, 1), ({"quality": 1.0, "cost": 2.0}, 1)]
    )
    def test_weights(self, weights: dict[str, float], picked: int) -> None:
        found = by_factors(weighing(weights), [candidate("a", price=10, quality=1), candidate("b", price=1, quality=0)])
        assert found.picked == picked
        assert sum(part.weight for part in found.all[0].parts.values()) == pytest.approx(1.0)

    def test_where_all_are_level_the_first(self) -> None:
        found = by_factors(rule(load=1.0), [candidate("a"), candidate("b")])
        assert (found.picked, found.all[1].score) == (0, 1.0)

    def test_nothing_is_tried_for_a_time_that_does_not_count(self) -> None:
        found = by_factors(rule(cost=1.0), [candidate("a", price=1), candidate("b", price=2, asked=0)])
        assert (found.picked, found.why) == (0, Why.BEST)
        found = by_factors(rule(latency=1.0), [candidate("a"), candidate("b", asked=0)])
        assert (found.picked, found.why) == (1, Why.UNMEASURED)

    @pytest.mark.parametrize(
        ("limits", "name"),
        [
            (Limits(ttft_s=0.5), "max_ttft_ms"),
            (Limits(response_s=0.5), "max_response_ms"),
            (Limits(cost=3.0), "max_cost_per_1m"),
            (Limits(in_flight=2), "max_inflight"),
            (Limits(error_rate=0.1), "max_error_rate"),
        ],
    )
    def test_limits(self, limits: Limits, name: str) -> None:
        bad = candidate("bad", ttft=1.0, response=1.0, price=5, in_flight=2, errors=0.2)
        good = candidate("good", ttft=0.1, response=0.1, price=1, in_flight=1)
        found = by_factors(rule(limits, load=1.0), [bad, good])
        assert (found.picked, found.all[0].exceeds, found.all[0].score) == (1, (name,), None)
        assert by_factors(rule(limits, load=1.0), [good, bad]).picked == 0

    def test_what_is_not_measured_exceeds_no_time(self) -> None:
        found = by_factors(rule(Limits(response_s=0.5), load=1.0), [candidate(response=9.0, asked=1)])
        assert found.all[0].exceeds == ()

    @pytest.mark.parametrize(
        ("on_none", "picked", "why"),
        [("first", 0, Why.FIRST), ("cheapest", 1, Why.CHEAPEST), ("fail", None, Why.NONE)],
    )
    def test_when_nobody_keeps_to_the_limits(self, on_none: OnNone, picked: int | None, why: Why) -> None:
        candidates: Sequence[Candidate] = [candidate("a", price=2), candidate("b", price=1)]
        found = by_factors(rule(Limits(response_s=0.5), on_none), candidates)
        assert (found.picked, found.why) == (picked, why)
