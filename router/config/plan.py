"""The compiled configuration: everything that a request needs, resolved, defaulted and immutable.

`config.load` validates a YAML document and builds one `Plan`; the gateway swaps plans atomically and a request keeps
the plan it started with. No pydantic, no YAML and no string parsing happens after this point. Only what enabled
decisions read is kept: a rule that nothing reads is never asked ("Performance and cost", Calls per request).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Literal

from router.config.actions import NOTHING, Actions
from router.config.candidates import ModelRef
from router.config.deployments import Deployment
from router.config.guards import GuardRule
from router.config.heuristics import HeuristicRule
from router.config.measures import MeasureRule, Price
from router.config.offers import Offer, Offers
from router.config.overload import DEFAULT_OVERLOAD, NO_BOUNDS, AdmissionSettings, OverloadSettings
from router.config.projections import BandMapping, Partition, Score
from router.config.services import AccessToken, ReplaySettings, TracingSettings
from router.questions import Answer, Predicate, Question

OnError = Literal["match", "no_match"]
OnUnknown = Literal["match", "no_match", "fail_request"]
Aggregation = Literal["max", "mean", "any"]


class ApiFormat(StrEnum):
    """Wire format of a client or of a backend. Values are those of `providers.models[].api_format`."""

    CHAT = "openai"
    RESPONSES = "responses"
    MESSAGES = "anthropic"


class StateKind(StrEnum):
    """Which part of a request a question is about (ruling 3)."""

    USER = "user"
    CONVERSATION = "conversation"
    SYSTEM = "system"
    TOOLS = "tools"
    FEEDBACK = "feedback"
    """The current user turn with the answer before it; nothing when no answer precedes."""
    RELATION = "relation"
    """Up to two earlier user turns and the current one; nothing when no user turn precedes."""
    FRESH = "fresh"
    """What guards read: all that came since the assistant last spoke."""
    HISTORY = "history"
    """What guards with `include_history` read: all that users and tools said in the conversation."""


class Operator(StrEnum):
    """How a rule node combines its children."""

    AND = "AND"
    OR = "OR"
    NOT = "NOT"


@dataclass(frozen=True, slots=True)
class QuestionRule:
    """A signal rule that asks a decision model: one question to one deployment about one part of the request.

    `name` is the rule's key (`config.families`). `labels` are the options of a choice by which the rule as a whole
    matches, where not by all. `opening` is what is known without asking when nothing precedes the current turn.
    `aggregation` is what a rule makes of the similarities to its candidates. `stopgap`: nobody has given the threshold
    of the predicate so far, neither the operator nor the model's card.
    """

    name: str
    deployment: str
    question: Question
    state: StateKind
    predicate: Predicate | None
    timeout_ms: int
    labels: frozenset[str] | None = None
    opening: Answer | None = None
    aggregation: Aggregation = "max"
    stopgap: bool = False

    def calibrated_by(self, thresholds: Mapping[str, float]) -> QuestionRule:
        """The rule with the threshold that its model was calibrated to, by preset, in place of a stopgap.

        For a model that tells it itself, after the configuration was read.
        """
        own = thresholds.get(self.question.preset or "")
        return self if own is None or not self.stopgap else replace(self, predicate=Predicate(gte=own), stopgap=False)


@dataclass(frozen=True, slots=True)
class Leaf:
    """A condition on a signal rule, by its key (`config.families`), or on a projection output.

    `family` is "projection", or the family of the rule.
    """

    family: str
    name: str
    label: str | None = None
    predicate: Predicate | None = None
    on_error: OnError | None = None


@dataclass(frozen=True, slots=True)
class Node:
    """AND, OR (any number of children; an empty AND is a catch-all) or NOT (exactly one child)."""

    operator: Operator
    children: tuple[Rule, ...]


Rule = Leaf | Node


def leaves_of(rule: Rule) -> Iterator[Leaf]:
    """All conditions of a rule, in order."""
    if isinstance(rule, Leaf):
        yield rule
    else:
        for child in rule.children:
            yield from leaves_of(child)


@dataclass(frozen=True, slots=True)
class Selector:
    """How one of a decision's candidates is picked: the first, one by weight, by one more question, or by what was
    measured of them.

    `question` is a choice between the candidates, by their names. With `sticky`, a conversation keeps its model.
    """

    kind: Literal["static", "weighted", "systemone", "latency_aware", "multi_factor"]
    question: QuestionRule | None = None
    sticky: bool = True
    measured: MeasureRule | None = None


STATIC = Selector("static")


@dataclass(frozen=True, slots=True)
class Decision:
    """A rule with what happens when it is selected. `order` is its place in the document.

    Either `model_refs` names candidates, or `actions` answers without any.
    """

    name: str
    priority: int
    tier: int
    rule: Rule
    on_unknown: OnUnknown
    model_refs: tuple[ModelRef, ...]
    order: int
    actions: Actions = NOTHING
    selector: Selector = STATIC

    @property
    def refuses(self) -> bool:
        """Whether it answers by itself, so that no backend ever sees the request."""
        return self.actions.fast_response is not None

    @property
    def catch_all(self) -> bool:
        """Whether it matches anything: an AND of nothing."""
        return isinstance(self.rule, Node) and self.rule.operator is Operator.AND and not self.rule.children


@dataclass(frozen=True, slots=True)
class Recipe:
    """One isolated policy.

    `questions`, `heuristics` and `guards` hold exactly the rules that decisions or projections read, in document order.
    `scores` and `mappings` are in an order in which every input is computed before it is read.
    """

    name: str
    strategy: Literal["priority", "confidence"]
    questions: tuple[QuestionRule, ...]
    scores: tuple[Score, ...]
    mappings: tuple[BandMapping, ...]
    decisions: tuple[Decision, ...]
    heuristics: tuple[HeuristicRule, ...] = ()
    partitions: tuple[Partition, ...] = ()
    guards: tuple[GuardRule, ...] = ()

    @property
    def rules(self) -> tuple[QuestionRule | HeuristicRule | GuardRule, ...]:
        """All signal rules."""
        return (*self.questions, *self.heuristics, *self.guards)

    @property
    def deployments(self) -> frozenset[str]:
        """The decision models that may be asked."""
        return frozenset([*(rule.deployment for rule in self.asked), *(rule.deployment for rule in self.guards)])

    @property
    def asked(self) -> tuple[QuestionRule, ...]:
        """All questions to decision models: those of signal rules, then those of selectors."""
        selectors = (decision.selector.question for decision in self.decisions)
        return (*self.questions, *(question for question in selectors if question is not None))


@dataclass(frozen=True, slots=True)
class Auth:
    """Where Envoy finds a backend's key. Exactly one is set; the key itself is never read by this process."""

    env: str | None = None
    file: str | None = None


