"""`recipes[].projections`: arithmetic over signals, and the named bands that decisions read."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from router.config.model.base import Model, Name, NotYet, Text, soon
from router.config.model.signals import Bounds

OTHER_FAMILIES = (
    *("domain", "complexity", "modality", "fact_check", "user_feedback", "user_feedbacks", "turn_relation"),
    *("jailbreak", "safety", "pii", "keyword", "keywords", "language", "context", "structure", "conversation"),
    *("metadata", "authz", "event", "events", "embedding", "embeddings", "kb", "kb_metric", "preference"),
    *("preferences", "classifier", "input_modality", "domains", "reask"),
)


class Input(Model):
    """One term of a weighted sum."""

    type: Annotated[Literal["systemone", "decision", "projection"], soon(*OTHER_FAMILIES)] = Field(
        description="What is read: a systemone rule, or another projection."
    )
    name: Text = Field(description="A rule, `rule:label`, another score, or a mapping's output.")
    weight: float = Field(description="Factor of this term.")
    value_source: Literal["binary", "confidence", "raw", "score"] | None = Field(
        None,
        description="binary (default), confidence or raw of a rule; score (default) or confidence of a projection.",
    )
    match: float | None = Field(None, description="Value of a binary input that matched; 1 if absent.")
    miss: float | None = Field(None, description="Value of a binary input that did not match; 0 if absent.")
    kb: NotYet = None
    metric: NotYet = None


class Score(Model):
    """A named weighted sum."""

    name: Name = Field(description="Unique among the recipe's scores.")
    description: str | None = Field(None, description="For people.")
    method: Literal["weighted_sum"] = Field(description="How the inputs are combined.")
    inputs: list[Input] = Field(min_length=1, description="The terms of the sum.")


class Output(Bounds):
    """A named band of a score; without bounds it takes whatever is left."""

    name: Name = Field(description="Unique in the recipe; decisions read it as `type: projection`.")
    description: str | None = Field(None, description="For people.")


class Calibration(Model):
    """How far inside its band a score must be to be sure."""

    method: Literal["sigmoid_distance"] = Field("sigmoid_distance", description="Confidence by distance to the bound.")
    slope: float = Field(12.0, gt=0, description="Steepness of the confidence around a bound.")


class Mapping(Model):
    """Turns a score into named outputs."""

    name: Name = Field(description="Unique among the recipe's mappings.")
    description: str | None = Field(None, description="For people.")
    source: Name = Field(description="The score that is read.")
    method: Literal["threshold_bands", "multi_emit"] = Field(
        "threshold_bands", description="First output that holds, or all that hold."
    )
    calibration: Calibration | None = Field(None, description="How confidence is computed.")
    outputs: list[Output] = Field(min_length=1, description="The bands.")


class Projections(Model):
    """Scores and the bands made of them."""

    scores: list[Score] = Field(default_factory=list, description="Weighted sums over signals.")
    mappings: list[Mapping] = Field(default_factory=list, description="Bands of scores.")
    partitions: NotYet = None
