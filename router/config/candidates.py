"""The candidates of a decision, compiled: part of a `Plan`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

DEFAULT_EFFORT = "medium"
"""How hard a model thinks that is told to, where nothing says how hard."""


SESSION_HEADERS = ("x-session-id", "x-conversation-id", "x-claude-code-session-id")
"""Where clients say which conversation a request belongs to; the first that is there counts."""


@dataclass(frozen=True, slots=True)
class Switch:
    """Where models of a family are told to think, beside the API's own place: a template's argument or a parameter."""

    kind: Literal["chat_template_kwargs", "reasoning_effort"]
    parameter: str


@dataclass(frozen=True, slots=True)
class Reasoning:
    """Whether the model thinks before it answers, and how hard; `effort` is None where nobody says.

    `switch` is that of the model's family, for backends that speak Chat Completions.
    """

    on: bool
    effort: str | None = None
    switch: Switch | None = None


@dataclass(frozen=True, slots=True)
class ModelRef:
    """A candidate backend of a decision: the name of a provider model, and how it is asked by this decision.

    `weight` is its share where candidates are drawn; `lora_name` is sent in place of the provider model's own id.
    """

    model: str
    weight: float = 1.0
    lora_name: str | None = None
    reasoning: Reasoning | None = None
