"""`providers`: the LLM backends by their logical names."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from router.config.model.base import Model, Name, NotYet, Renamed, Text, pattern, soon

EnvName = Annotated[str, pattern(r"[A-Za-z_][A-Za-z0-9_]*", "the name of an environment variable")]


Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]


class Auth(Model):
    """Where Envoy finds a backend's key. The router never reads the key itself."""

    api_key_env: EnvName | None = Field(None, description="Environment variable of Envoy that holds the key.")
    api_key_file: Text | None = Field(None, description="File, readable by Envoy, that holds the key.")


class BackendRef(Model):
    """One replica of a provider model."""

    endpoint: Text = Field(description="Full URL, such as http://127.0.0.1:8000/v1.")
    weight: int = Field(1, ge=1, le=10_000, description="Share of the requests among the replicas.")
    auth: Auth | None = Field(None, description="The key that Envoy sends to this replica.")
    provider: NotYet = None
    name: NotYet = None
    type: NotYet = None
    extra_headers: NotYet = None
    api_version: NotYet = None
    chat_path: NotYet = None
    auth_header: NotYet = None
    auth_prefix: NotYet = None
    base_url: Annotated[None, Renamed("write the full URL in `endpoint`")] = None
    protocol: Annotated[None, Renamed("write the scheme in `endpoint`: http://host:port/v1 or https://...")] = None
    api_key_env: Annotated[None, Renamed("write `auth: {api_key_env: NAME}`")] = None
    api_key: Annotated[None, Renamed("keys never stand in a configuration: write `auth: {api_key_env: NAME}`")] = None


PerMillion = Annotated[float, Field(ge=0, le=1_000_000)]


class Pricing(Model):
    """What a million tokens cost. 0 is free; a price that is absent is not known."""

    currency: Annotated[str, pattern(r"[A-Z]{3}", "three upper-case letters, such as USD")] = Field(
        "USD", description="Code of the currency."
    )
    prompt_per_1m: PerMillion | None = Field(None, description="Of what the model reads.")
    completion_per_1m: PerMillion | None = Field(None, description="Of what it writes.")
    cached_input_per_1m: NotYet = None
    cache_write_per_1m: NotYet = None


class ProviderModel(Model):
    """A backend LLM."""

    needed: ClassVar = ("backend_refs",)

    name: Name = Field(description="Logical name: used in modelRefs, headers and metrics.")
    api_format: Annotated[Literal["openai", "responses", "anthropic"], soon("systemone")] = Field(
        "openai", description="API that the backend speaks: Chat Completions, Responses or Anthropic Messages."
    )
    provider_model_id: Text | None = Field(
        None, description="Model name sent to the backend; the logical name if absent."
    )
    backend_refs: Annotated[list[BackendRef], Field(min_length=1)] | None = Field(
        None, description="Replicas of this model."
    )
    description: str | None = Field(None, description="For people, and for the systemone selector.")
    deployment: NotYet = None
    param_size: NotYet = None
    pricing: Pricing | None = Field(None, description="What it costs, for selectors that weigh that.")
    context_window_size: Annotated[int, Field(ge=1, le=100_000_000)] | None = Field(
        None, description="Tokens that it takes. Prompts beyond those of all models that could answer are refused."
    )
    capabilities: NotYet = None
    tags: NotYet = None
    quality_score: Annotated[float, Field(ge=0, le=1)] | None = Field(
        None, description="How good its answers are, from 0 to 1, for selectors that weigh that."
    )
    reliability: NotYet = None
    reasoning_family: Name | None = Field(
        None, description="One of providers.defaults.reasoning_families: where models of this kind are told to think."
    )
    external_model_ids: NotYet = None


class ReasoningFamily(Model):
    """Where a kind of model is told to think, when its server reads it elsewhere than the API says."""

    type: Literal["chat_template_kwargs", "reasoning_effort"] = Field(
        description="chat_template_kwargs: an argument of the chat template, true or false; reasoning_effort: a level."
    )
    parameter: Text | None = Field(
        None, description="Name of the argument, such as enable_thinking; of the level, reasoning_effort if absent."
    )


class Defaults(Model):
    """What holds for requests that nothing else decides."""

    model: Name | None = Field(None, description="Provider model for requests that no decision matches.")
    default_model: Annotated[None, Renamed("write `model`")] = None
    reasoning_families: dict[Name, ReasoningFamily] = Field(
        default_factory=dict, description="Kinds of models by name, for reasoning_family."
    )
    default_reasoning_effort: Effort | None = Field(
        None, description="How hard models think that are told to; medium, or the API's own default, if absent."
    )


class Providers(Model):
    """The LLM backends."""

    defaults: Defaults | None = Field(None, description="Fallbacks.")
    models: list[ProviderModel] = Field(default_factory=list, description="Backend LLMs by logical name.")
