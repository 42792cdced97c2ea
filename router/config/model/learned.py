"""`recipes[].signals`: the well-known questions to a decision model, one family each."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from router.config.model.base import Model, Name, RuleName, Text
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


class DomainRule(LearnedRule):
    """What the current user turn is about."""

    mmlu_categories: Annotated[list[Text], Field(min_length=1)] | None = Field(
        None, description="Subjects by which the rule matches without a `label` in the condition."
    )
