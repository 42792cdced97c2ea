"""`listeners[]`: where Envoy takes the clients' requests."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from router.config.model.base import Address, Model, Name, NotYet, Port, pattern

Duration = Annotated[str, pattern(r"\d+(\.\d+)?(ms|s|m|h)", "a duration such as 500ms, 300s, 5m or 1h")]


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
    models: NotYet = None
    apis: NotYet = None
    identity: NotYet = None
    tls: NotYet = None
    debug: NotYet = None
