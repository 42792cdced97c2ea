"""`recipes[].decisions[].algorithm`: the settings of each selector."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from router.config.measures import MIN_ANSWERS, PERCENTILE
from router.config.model.base import Model, Name, NotYet, Text

Percentile = Annotated[int, Field(ge=1, le=100)]
Weight = Annotated[float, Field(ge=0, le=1000)]
Milliseconds = Annotated[int, Field(ge=1, le=3_600_000)]


class SystemoneSelector(Model):
    """The question of the systemone selector: which of the candidates should answer?"""

    deployment: Name | None = Field(
        None, description="Decision model to ask; global.model_catalog.system.decision_model if absent."
    )
    instructions: Text = Field(
        "Which model should answer this request?", description="What the decision model is asked, in plain words."
    )
    candidates: dict[Name, Text] = Field(
        default_factory=dict, description="What is said about a candidate; the provider model's description if absent."
    )
    timeout_ms: Annotated[int, Field(ge=1, le=60_000)] | None = Field(
        None, description="How long to wait; the deployment's timeout_ms, else 1000, if absent."
    )


class LatencyAwareSelector(Model):
    """Which measured times count. Where neither percentile is written, both do."""

    ttft_percentile: Percentile | None = Field(
        None, description=f"Of the time to the first byte of answers that stream; {PERCENTILE} if neither is written."
    )
    response_percentile: Percentile | None = Field(
        None, description=f"Of the time of answers that do not stream; {PERCENTILE} if neither is written."
    )
    min_answers: int = Field(
        MIN_ANSWERS, ge=1, le=10_000, description="Answers after which a candidate counts as measured."
    )
    tpot_percentile: NotYet = None


class FactorWeights(Model):
    """How much each factor counts, relative to the others."""

    quality: Weight | None = Field(None, description="quality_score of the provider model; 0.25 if absent.")
    latency: Weight | None = Field(None, description="Measured times and errors; 0.25 if absent.")
    cost: Weight | None = Field(None, description="pricing of the provider model; 0.25 if absent.")
    load: Weight | None = Field(None, description="Requests in flight; 0.25 if absent.")


class Objectives(Model):
    """Limits. What is not measured yet exceeds none."""

    max_ttft_ms: Milliseconds | None = Field(None, description="Time to the first byte of answers that stream.")
    max_response_ms: Milliseconds | None = Field(None, description="Time of answers that do not stream.")
    max_cost_per_1m: Annotated[float, Field(ge=0)] | None = Field(
        None, description="Mean of prompt_per_1m and completion_per_1m, in the candidates' currency."
    )
    max_inflight: Annotated[int, Field(ge=1, le=1_000_000)] | None = Field(
        None, description="Requests in flight from this process; with as many there, the candidate gets no more."
    )
    max_error_rate: Annotated[float, Field(ge=0, le=1)] | None = Field(
        None, description="Share of answers with status 408, 429 or 5xx."
    )
    max_tpot_ms: NotYet = None


class MultiFactorSelector(Model):
    """Several factors weighed against each other, within limits."""

    weights: FactorWeights | None = Field(None, description="How much each factor counts.")
    slo: Objectives | None = Field(None, description="Limits that a candidate must keep to.")
    latency_percentile: Percentile = Field(PERCENTILE, description="Which percentile of measured times counts.")
    min_answers: int = Field(
        MIN_ANSWERS, ge=1, le=10_000, description="Answers after which a candidate counts as measured."
    )
    on_no_candidates: Literal["cheapest", "first", "fail"] | None = Field(
        None,
        description="When no candidate keeps to the limits: the cheapest (default where all have a price), the first, "
        "or refuse the request with 503.",
    )
