"""`recipes[].projections`: arithmetic over signals, and the named bands that decisions read."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from router.config.families import LATER
from router.config.model.base import Model, Name, NotYet, Text, soon
from router.config.model.bounds import Bounds

Source = Literal[
    "projection",
    "systemone",
    "decision",
    "domain",
    "domains",
    "complexity",
    "modality",
    "fact_check",
    "user_feedback",
    "user_feedbacks",
    "turn_relation",
    "jailbreak",
    "safety",
    "pii",
    "embedding",
    "embeddings",
    "keyword",
    "keywords",
    "language",
    "languages",
    "context",
    "structure",
    "conversation",
    "metadata",
    "authz",
    "role_bindings",
    "input_modality",
    "event",
    "events",
]
"""What a condition or input can read: a family of rules in any spelling, or a projection."""


class Input(Model):
    """One term of a weighted sum."""

    type: Annotated[Source, soon(*LATER)] = Field(description="What is read: a family of rules, or projection.")
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


class Partition(Model):
    """Rules of one family of which at most one matches: the surest, or the default when none does."""

    name: Name = Field(description="Unique among the recipe's partitions.")
    description: str | None = Field(None, description="For people.")
    semantics: Literal["exclusive", "softmax_exclusive"] = Field(
        "exclusive", description="softmax_exclusive: the winner's confidence becomes its softmax among the matches."
    )
    temperature: float | None = Field(None, gt=0, description="For softmax_exclusive: above 0.")
    members: Annotated[list[Text], Field(min_length=1)] = Field(
        description="Names of `domains` rules, or of `embeddings` rules."
    )
    default: Text = Field(description="The member that matches when none does.")


class Projections(Model):
    """Winners among rules, scores, and the bands made of them."""

    scores: list[Score] = Field(default_factory=list, description="Weighted sums over signals.")
    mappings: list[Mapping] = Field(default_factory=list, description="Bands of scores.")
    partitions: list[Partition] = Field(default_factory=list, description="Rules of which at most one matches.")
