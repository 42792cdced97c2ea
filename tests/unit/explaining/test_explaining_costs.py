"""What an answer cost, and what it would have cost elsewhere."""

from __future__ import annotations

import pytest

from router.config.measures import Price
from router.explaining.costs import UNPRICED, Rates, rates_of
from router.wire.usage import Usage
from tests.support.plans import PLAIN, plan_of

USAGE = Usage(1000, 100)
CHEAP, DEAR = Price("USD", 1.0, 10.0), Price("USD", 3.0, 30.0)
CODER = "name: coder, "
PRICED = (
    PLAIN.replace(CODER, f"{CODER}pricing: {{prompt_per_1m: 1, completion_per_1m: 10}}, ")
    .replace("{name: general, ", "{name: general, pricing: {prompt_per_1m: 3, completion_per_1m: 30}, ")
    .replace("modelRefs: [{model: coder}]", "modelRefs: [{model: coder}, {model: general}]", 1)
)


def test_the_dearest_candidate_is_what_it_is_held_against() -> None:
    told = Rates("small", CHEAP, (("large", DEAR), ("middle", Price("USD", 2.0, 20.0)))).told(USAGE)
    assert told == {
        "actual_cost": 0.002,
        "baseline_cost": 0.006,
        "baseline_model": "large",
        "cost_savings": 0.004,
        "currency": "USD",
    }


def test_which_candidate_is_dearest_depends_on_the_tokens() -> None:
    rates = Rates("reads", Price("USD", 1.0, 50.0), (("writes", Price("USD", 9.0, 10.0)),))
    assert rates.told(Usage(1000, 10))["baseline_model"] == "writes"
    assert rates.told(Usage(10, 1000))["baseline_model"] == "reads"


def test_nothing_is_saved_by_the_dearest_or_the_only_one() -> None:
    for rates in (
        Rates("large", DEAR, (("small", CHEAP),)),
        Rates("large", DEAR),
        Rates("large", DEAR, (("a", DEAR),)),
    ):
        told = rates.told(USAGE)
        assert (told["baseline_model"], told["cost_savings"], told["actual_cost"]) == ("large", 0.0, 0.006)


def test_free_is_a_price_and_a_price_that_is_half_known_is_none() -> None:
    free, half = Price("USD", 0.0, 0.0), Price("USD", 9.0, None)
    told = Rates("free", free, (("half", half), ("large", DEAR))).told(USAGE)
    assert (told["actual_cost"], told["cost_savings"], told["baseline_model"]) == (0.0, 0.006, "large")
    assert Rates("half", half, (("large", DEAR),)).told(USAGE) == UNPRICED


@pytest.mark.parametrize("usage", [Usage(), Usage(10, None), Usage(None, 10)])
def test_without_tokens_there_is_no_cost(usage: Usage) -> None:
    assert Rates("small", CHEAP).told(usage) == UNPRICED


def test_the_candidates_are_those_of_the_decision_in_one_currency() -> None:
    plan = plan_of(PRICED)
    coder, general = plan.models["coder"], plan.models["general"]
    (decision,) = plan.recipes["ask"].decisions
    assert coder.price == CHEAP
    assert rates_of(plan, coder, decision) == Rates("coder", CHEAP, (("general", DEAR),))
    assert rates_of(plan, general, decision) == Rates("general", DEAR, (("coder", CHEAP),))
    assert rates_of(plan, coder, None) == Rates("coder", CHEAP)
    assert rates_of(plan, plan.models["claude"], decision) is None
    euro = plan_of(PRICED.replace("{prompt_per_1m: 3,", "{currency: EUR, prompt_per_1m: 3,"))
    assert rates_of(euro, euro.models["coder"], euro.recipes["ask"].decisions[0]) == Rates("coder", CHEAP)
