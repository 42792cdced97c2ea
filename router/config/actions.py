"""What a selected decision does besides naming candidates, compiled: part of a `Plan`."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class HeaderChanges:
    """Headers of the request that goes to the backend; names are lower case.

    `add` are written where the client sent none of the name, `update` in place of what it sent, `delete` are removed.
    """

    add: tuple[tuple[str, str], ...] = ()
    update: tuple[tuple[str, str], ...] = ()
    delete: tuple[str, ...] = ()

    def written(self, sent: Container[str]) -> dict[str, str]:
        """What is written in place of the client's, when it sent headers of these names."""
        return {name: value for name, value in self.add if name not in sent} | dict(self.update)


@dataclass(frozen=True, slots=True)
class SystemPrompt:
    """System text that is put before (`insert`), after (`append`) or in place of (`replace`) the client's."""

    mode: Literal["insert", "replace", "append"]
    text: str


@dataclass(frozen=True, slots=True)
class RequestParams:
    """Bounds on what clients ask of the backend. `blocked` are left out; larger numbers than the limits are lowered.

    `strip_unknown` leaves out what the format's own reference does not name.
    """

    blocked: frozenset[str] = frozenset()
    max_tokens_limit: int | None = None
    max_n: int | None = None
    strip_unknown: bool = False


@dataclass(frozen=True, slots=True)
class Diagnostics:
    """How much dynamic metadata may say about a decision: numbers of entries, characters of a text, bytes in all."""

    max_signals: int = 32
    max_projections: int = 16
    max_text_runes: int = 128
    max_payload_bytes: int = 16_384


@dataclass(frozen=True, slots=True)
class Retention:
    """What is kept of a turn and of its conversation. None: the decision does not say.

    `drop` keeps nothing of the turn; `keep_current_model` keeps the conversation on the model that answered last,
    whichever decision that was; `prefer_prefix_retention` says whether what is cached of its prompt is worth keeping.
    """

    drop: bool | None = None
    keep_current_model: bool | None = None
    prefer_prefix_retention: bool | None = None

    def told(self) -> dict[str, str]:
        """What is told of it, by key of Envoy's dynamic metadata: all that was written, `false` too."""
        written = {
            "drop": self.drop,
            "keep_current_model": self.keep_current_model,
            "prefer_prefix": self.prefer_prefix_retention,
        }
        return {f"retention_{key}": str(value).lower() for key, value in written.items() if value is not None}


@dataclass(frozen=True, slots=True)
class Recording:
    """What is recorded of requests, beside how they were decided: of each body up to `max_body_bytes`.

    `max_records` bounds the records of one decision; None: only all together are bounded. `tool_steps` is how many
    calls of tools and results are named, of requests whose text is recorded.
    """

    enabled: bool = True
    request_body: bool = False
    response_body: bool = False
    max_body_bytes: int = 4096
    max_records: int | None = None
    tool_steps: int = 0


@dataclass(frozen=True, slots=True)
class Actions:
    """The plugins of one decision, and what it emits; None and empty: it has none of that kind.

    Their order in the document is no order. `fast_response` is the text that is answered at once, without any backend.
    `recording` replaces what holds for the requests of other decisions.
    """

    fast_response: str | None = None
    headers: HeaderChanges | None = None
    system_prompt: SystemPrompt | None = None
    params: RequestParams | None = None
    diagnostics: Diagnostics | None = None
    retention: Retention | None = None
    recording: Recording | None = None

    @property
    def drops(self) -> bool:
        """Whether nothing of the turn is kept."""
        return self.retention is not None and self.retention.drop is True


NOTHING = Actions()
NO_HEADERS = HeaderChanges()
