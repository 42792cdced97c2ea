"""`recipes[].decisions[].plugins[]`: what a selected decision does besides naming candidates."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from router.config.model.base import Model, Text, pattern

LATER_PLUGINS = (
    *("response_cache", "response-cache", "semantic-cache", "semantic_cache", "rag", "tools", "tool_selection"),
    *("response_guard", "response_jailbreak", "masking", "memory", "image_gen", "hallucination"),
)


class FastResponseSettings(Model):
    """The answer that is given instead of a model's."""

    message: Text = Field(description="What the client is told, word for word.")


class FastResponse(Model):
    """Answer at once, with status 200 and in the client's own format; no backend is asked."""

    type: Literal["fast_response"]
    configuration: FastResponseSettings = Field(description="What is answered.")


HeaderName = Annotated[str, pattern(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,128}", "the name of a header")]
HeaderValue = Annotated[
    str, pattern(r"[!-~](?:[ -~]{0,2046}[!-~])?", "1 to 2,048 printable ASCII characters without spaces at the ends")
]


class Header(Model):
    """A header with a fixed value."""

    name: HeaderName = Field(description="Name of the header.")
    value: HeaderValue = Field(description="Its value, as it stands here.")


class HeaderMutationSettings(Model):
    """Changes of the headers that the backend gets."""

    add: list[Header] = Field(default_factory=list, description="Written where the client sent none of the name.")
    update: list[Header] = Field(default_factory=list, description="Written in place of what the client sent.")
    delete: list[HeaderName] = Field(default_factory=list, description="Removed.")


class HeaderMutation(Model):
    """Change headers of the request on its way to the backend."""

    type: Literal["header_mutation"]
    configuration: HeaderMutationSettings = Field(description="What is changed.")


class SystemPromptSettings(Model):
    """The operator's system text."""

    enabled: bool = Field(True, description="false: as if the plugin were not there.")
    mode: Literal["insert", "replace", "append"] = Field(
        "insert", description="Before, in place of, or after the system text of the client."
    )
    system_prompt: Text = Field(description="The text.")


class SystemPrompt(Model):
    """Give the backend a system prompt of the operator's."""

    type: Literal["system_prompt"]
    configuration: SystemPromptSettings = Field(description="What is written, and where.")


class RequestParamsSettings(Model):
    """Bounds on what clients may ask of the backend."""

    blocked_params: list[Annotated[str, pattern(r"[!-~]{1,200}", "the name of a parameter")]] = Field(
        default_factory=list, description="Parameters that are left out of the request."
    )
    max_tokens_limit: Annotated[int, Field(ge=1, le=2**31 - 1)] | None = Field(
        None, description="Larger numbers of tokens to generate are lowered to this."
    )
    max_n: Annotated[int, Field(ge=1, le=1000)] | None = Field(
        None, description="Larger numbers of answers (Chat Completions) are lowered to this."
    )
    strip_unknown: bool = Field(False, description="Leave out parameters that the API's reference does not name.")


class RequestParams(Model):
    """Bound the parameters of the request."""

    type: Literal["request_params"]
    configuration: RequestParamsSettings = Field(description="The bounds.")


class DiagnosticsSettings(Model):
    """Bounds on what is told."""

    enabled: bool = Field(True, description="false: as if the plugin were not there.")
    max_signals: int = Field(32, ge=0, le=128, description="Signal rules that are told at most.")
    max_projections: int = Field(16, ge=0, le=64, description="Projection outputs that are told at most.")
    max_text_runes: int = Field(128, ge=1, le=512, description="Characters of a name or label at most.")
    max_payload_bytes: int = Field(16_384, ge=512, le=65_536, description="Bytes of the whole, as JSON, at most.")


class DecisionDiagnostics(Model):
    """Tell later filters and access logs of Envoy, in dynamic metadata, why the decision was selected."""

    type: Literal["decision_diagnostics"]
    configuration: DiagnosticsSettings | None = Field(None, description="How much is told.")


class ReplaySettings(Model):
    """What is recorded of the decision's requests, whatever global.services.router_replay says of others."""

    enabled: bool = Field(True, description="false: they are not recorded.")
    max_records: int = Field(10_000, ge=1, le=10_000_000, description="Records of this decision that are kept.")
    capture_request_body: bool = Field(True, description="Keep the text of requests.")
    capture_response_body: bool = Field(True, description="Keep the text of answers.")
    max_body_bytes: int = Field(4096, ge=1, le=16 * 1024 * 1024, description="How much of each body is kept.")
    max_tool_trace_steps: int = Field(
        100, ge=0, le=10_000, description="Calls of tools, and their results, that are named; older ones are left out."
    )


class RouterReplay(Model):
    """Record the requests of this decision as it says. The store is that of global.services.router_replay."""

    type: Literal["router_replay"]
    configuration: ReplaySettings | None = Field(None, description="What is recorded.")


Plugin = Annotated[
    FastResponse | HeaderMutation | SystemPrompt | RequestParams | DecisionDiagnostics | RouterReplay,
    Field(discriminator="type"),
]
