"""`global.services` beyond addresses: the management API, records and traces of requests."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from router.config.model.base import Model, Name, NotYet, Text, pattern, soon
from router.config.model.providers import EnvName
from router.config.services import Role


class ManagementToken(Model):
    """A bearer token of the management API. The token itself never stands here."""

    env: EnvName | None = Field(None, description="Environment variable that holds the token.")
    file: Text | None = Field(None, description="File that holds the token.")
    roles: list[Role] = Field(
        min_length=1,
        description="read: previews and records. detail: recorded text, too. write: what changes something.",
    )


class ManagementAuth(Model):
    """Who may use the management API."""

    mode: Literal["bearer"] = Field("bearer", description="`Authorization: Bearer TOKEN`.")
    tokens: list[ManagementToken] = Field(min_length=1, description="The tokens that are accepted.")


class RedisServer(Model):
    """A Redis or Valkey server that routers share."""

    endpoint: Annotated[
        Text, pattern(r"(rediss?://[^\s@:]*@?[^\s@]+|unix://\S+)", "a URL of redis, rediss or unix without a password")
    ] = Field(description="Such as redis://127.0.0.1:6379/0; a user's name may stand in it, a password never.")
    password_env: EnvName | None = Field(None, description="Environment variable that holds the password.")
    password_file: Text | None = Field(None, description="File that holds the password.")
    key_prefix: Annotated[str, pattern(r"[0-9A-Za-z_.:\-]{1,64}", "1 to 64 letters, digits and `_.:-`")] = Field(
        "pointsman:replay", description="What the names of keys begin with; routers that share records share it."
    )


class RouterReplay(Model):
    """Records of how requests were decided. Off unless `enabled`, or where a decision has the plugin router_replay."""

    enabled: bool = Field(False, description="Record every request.")
    store_backend: Annotated[Literal["sqlite", "redis"], soon("memory", "postgres", "milvus", "qdrant")] = Field(
        "sqlite", description="Where records are kept: an SQLite file, or a Redis or Valkey server for several routers."
    )
    path: Text | None = Field(None, description="The SQLite file; relative to the configuration. Needed with sqlite.")
    redis: RedisServer | None = Field(None, description="The server. Needed with redis.")
    max_records: int = Field(10_000, ge=1, le=10_000_000, description="Records kept; the oldest make room.")
    ttl_seconds: int = Field(7 * 24 * 3600, ge=0, description="Seconds that a record is kept; 0: no end.")
    capture_request_body: bool = Field(False, description="Keep the text of requests.")
    capture_response_body: bool = Field(False, description="Keep the text of answers.")
    max_body_bytes: int = Field(4096, ge=1, le=16 * 1024 * 1024, description="How much of a captured body is kept.")
    capture_personal_data: bool = Field(False, description="Keep request and session ids that clients send.")
    async_writes: NotYet = None


class Tracing(Model):
    """Spans of requests. Off unless `enabled`; needs the extra `otel`."""

    enabled: bool = Field(False, description="Send spans.")
    exporter: Literal["otlp"] = Field("otlp", description="OTLP over HTTP.")
    endpoint: Annotated[Text, pattern(r"https?://[^\s]+", "a URL of http or https")] = Field(
        "http://127.0.0.1:4318/v1/traces", description="The collector's URL for traces."
    )
    service_name: Name = Field("pointsman", description="`service.name` of the spans.")
    sample_ratio: float = Field(
        1.0, ge=0, le=1, description="Share of requests without a parent that are traced; else the parent decides."
    )


class Observability(Model):
    """What is told of requests. Metrics are always on: `global.services.metrics`."""

    tracing: Tracing | None = Field(None, description="Spans of requests.")
    metrics: NotYet = None


class ManagementApi(Model):
    """The API on the management port. Health and readiness are always public."""

    auth: ManagementAuth | None = Field(None, description="Needed on any other address than a loopback one.")
    roles: NotYet = None
