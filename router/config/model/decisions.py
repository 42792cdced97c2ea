"""`recipes[].decisions[]`: rules, and what happens when one is selected."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Discriminator, Field, Tag

from router.config.families import LATER
from router.config.model.base import Model, Name, NotYet, Text, soon
from router.config.model.bounds import Bounds
from router.config.model.plugins import Plugin
from router.config.model.projections import Source
from router.config.model.providers import Effort
from router.config.model.selectors import LatencyAwareSelector, MultiFactorSelector, SystemoneSelector

OnUnknown = Literal["match", "no_match", "fail_request"]
OTHER_ALGORITHMS = (
    "escalate",
    "confidence",
    "cascade",
    "elo",
)


class LeafRule(Model):
    """A condition on a signal rule or on a projection's output."""

    type: Annotated[Source, soon(*LATER)] = Field(description="What the condition reads: a family, or projection.")
    name: Text = Field(description="The rule, or the output of a mapping.")
    label: Text | None = Field(None, description="Option or label of a rule that has some.")
    predicate: Bounds | None = Field(None, description="Replaces the rule's predicate for this condition.")
    on_error: Literal["match", "no_match"] | None = Field(
        None, description="What the condition is when its answer is unknown; if absent, it stays unknown."
    )
    on_unknown: OnUnknown | None = Field(
        None, description="Only at the root: what the decision does when its rule is unknown; no_match if absent."
    )


class NodeRule(Model):
    """Conditions combined. Without any key it matches every request."""

    operator: Literal["AND", "OR", "NOT"] | None = Field(None, description="NOT takes exactly one condition.")
    conditions: list[RuleTree] | None = Field(None, description="Conditions or further operators.")
    on_unknown: OnUnknown | None = Field(
        None, description="Only at the root: what the decision does when its rule is unknown; no_match if absent."
    )


def _form(value: Any) -> str | None:
    if isinstance(value, LeafRule):
        return "<leaf>"
    if isinstance(value, dict):
        leaf = not {"operator", "conditions"} & value.keys() and {"type", "name", "label", "predicate"} & value.keys()
        return "<leaf>" if leaf else "<node>"
    return "<node>"


RuleTree = Annotated[Annotated[LeafRule, Tag("<leaf>")] | Annotated[NodeRule, Tag("<node>")], Discriminator(_form)]


class ModelRef(Model):
    """A candidate backend."""

    model: Name = Field(description="A provider model.")
    weight: Annotated[float, Field(gt=0, le=1_000_000)] | None = Field(
        None, description="Share of the requests, relative to the other candidates; 1 if only others have one."
    )
    use_reasoning: bool | None = Field(
        None, description="Whether the model thinks before it answers; if absent, the client decides."
    )
    reasoning_effort: Effort | None = Field(None, description="How hard it thinks.")
    lora_name: Text | None = Field(None, description="Model name sent to the backend, such as a LoRA adapter's.")
    reasoning_description: NotYet = None


class Algorithm(Model):
    """How one of the candidates is picked."""

    type: Annotated[
        Literal["static", "weighted", "systemone", "decision", "latency_aware", "multi_factor"],
        soon(*OTHER_ALGORITHMS),
    ] = Field(
        description="static: the first that speaks the client's format (default). weighted: drawn by weight. "
        "systemone: chosen by a decision model (decision: its older name). latency_aware: what has answered fastest. "
        "multi_factor: quality, latency, cost and load weighed against each other."
    )
    session_affinity: bool | None = Field(
        None, description="Whether a conversation keeps its model while the same decision matches; true if absent."
    )
    systemone: SystemoneSelector | None = Field(None, description="What the systemone selector asks.")
    decision: SystemoneSelector | None = Field(
        None, description="Older name of `systemone`.", json_schema_extra={"deprecated": True}
    )
    budget: NotYet = None
    on_error: NotYet = None
    escalate: NotYet = None
    confidence: NotYet = None
    cascade: NotYet = None
    latency_aware: LatencyAwareSelector | None = Field(None, description="What the latency_aware selector reads.")
    multi_factor: MultiFactorSelector | None = Field(None, description="What the multi_factor selector weighs.")


class Retention(Model):
    """What is kept of a turn that the decision selects, and of its conversation."""

    drop: bool | None = Field(None, description="true: nothing of the turn is kept for later.")
    keep_current_model: bool | None = Field(
        None, description="true: the conversation stays on the model that answered last, if that is a candidate here."
    )
    prefer_prefix_retention: bool | None = Field(
        None, description="Whether what is cached of the prompt is worth keeping: told to whoever picks an endpoint."
    )
    ttl_turns: NotYet = None


class Emit(Model):
    """A directive for what comes after the decision."""

    needed: ClassVar = ("retention",)

    kind: Literal["retention"] = Field(description="What the directive is about.")
    retention: Retention | None = Field(None, description="For retention: what is kept.")


class Decision(Model):
    """A rule with what happens when it is selected."""

    needed: ClassVar = ("rules",)

    name: Name = Field(description="Unique in its recipe.")
    description: str | None = Field(None, description="For people.")
    priority: Annotated[int, Field(ge=-(2**31), le=2**31 - 1)] = Field(0, description="Higher wins.")
    tier: Annotated[int, Field(ge=0, le=2**31 - 1)] = Field(
        0, description="Lower wins outright; 0 everywhere means that there are no tiers."
    )
    rules: RuleTree | None = Field(None, description="When it matches. `{}` matches every request.")
    modelRefs: list[ModelRef] | None = Field(
        None, description="Candidate backends. Not needed with the plugin fast_response."
    )
    algorithm: Algorithm | None = Field(None, description="How a candidate is picked.")
    plugins: list[Plugin] = Field(default_factory=list, description="What else it does, each kind once.")
    emits: list[Emit] = Field(default_factory=list, description="Directives for later, each kind once.")
    annotations: NotYet = None
    action: NotYet = None


NodeRule.model_rebuild()
Decision.model_rebuild()
