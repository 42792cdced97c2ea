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
from router.config.guards import GuardRule
from router.config.heuristics import HeuristicRule
from router.config.measures import MeasureRule, Price
from router.config.offers import Offer, Offers
from router.config.overload import DEFAULT_OVERLOAD, NO_BOUNDS, AdmissionSettings, OverloadSettings
from router.config.services import AccessToken, ReplaySettings, TracingSettings
from router.config.sizes import DEFAULT_SCAN, RoutingView, ScanWindow, WrittenSizes
from router.questions import Answer, Capabilities, Predicate, Question

OnError = Literal["match", "no_match"]
OnUnknown = Literal["match", "no_match", "fail_request"]
ValueSource = Literal["binary", "confidence", "raw", "score"]
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


class Dialect(StrEnum):
    """How a server is asked.

    RUNTIME is System One with what model runtimes add (several states in a call, options); SYSTEMONE the base that
    every server of the protocol reads; OPENAI the Decisions API.
    """

    RUNTIME = "runtime"
    SYSTEMONE = "systemone"
    OPENAI = "openai"


@dataclass(frozen=True, slots=True)
class KeySource:
    """Where the router finds an API key. Exactly one is set."""

    env: str | None = None
    file: str | None = None


@dataclass(frozen=True, slots=True)
class Deployment:
    """A decision model that questions can be sent to.

    Exactly one of `artifact` (started and watched by the router) and `endpoint` (`http://h:p`, `unix:///path`, or the
    full URL of a remote API; never started by us) is set. `replicas` are further endpoints of the same model, `key`
    where their key is. `revision` is the commit of an artifact of a hub, and `shared_context` keeps the tokens of
    states across its calls. `view` bounds what routing questions read, `scan` says how guards read all of it; `sizes`
    is what both come from (None: they stay as they are). `timeout_ms` bounds one attempt of a call to an attached or
    remote model; None when not written. `max_calls` bounds the calls in flight. `capabilities` is None while nobody has
    told what the model can do.
    """

    name: str
    artifact: str | None
    endpoint: str | None
    served_name: str
    device: str
    timeout_ms: int | None
    view: RoutingView
    capabilities: Capabilities | None
    dialect: Dialect = Dialect.RUNTIME
    replicas: tuple[str, ...] = ()
    key: KeySource | None = None
    max_calls: int = 512
    revision: str | None = None
    shared_context: bool = False
    scan: ScanWindow = DEFAULT_SCAN
    sizes: WrittenSizes | None = None

    @property
    def endpoints(self) -> tuple[str, ...]:
        """Every endpoint of the model; none for one that the router starts."""
        return () if self.endpoint is None else (self.endpoint, *self.replicas)

    def described(self, capabilities: Capabilities) -> Deployment:
        """The same once its model has said what it can do: what it reads is cut to its length."""
        if self.sizes is None:
            return replace(self, capabilities=capabilities)
        length = capabilities.readable_tokens
        return replace(self, capabilities=capabilities, view=self.sizes.view(length), scan=self.sizes.scan(length))


@dataclass(frozen=True, slots=True)
class QuestionRule:
    """A signal rule that asks a decision model: one question to one deployment about one part of the request.

    `name` is the rule's key (`config.families`). `labels` are the options of a choice by which the rule as a whole
    matches, where not by all. `opening` is what is known without asking when nothing precedes the current turn.
    `aggregation` is what a rule makes of the similarities to its candidates.
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
class ScoreInput:
    """One term of a weighted sum.

    `family` "projection": `source` "score" reads another score by name, "confidence" a mapping output's confidence.
    Any other family: `name` is the key of a rule, `key` one of its options or labels (None: the bare value).
    `match`/`miss` are the values of a binary input.
    """

    family: str
    name: str
    key: str | None
    weight: float
    source: ValueSource
    match: float
    miss: float


@dataclass(frozen=True, slots=True)
class Score:
    """A named weighted sum over signals and other scores."""

    name: str
    inputs: tuple[ScoreInput, ...]


@dataclass(frozen=True, slots=True)
class Output:
    """A named band of a score; decisions read it as `type: projection`."""

    name: str
    bounds: Predicate


@dataclass(frozen=True, slots=True)
class BandMapping:
    """Turns a score into outputs: the first that holds (`threshold_bands`) or all that hold (`multi_emit`)."""

    name: str
    source: str
    method: Literal["threshold_bands", "multi_emit"]
    slope: float
    outputs: tuple[Output, ...]


@dataclass(frozen=True, slots=True)
class Partition:
    """Rules of which at most one matches: the surest; `default` when none does.

    `members` and `default` are keys of rules. With `temperature`, the winner's confidence is its softmax among those
    that matched.
    """

    name: str
    members: tuple[str, ...]
    default: str
    temperature: float | None = None


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

    `quality` is from 0 to 1. It and the price are None where the configuration does not say.
    """

    name: str
    api_format: ApiFormat
    provider_model_id: str
    backends: tuple[Backend, ...]
    price: Price | None = None
    quality: float | None = None


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
