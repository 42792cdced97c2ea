"""`listeners[]`: where Envoy takes the clients' requests."""

from __future__ import annotations

import ipaddress
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from router.config.model.base import Address, Model, Name, NotYet, Port, pattern, wrong

Duration = Annotated[str, pattern(r"\d+(\.\d+)?(ms|s|m|h)", "a duration such as 500ms, 300s, 5m or 1h")]


def _network(value: Any) -> Any:
    if isinstance(value, str) and "${" not in value:
        try:
            return str(ipaddress.ip_network(value))
        except ValueError:
            raise wrong("must be an address or a network, such as 10.0.0.7 or 10.0.0.0/8") from None
    return value


class Identity(Model):
    """Whose word is taken for who asks (`x-authz-user-id`, `x-authz-user-groups`)."""

    trust_headers: bool = Field(False, description="Take the identity headers of `trusted_peers`; drop all others'.")
    trusted_peers: list[Annotated[str, BeforeValidator(_network)]] = Field(
        default_factory=list, description="Addresses and networks of the proxies that authenticate."
    )


class Debug(Model):
    """What callers may ask about how they were decided."""

    allow: bool = Field(False, description="Answer `x-vsr-debug: true` with `x-vsr-trace` and `x-vsr-matched-*`.")


class Listener(Model):
    """A listener of Envoy."""

    name: Name = Field(description="Unique name of the listener.")
    address: Address = Field(description="Address to bind, such as 127.0.0.1 or 0.0.0.0.")
    port: Port = Field(description="Port to bind.")
    timeout: Duration = Field("1200s", description="Idle timeout of connections and streams, such as 300s.")
    unknown_paths: Literal["pass", "refuse"] = Field(
        "pass", description="What to do with paths outside the LLM APIs: let them through untouched, or refuse them."
    )
    api_keys: NotYet = None
    models: list[Name] | None = Field(
        None,
        min_length=1,
        description="Names that clients may ask for: of entrypoints and provider models; all of them if absent.",
    )
    apis: NotYet = None
    identity: Identity | None = Field(None, description="Who may say who asks; nobody if absent.")
    tls: NotYet = None
    debug: Debug | None = Field(None, description="What callers may ask about how they were decided.")
