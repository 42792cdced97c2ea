"""`recipes[].signals`: the well-known questions to a decision model, one family each."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from router.config.model.base import Model, Name, RuleName, Text, soon
from router.config.model.bounds import Bounds, Probability


class LearnedRule(Model):
    """A well-known question about a request; the model's own, or the public text of that preset."""

    name: RuleName = Field(description="Unique in its family; conditions and projections refer to it.")
    description: str | None = Field(None, description="For people.")
    deployment: Name | None = Field(
        None, description="Decision model to ask; global.model_catalog.system.decision_model if absent."
    )
    threshold: Probability | None = Field(None, description="Least probability of what matches.")
    predicate: Bounds | None = Field(None, description="In place of `threshold`: bounds of that probability.")
    timeout_ms: Annotated[int, Field(ge=1, le=60_000)] | None = Field(
        None, description="How long to wait for the answer; the deployment's timeout_ms, else 1000, if absent."
    )


class EmbeddingRule(Model):
    """How alike the current user turn is to example texts, by a text encoder."""

    name: RuleName = Field(description="Unique in its family; conditions and projections refer to it.")
    description: str | None = Field(None, description="For people.")
    deployment: Name | None = Field(
        None, description="Encoder to ask; global.model_catalog.system.decision_model if absent."
    )
    candidates: Annotated[
        list[Annotated[str, StringConstraints(min_length=1, max_length=4096)]], Field(min_length=1, max_length=1024)
    ] = Field(description="Example texts of what the rule is for.")
    aggregation_method: Literal["max", "mean", "any"] = Field(
        "max",
        description="max: the nearest candidate counts. mean: the mean over all. any: one that is near enough will do.",
    )
    threshold: Probability | None = Field(None, description="Least similarity (cosine) that matches.")
    predicate: Bounds | None = Field(None, description="In place of `threshold`: bounds of the similarity.")
    query_modality: Annotated[Literal["text"], soon("image", "audio")] = Field(
        "text", description="What of the request is compared."
    )
    timeout_ms: Annotated[int, Field(ge=1, le=60_000)] | None = Field(
        None, description="How long to wait for the answer; the deployment's timeout_ms, else 1000, if absent."
    )


class DomainRule(LearnedRule):
    """What the current user turn is about."""

    mmlu_categories: Annotated[list[Text], Field(min_length=1)] | None = Field(
        None, description="Subjects by which the rule matches without a `label` in the condition."
    )
