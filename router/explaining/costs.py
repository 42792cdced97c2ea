"""What an answer cost, beside what the dearest model would have cost that the request's decision could have picked.

Sources: `reference.md` 7.5 (`actual_cost`, `baseline_cost`, `cost_savings`), 2.3 (`pricing`: absent is not free).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from router.config.measures import Price
from router.config.plan import Decision, Plan, ProviderModel
from router.wire.usage import Usage

_MILLION: Final = 1_000_000
UNPRICED: Final[Mapping[str, None]] = dict.fromkeys(
    ("actual_cost", "baseline_cost", "baseline_model", "cost_savings", "currency")
)
"""What is told where it is not known."""


@dataclass(frozen=True, slots=True)
class Rates:
    """The price of the model that answers, and those of the other candidates of its decision, by name, in its currency.

    What no decision picked has no others: nothing was saved, and nothing lost.
    """

    model: str
    price: Price
    others: tuple[tuple[str, Price], ...] = ()

    def told(self, usage: Usage) -> dict[str, float | str | None]:
        """What the tokens cost; nothing where they are not known, or a price is not."""
        actual = _cost(usage, self.price)
        if actual is None:
            return dict(UNPRICED)
        costs = {self.model: actual, **{name: _cost(usage, price) for name, price in self.others}}
        # Among equals the model that answered: a saving of nothing needs no other name.
        dearest, baseline = max(
            ((name, cost) for name, cost in costs.items() if cost is not None), key=lambda each: each[1]
        )
        return {
            "actual_cost": round(actual, 9),
            "baseline_cost": round(baseline, 9),
            "baseline_model": dearest,
            "cost_savings": round(baseline - actual, 9),
            "currency": self.price.currency,
        }


def rates_of(plan: Plan, model: ProviderModel, decision: Decision | None) -> Rates | None:
    """The rates of a request that `decision` sent to `model`; None when that has no price."""
    if model.price is None:
        return None
    prices = {ref.model: plan.models[ref.model].price for ref in decision.model_refs} if decision is not None else {}
    others = (
        (name, price)
        for name, price in prices.items()
        if name != model.name and price is not None and price.currency == model.price.currency
    )
    return Rates(model.name, model.price, tuple(others))


def _cost(usage: Usage, price: Price) -> float | None:
    if price.prompt is None or price.completion is None or usage.prompt is None or usage.completion is None:
        return None
    return (usage.prompt * price.prompt + usage.completion * price.completion) / _MILLION
