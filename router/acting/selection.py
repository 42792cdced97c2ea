"""Which candidate of a decision answers the request.

A candidate must speak the client's own format: requests are not translated between formats.
"""

from __future__ import annotations

from collections.abc import Mapping

from router.config.plan import ApiFormat, Decision, ModelRef, ProviderModel

ALGORITHM = "static"
"""The name of this selection in `x-vsr-selected-algorithm`."""


def choose(decision: Decision, models: Mapping[str, ProviderModel], wanted: ApiFormat) -> ModelRef | None:
    """The decision's first candidate whose backend speaks `wanted`; None when none does (`no_eligible_model`).

    Every candidate is in `models`: the loader refuses a recipe that names another.
    """
    for candidate in decision.model_refs:
        if models[candidate.model].api_format is wanted:
            return candidate
    return None