@dataclass(frozen=True, slots=True)
class Backend:
    """One replica of a provider model. `path` is the endpoint's path prefix ("/v1", "", "/llm/v1"), no final slash."""

    scheme: Literal["http", "https"]
    host: str
    port: int
    path: str
    weight: int
    auth: Auth | None


@dataclass(frozen=True, slots=True)
class ProviderModel:
    """A backend LLM by its logical name (also the value of `x-selected-model`).

    `quality` is from 0 to 1, `context_window` in tokens. They and the price are None where the configuration does not
    say.
    """

    name: str
    api_format: ApiFormat
    provider_model_id: str
    backends: tuple[Backend, ...]
    price: Price | None = None
    quality: float | None = None
    context_window: int | None = None


@dataclass(frozen=True, slots=True)
class Listener:
    """Where Envoy takes clients' requests. `idle_timeout_s` ends connections and streams on which nothing moves.

    `trusted_peers` are the networks (CIDR) whose word is taken for who asks. `debug` lets callers ask how they were
    decided. `offer` is what clients may name; None: any model.
    """

    name: str
    address: str
    port: int
    idle_timeout_s: float
    refuse_unknown_paths: bool
    trusted_peers: tuple[str, ...] = ()
    debug: bool = False
    offer: Offer | None = None

    @property
    def socket(self) -> str:
        """What stays the same of a listener over reloads, whatever it is called."""
        return f"{self.address}:{self.port}"


@dataclass(frozen=True, slots=True)
class Service:
    """An address this process listens on."""

    address: str
    port: int


@dataclass(frozen=True, slots=True)
class Services:
    """The three servers of the router, the tokens of the management API (none: it is for this machine alone), what is
    recorded of requests and where spans go (None: nothing, nowhere).
    """

    extproc: Service
    metrics: Service
    management: Service
    access: tuple[AccessToken, ...] = ()
    replay: ReplaySettings | None = None
    tracing: TracingSettings | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """A whole configuration, ready to serve.

    `revision` is a short hash of the document with environment values resolved away; `entrypoints` maps a public model
    name to a recipe name; `default_entrypoint` is the recipe of requests that name no model, `default_model` the
    provider model when no decision matches. `signal_timeout_ms` is 0 when it follows the request's own deadline. `ask`
    is what of a recipe's questions is asked: all, or those that can still change which decision is selected.
    """

    revision: str
    listeners: tuple[Listener, ...]
    models: Mapping[str, ProviderModel]
    recipes: Mapping[str, Recipe]
    entrypoints: Mapping[str, str]
    default_entrypoint: str | None
    default_model: str | None
    deployments: Mapping[str, Deployment]
    services: Services
    signal_timeout_ms: int
    max_body_bytes: int
    streamed_body: bool
    clear_route_cache: bool
    ask: Literal["all", "needed"] = "all"
    overload: OverloadSettings = DEFAULT_OVERLOAD
    admission: AdmissionSettings = NO_BOUNDS

    @property
    def offers(self) -> Offers | None:
        """What the clients of each listener may name; None where all of them may name any model."""
        if all(listener.offer is None for listener in self.listeners):
            return None
        return Offers({listener.socket: listener.offer for listener in self.listeners})
