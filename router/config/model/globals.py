"""`global`: the router itself, its addresses, and the decision models."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag

from router.config.model.base import Address, Key, Model, Name, NotYet, Port, Text, pattern, soon, within
from router.config.model.providers import EnvName
from router.config.model.services import ManagementApi, Observability, RouterReplay
from router.config.model.signals import Question
from router.config.overload import DEFAULT_WAIT_MS, MOST_RETRY_AFTER_S, MOST_WAIT_MS
from router.config.sizes import HEAD_SHARE, MAX_PARALLEL, REREAD_MARGIN

MIB = 1024 * 1024
GIB = 1024 * MIB


class StreamedBody(Model):
    """Whether Envoy streams request bodies to the router instead of buffering them."""

    enabled: bool = Field(False, description="Stream request bodies (FULL_DUPLEX_STREAMED).")
    max_bytes: NotYet = None
    timeout_sec: NotYet = None


class Admission(Model):
    """How much the router takes on at once. One request more gets the error that clients retry, as for an overloaded
    decision model."""

    max_requests: Annotated[int, Field(ge=1, le=1_000_000)] | None = Field(
        None, description="Requests read or decided at once; from the memory that the process may use if absent."
    )
    max_buffered_bytes: Annotated[int, Field(ge=64 * 1024, le=64 * GIB)] | None = Field(
        None,
        description="Bytes of request bodies held at once, at least max_body_bytes; from the memory that the process "
        "may use if absent.",
    )


class Router(Model):
    """Limits and manners of the external processor."""

    max_body_bytes: int = Field(
        16 * MIB, ge=64 * 1024, le=256 * MIB, description="Largest request body; every limit on the way follows it."
    )
    admission: Admission | None = Field(None, description="How much the router takes on at once.")
    streamed_body: StreamedBody | None = Field(None, description="How request bodies reach the router.")
    clear_route_cache: bool = Field(True, description="Let Envoy choose the route again after the model is selected.")
    enabled: NotYet = None
    skip_processing: NotYet = None
    include_config_models_in_list: NotYet = None


class Service(Model):
    """Where a server of the router listens. Keys that are absent keep that service's default."""

    address: Address | None = Field(None, description="Address to bind; 127.0.0.1 if absent.")
    port: Port | None = Field(None, description="Port to bind.")


class Services(Model):
    """The router's own servers."""

    extproc: Service | None = Field(None, description="The ext_proc gRPC server; 127.0.0.1:50051 if absent.")
    metrics: Service | None = Field(None, description="Prometheus metrics; 127.0.0.1:9190 if absent.")
    management: Service | None = Field(None, description="Health and management; 127.0.0.1:8080 if absent.")
    api: NotYet = None
    response_api: NotYet = None
    observability: Observability | None = Field(None, description="Traces of requests.")
    authz: NotYet = None
    ratelimit: NotYet = None
    management_api: ManagementApi | None = Field(None, description="Who may use the management API.")
    router_replay: RouterReplay | None = Field(None, description="Records of how requests were decided.")


SizeInTokens = Annotated[int, Field(ge=256, le=1_048_576), within(256, 1_048_576)]


class RoutingView(Model):
    """How much of a long text routing questions read."""

    max_tokens: SizeInTokens | None = Field(
        None, description="Tokens, counted as four bytes each; 8192 if absent, 4096 for provider systemone."
    )
    head_share: Annotated[float, Field(ge=0, le=1), within(0, 1)] = Field(
        HEAD_SHARE, description="The head's share of the view; the tail gets the rest."
    )


class ScanWindow(Model):
    """How guards read a whole input: in windows that overlap. What a model cannot take is never sent."""

    tokens: SizeInTokens | None = Field(
        None,
        description="Tokens of a window, counted as four bytes each; 8192 if absent, 4096 for provider systemone.",
    )
    overlap: Annotated[int, Field(ge=0)] | None = Field(
        None,
        description="Tokens that neighbours share, less than half a window; 512 if absent, 256 for provider systemone.",
    )
    max_parallel: Annotated[int, Field(ge=1, le=64), within(1, 64)] = Field(
        MAX_PARALLEL, description="Windows of one request that are asked at a time."
    )
    max_tokens: SizeInTokens | None = Field(
        None, description="Largest window, for inputs of more than 256 windows; what the model takes if absent."
    )
    reread_margin: Annotated[float, Field(ge=0, le=20), within(0, 20)] = Field(
        REREAD_MARGIN,
        description="How far below a threshold, in log-odds, a large window is read again in small ones; 0: never.",
    )


Device = Annotated[
    str,
    soon("mps"),
    pattern(r"auto|cpu|cuda(:\d+)?", "auto, cpu or cuda:N (rocm, xpu and mps are not supported yet)"),
]


class DeploymentAuth(Model):
    """Where the router finds the key of a model that it does not run. The key itself never stands here."""

    api_key_env: EnvName | None = Field(None, description="Environment variable of the router that holds the key.")
    api_key_file: Text | None = Field(None, description="File, readable by the router, that holds the key.")


class Replica(Model):
    """One server of several that serve the same model."""

    endpoint: Text = Field(description="As the deployment's `endpoint`.")
    served_name: NotYet = None
    device: NotYet = None


