"""Decision models that questions can be sent to, and how each is reached."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from router.config.sizes import DEFAULT_SCAN, RoutingView, ScanWindow, WrittenSizes
from router.questions import Capabilities


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
