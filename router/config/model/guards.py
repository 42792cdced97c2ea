"""`recipes[].signals`: rules that read their whole input, in windows where it is long ("Long inputs")."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from router.config.model.base import Model, Name, RuleName, Text, within

Share = Annotated[float, Field(ge=0, le=1), within(0, 1)]
OnUnscanned = Literal["best_effort", "match", "no_match", "unknown"]
Switch = Literal["on", "off"]


class GuardRule(Model):
    """A well-known question about everything that came since the assistant last spoke."""

    name: RuleName = Field(description="Unique in its family; conditions and projections refer to it.")
    description: str | None = Field(None, description="For people.")
    deployment: Name | None = Field(
        None, description="Decision model to ask; global.model_catalog.system.decision_model if absent."
    )
    threshold: Share | None = Field(
        None, description="Least probability of a match; the model's calibrated one, else 0.5, if absent."
    )
    include_history: bool = Field(False, description="Also read earlier user turns and tool results.")
    on_unknown: Literal["match", "no_match"] | None = Field(
        None,
        description="What an unknown answer counts as; match if absent, in safety rules whatever each decision says.",
    )
    on_unscanned: OnUnscanned = Field(
        "best_effort", description="What decides when time ran out before all was read and nothing was found."
    )
    min_coverage: Share | None = Field(
        None, description="Least share of the windows that best_effort must have read; else the rule is unknown."
    )
    normalise: Switch = Field("on", description="Also read the text without disguises, where it has some.")
    timeout_ms: Annotated[int, Field(ge=1, le=60_000), within(1, 60_000)] | None = Field(
        None,
        description="How long to wait for each window's answer; the deployment's timeout_ms if absent, else the "
        "signals' deadline, or 1000 for provider systemone.",
    )


class Hazard(Model):
    """Kinds of harm, of which one must be there too."""

    labels: Annotated[list[Text], Field(min_length=1)] | None = Field(
        None, description="Kinds by which the rule matches; all that the model tells apart if absent."
    )
    categories: Annotated[list[Text], Field(min_length=1)] | None = Field(
        None, description="Another spelling of `labels`."
    )
    threshold: Share | None = Field(
        None, description="Least probability of a kind; the model's calibrated one, else 0.5, if absent."
    )


class SafetyRule(GuardRule):
    """Whether the input is harmful or asks for harm."""

    hazard: Hazard | None = Field(None, description="Match only by some kinds of harm.")


class PiiRule(GuardRule):
    """Where the input holds personal data."""

    pii_types_allowed: Annotated[list[Text], Field(min_length=1)] | None = Field(
        None, description="Types of personal data that do not count."
    )