class DeploymentCapabilities(Model):
    """What a model can be asked, for an API that does not say so itself."""

    question_types: Annotated[list[Literal["noul", "choice", "score", "set", "span"]], Field(min_length=1)] | None = (
        Field(None, description="Types of question; noul, choice and score if absent.")
    )
    modalities: Annotated[list[Annotated[Literal["text"], soon("image", "video")]], Field(min_length=1)] | None = Field(
        None, description="What the model reads: text."
    )


class Deployment(Model):
    """A decision model: started by the router (`artifact`) or reached where it already runs (`endpoint`)."""

    provider: Literal["model_runtime", "systemone"] = Field(
        description="model_runtime: our model runtime, or one that speaks as it does. systemone: a remote API."
    )
    artifact: Text | None = Field(
        None, description="`builtin`, the folder of an artifact, or owner/name of a Hugging Face hub with `revision`."
    )
    revision: Annotated[str, pattern(r"[0-9a-f]{40}", "a commit of 40 hex digits")] | None = Field(
        None, description="Commit of a hub's model; it must have been pulled (pointsman model pull)."
    )
    endpoint: Text | None = Field(
        None,
        description="A runtime that already runs: http://host:port or unix:///path. Of a remote API the full URL: it "
        "ends in /v1/systemone, or in /v1/decisions for one that speaks OpenAI's dialect.",
    )
    replicas: Annotated[list[Replica], Field(min_length=1, max_length=64)] | None = Field(
        None, description="In place of `endpoint`: several servers of the same model."
    )
    served_name: Name | None = Field(
        None, description="Name of the model at `endpoint`; the deployment's name if absent."
    )
    model: Text | None = Field(None, description="Name of a remote API's model.")
    auth: DeploymentAuth | None = Field(None, description="The key that the endpoint wants, sent as a bearer token.")
    presets: dict[Key, Question] = Field(
        default_factory=dict, description="Your own text of well-known questions, by preset name."
    )
    device: Device | None = Field(None, description="Where an artifact runs: auto (default), cpu or cuda:N.")
    timeout_ms: Annotated[int, Field(ge=1, le=60_000)] | None = Field(
        None, description="Bounds one attempt of a call; also the default of its rules' timeout_ms."
    )
    max_concurrent_calls: int = Field(
        512, ge=1, le=4096, description="Calls in flight at once; one more is refused at once as overloaded."
    )
    routing_view: RoutingView | None = Field(None, description="How much of a long text routing questions read.")
    scan_window: ScanWindow | None = Field(None, description="How guards read a whole input.")
    capabilities: DeploymentCapabilities | None = Field(
        None, description="What a remote API's model can be asked, where the API does not say so itself."
    )
    enable_shared_context: bool | None = Field(
        None, description="Keep the tokens of texts across calls, for models that do not read a state once."
    )
    description: str | None = Field(None, description="For people.")
    profile: NotYet = None
    process: NotYet = None
    input: NotYet = None


class Binding(Model):
    """A reference to a deployment."""

    deployment: Name = Field(description="A deployment of global.model_catalog.deployments.")


def _form(value: Any) -> str:
    return "<name>" if isinstance(value, str) else "<binding>"


DecisionModel = Annotated[Annotated[Name, Tag("<name>")] | Annotated[Binding, Tag("<binding>")], Discriminator(_form)]


class System(Model):
    """Models that the router uses unless a rule says otherwise."""

    decision_model: DecisionModel | None = Field(
        None, description="Deployment that rules without `deployment` ask; the embedded model if absent."
    )


class SignalOverload(Model):
    """What becomes of a request when a decision model has no room."""

    action: Literal["refuse", "retry"] = Field(
        "refuse",
        description="refuse: the failure policies of its rules decide at once. retry: it waits, and is answered an "
        "error that clients retry rather than refused or forwarded unread.",
    )
    wait_ms: int = Field(
        DEFAULT_WAIT_MS,
        ge=0,
        le=MOST_WAIT_MS,
        description="How long a request waits for room; 0 does not wait. Rounded up, the Retry-After of the error.",
    )
    retry_after_seconds: int = Field(
        0, ge=0, le=MOST_RETRY_AFTER_S, description="Retry-After of the error that clients retry; 0: from wait_ms."
    )


class ModelCatalog(Model):
    """The decision models."""

    deployments: dict[Name, Deployment] = Field(default_factory=dict, description="Decision models by name.")
    system: System | None = Field(None, description="Bindings of the router itself.")
    signal_timeout_ms: int = Field(
        0, ge=0, le=600_000, description="Bounds all signals of a request; 0 follows the request's own deadline."
    )
    ask: Literal["all", "needed"] = Field(
        "all",
        description="all: every rule that a decision or projection reads. needed: only those that can still change "
        "which decision is selected.",
    )
    on_signal_overload: SignalOverload | None = Field(
        None, description="What becomes of a request when a decision model has no room."
    )
    bindings: NotYet = None
    external: NotYet = None
    modules: NotYet = None


class Global(Model):
    """Everything that is not a recipe, a listener or a backend."""

    router: Router | None = Field(None, description="Limits and manners of the external processor.")
    services: Services | None = Field(None, description="The router's own servers.")
    model_catalog: ModelCatalog | None = Field(None, description="The decision models.")
    stores: NotYet = None
    integrations: NotYet = None
