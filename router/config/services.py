"""What the router's own services are told: who may use the management API, what is recorded and what is traced."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import Final, Literal

from router.config.actions import Recording

DEBUG_HEADER: Final = "pointsman-debug"
"""Where Envoy puts a client's `x-vsr-debug`, on listeners that allow it."""
MATCHED_NAMES: Final = {
    "keyword": "keywords",
    "language": "language",
    "context": "context",
    "structure": "structure",
    "conversation": "conversation",
    "metadata": "metadata",
    "authz": "authz",
    "input_modality": "input-modality",
    "event": "event",
    "domain": "domains",
    "complexity": "complexity",
    "modality": "modality",
    "fact_check": "fact-check",
    "user_feedback": "user-feedback",
    "turn_relation": "turn-relation",
    "embedding": "embeddings",
    "jailbreak": "jailbreak",
    "safety": "safety",
    "pii": "pii",
}
"""What `x-vsr-matched-` goes on with, by family of rules."""
TRACE_HEADERS: Final = ("traceparent", "tracestate")
REQUEST_ID: Final = "x-request-id"

Role = Literal["read", "write", "detail"]


@dataclass(frozen=True, slots=True)
class AccessToken:
    """Where a bearer token is found (exactly one of `env` and `file` is set), and what its bearer may do.

    `read`: previews and what was recorded. `detail`: recorded request text, too. `write`: whatever changes something.
    """

    env: str | None
    file: str | None
    roles: frozenset[Role]


@dataclass(frozen=True, slots=True)
class RedisSettings:
    """A Redis or Valkey server. Where its password is found: at most one of `env` and `file` is set."""

    endpoint: str
    prefix: str
    env: str | None = None
    file: str | None = None


@dataclass(frozen=True, slots=True)
class ReplaySettings:
    """What is recorded of requests, and where: at most `max_records` of the last `ttl_seconds` (0: no end).

    They are kept in the SQLite file `path`, or on the server `redis` where that is set. `every` is how requests are
    recorded whose decision does not say otherwise. Ids that clients send are kept with `capture_personal_data`.
    """

    path: str
    max_records: int
    ttl_seconds: int
    every: Recording
    capture_personal_data: bool = False
    redis: RedisSettings | None = None


@dataclass(frozen=True, slots=True)
class TracingSettings:
    """Where spans go (OTLP over HTTP), and the share (0..1) of requests without a parent that are traced."""

    endpoint: str
    service_name: str
    sample_ratio: float


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address; a name other than localhost counts as public."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == "localhost"
