"""`recipes[].signals`: the questions that a recipe asks about a request ("Decision signal")."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from router.config.model import guards, heuristics, learned
from router.config.model.base import Key, Model, Name, NotYet, RuleName, Text, pattern, soon
from router.config.model.bounds import Bounds, Probability

Head = Literal["router", "broad"]


class OptionText(Model):
    """An option of a choice, or a label of a set or span."""

    key: Key = Field(description="Name that conditions use.")
    description: Text | None = Field(None, description="What the model is told about it.")


class Sides(Model):
    """What the two answers of a yes/no question mean."""

    true: Text | None = Field(None, description="What yes means.")
    false: Text | None = Field(None, description="What no means.")


class NoulQuestion(Model):
    """Yes or no; the answer is P(yes)."""

    type: Literal["noul"]
    instructions: Text | None = Field(None, description="The question, in plain words.")
    criteria: Sides | None = Field(None, description="What yes and no mean.")


class ChoiceQuestion(Model):
    """One of several options."""

    type: Literal["choice"]
    instructions: Text = Field(description="The question, in plain words.")
    choices: list[OptionText] = Field(min_length=2, max_length=255, description="The options.")


class ScoreQuestion(Model):
    """A level, counted from 0; the answer is the expected level."""

    type: Literal["score"]
    instructions: Text = Field(description="The question, in plain words.")
    levels: list[Text] = Field(min_length=2, max_length=10, description="The levels, from low to high.")


class SetQuestion(Model):
    """Which labels apply."""

    type: Literal["set"]
    instructions: Text = Field(description="The question, in plain words.")
    labels: list[OptionText] = Field(min_length=1, max_length=255, description="The labels.")
    threshold: Probability | None = Field(None, description="Replaces the model's own threshold for a selected label.")


class SpanQuestion(Model):
    """Where labels occur in the text."""

    type: Literal["span"]
    instructions: Text = Field(description="The question, in plain words.")
    labels: list[OptionText] = Field(min_length=1, max_length=255, description="The labels.")
    threshold: Probability | None = Field(None, description="Replaces the model's own threshold for a found span.")
    head: Head | None = Field(None, description="Span detector, for models that have two.")


Question = Annotated[
    NoulQuestion | ChoiceQuestion | ScoreQuestion | SetQuestion | SpanQuestion, Field(discriminator="type")
]


class SystemoneRule(Model):
    """One typed question about a request, and when its answer counts as a match."""

    name: RuleName = Field(description="Unique in its recipe; conditions and projections refer to it.")
    description: str | None = Field(None, description="For people.")
    deployment: Name | None = Field(
        None, description="Decision model to ask; global.model_catalog.system.decision_model if absent."
    )
    preset: Annotated[str, pattern(r"\w[\w.:-]*", "the name of a preset")] | None = Field(
        None, description="A question that the model defines by name, instead of `question`."
    )
    question: Question | None = Field(None, description="The question, in your own words.")
    state: Annotated[Literal["user", "conversation", "system", "tools"], soon("answer")] = Field(
        "user", description="Part of the request that the question is about."
    )
    coverage: Literal["truncate", "full"] = Field(
        "truncate",
        description="How a long text is read. truncate: head and tail within the deployment's routing_view. full: all "
        "of it, in windows, for noul, set and span questions.",
    )
    predicate: Bounds | None = Field(None, description="When the answer counts as a match.")
    threshold: Probability | None = Field(None, description="For set and span: replaces the model's own threshold.")
    head: Head | None = Field(None, description="For span: detector, for models that have two.")
    timeout_ms: Annotated[int, Field(ge=1, le=60_000)] | None = Field(
        None, description="How long to wait for the answer; the deployment's timeout_ms, else 1000, if absent."
    )
    on_unscanned: guards.OnUnscanned = Field(
        "best_effort", description="For coverage full: what decides when time ran out before all was read."
    )
    min_coverage: guards.Share | None = Field(
        None, description="For coverage full: least share of the windows that best_effort must have read."
    )
    normalise: guards.Switch = Field(
        "on", description="For coverage full: also read the text without disguises, where it has some."
    )
    on_unknown: NotYet = None


def _rules(description: str) -> Any:
    return Field(default_factory=list, description=description)


class Signals(Model):
    """Signal rules by family."""

    systemone: list[SystemoneRule] = Field(default_factory=list, description="Typed questions to a decision model.")
    decision: list[SystemoneRule] = Field(
        default_factory=list,
        description="Older name of `systemone`.",
        json_schema_extra={"deprecated": True},
    )
    domains: list[learned.DomainRule] = _rules("What the request is about.")
    domain: list[learned.DomainRule] = _rules("Another spelling of `domains`.")
    complexity: list[learned.LearnedRule] = _rules("How hard the request is.")
    modality: list[learned.LearnedRule] = _rules("What kind of output is wanted.")
    fact_check: list[learned.LearnedRule] = _rules("Whether an answer depends on facts that should be checked.")
    user_feedbacks: list[learned.LearnedRule] = _rules("How the user takes the answer before.")
    user_feedback: list[learned.LearnedRule] = _rules("Another spelling of `user_feedbacks`.")
    turn_relation: list[learned.LearnedRule] = _rules("How the current turn relates to the ones before.")
    jailbreak: list[guards.GuardRule] = _rules("Attempts to make the model break its rules.")
    safety: list[guards.SafetyRule] = _rules("Harmful content and requests for it.")
    pii: list[guards.PiiRule] = _rules("Personal data.")
    keywords: list[heuristics.KeywordRule] = _rules("Words and phrases in the current user turn.")
    keyword: list[heuristics.KeywordRule] = _rules("Another spelling of `keywords`.")
    language: list[heuristics.LanguageRule] = _rules("The language of the current user turn.")
    languages: list[heuristics.LanguageRule] = _rules("Another spelling of `language`.")
    context: list[heuristics.ContextRule] = _rules("How many tokens the whole request needs.")
    structure: list[heuristics.StructureRule] = _rules("How the current user turn is written.")
    conversation: list[heuristics.ConversationRule] = _rules("The shape of the conversation.")
    metadata: list[heuristics.MetadataRule] = _rules("What the client says in `metadata`.")
    role_bindings: list[heuristics.RoleBinding] = _rules("Who asks, by the word of a trusted peer.")
    authz: list[heuristics.RoleBinding] = _rules("Another spelling of `role_bindings`.")
    input_modality: list[heuristics.InputModalityRule] = _rules("Which kinds of content the user's messages hold.")
    events: list[heuristics.EventRule] = _rules("Words of machine-made events.")
    event: list[heuristics.EventRule] = _rules("Another spelling of `events`.")
    embeddings: list[learned.EmbeddingRule] = _rules("How alike the current user turn is to example texts.")
    embedding: list[learned.EmbeddingRule] = _rules("Another spelling of `embeddings`.")
    kb: NotYet = None
    preferences: NotYet = None
    classifiers: NotYet = None
    reask: NotYet = None
