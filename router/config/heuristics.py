"""Rules that the router computes by itself, as the plan holds them: one record a family.

`name` is the rule's key (`config.families`). Nothing here is compiled: `signals.heuristics` does that once per recipe.

Source: `reference.md` 4.3.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from router.questions import Predicate

KeywordMethod = Literal["exact", "regex", "fuzzy", "bm25", "ngram"]
KeywordOperator = Literal["AND", "OR", "NOR"]
StructureSource = Literal["regex", "keyword_set", "sequence", "text_bytes"]
ConversationSource = Literal[
    "message", "tool_definition", "assistant_tool_call", "assistant_tool_cycle", "active_tool_loop", "image_content"
]
MessageRole = Literal["user", "assistant", "system", "developer", "tool", "non_user"]
InputModality = Literal["text", "image", "audio", "video"]


@dataclass(frozen=True, slots=True)
class KeywordRule:
    """Words and phrases in the current user turn.

    `threshold` is the least score of `bm25` and `ngram`, `edits` the most edits of `fuzzy`, `arity` the length of an
    n-gram in characters.
    """

    family: ClassVar[str] = "keyword"
    name: str
    operator: KeywordOperator
    method: KeywordMethod
    keywords: tuple[str, ...]
    case_sensitive: bool = False
    threshold: float = 0.0
    edits: int = 2
    arity: int = 3


@dataclass(frozen=True, slots=True)
class LanguageRule:
    """The language of the current user turn, by its ISO 639-1 code, from a probability on."""

    family: ClassVar[str] = "language"
    name: str
    language: str
    threshold: float


@dataclass(frozen=True, slots=True)
class ContextRule:
    """How many tokens the whole request needs at least; both bounds inclusive, no `most` is no bound."""

    family: ClassVar[str] = "context"
    name: str
    least: int
    most: int | None


@dataclass(frozen=True, slots=True)
class StructureRule:
    """How the current user turn is written.

    `density` divides by the text's units: each character of a script without spaces, each other run of letters.
    """

    family: ClassVar[str] = "structure"
    name: str
    feature: Literal["exists", "count", "density", "sequence"]
    source: StructureSource
    predicate: Predicate | None = None
    pattern: str | None = None
    keywords: tuple[str, ...] = ()
    sequences: tuple[tuple[str, ...], ...] = ()
    case_sensitive: bool = False


@dataclass(frozen=True, slots=True)
class ConversationRule:
    """The shape of the conversation: messages, tools, calls, images."""

    family: ClassVar[str] = "conversation"
    name: str
    feature: Literal["exists", "count"]
    source: ConversationSource
    role: MessageRole | None = None
    predicate: Predicate | None = None


@dataclass(frozen=True, slots=True)
class MetadataRule:
    """A value of the request's `metadata`: one of `values`, or (when None) whether it is there at all."""

    family: ClassVar[str] = "metadata"
    name: str
    key: str
    values: frozenset[str] | None
    exists: bool = True


@dataclass(frozen=True, slots=True)
class AuthzRule:
    """Who asks, as a trusted peer says: one of these users, or a member of one of these groups."""

    family: ClassVar[str] = "authz"
    name: str
    role: str
    users: frozenset[str]
    groups: frozenset[str]


@dataclass(frozen=True, slots=True)
class InputModalityRule:
    """Whether the user's messages hold a kind of content."""

    family: ClassVar[str] = "input_modality"
    name: str
    modality: InputModality


@dataclass(frozen=True, slots=True)
class EventRule:
    """Words of machine-made events in the current user turn: one criterion that is found is a match."""

    family: ClassVar[str] = "event"
    name: str
    event_types: tuple[str, ...] = ()
    severities: tuple[str, ...] = ()
    action_codes: tuple[str, ...] = ()
    temporal: bool = False

    @property
    def criteria(self) -> int:
        """How many criteria it has."""
        return sum((bool(self.event_types), bool(self.severities), bool(self.action_codes), self.temporal))


HeuristicRule = (
    KeywordRule
    | LanguageRule
    | ContextRule
    | StructureRule
    | ConversationRule
    | MetadataRule
    | AuthzRule
    | InputModalityRule
    | EventRule
)
