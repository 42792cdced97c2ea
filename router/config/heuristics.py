"""Rules that the router computes by itself, as the plan holds them: one record a family.

`name` is the rule's key (`config.families`). Nothing here is compiled: `signals.heuristics` does that once per recipe.

Source: `reference.md` 4.3.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Final, Literal

from router.questions import Predicate

KeywordMethod = Literal["exact", "regex", "fuzzy", "bm25", "ngram"]
KeywordOperator = Literal["AND", "OR", "NOR"]
StructureSource = Literal["regex", "keyword_set", "sequence", "text_bytes"]
ConversationSource = Literal[
    "message", "tool_definition", "assistant_tool_call", "assistant_tool_cycle", "active_tool_loop", "image_content"
]
MessageRole = Literal["user", "assistant", "system", "developer", "tool", "non_user"]
InputModality = Literal["text", "image", "audio", "video"]

LANGUAGES: Final = tuple(
    [
        "ar",
        "bg",
        "bn",
        "ca",
        "cs",
        "da",
        "de",
        "el",
        "en",
        "es",
        "et",
        "fa",
        "fi",
        "fr",
        "gu",
        "he",
        "hi",
        "hr",
        "hu",
        "id",
        "it",
        "ja",
        "kn",
        "ko",
        "lt",
        "lv",
        "mk",
        "ml",
        "mr",
        "ms",
        "nl",
        "no",
        "pa",
        "pl",
        "pt",
        "ro",
        "ru",
        "sk",
        "sl",
        "sq",
        "sr",
        "sv",
        "sw",
        "ta",
        "te",
        "th",
        "tl",
        "tr",
        "uk",
        "ur",
        "vi",
        "zh",
    ]
)
"""The languages that are told apart, by ISO 639-1 code: the fewer there are, the surer a short text is."""


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


def highest_value(rule: HeuristicRule) -> float:
    """The greatest value that a rule can have; the least is 0."""
    match rule:
        case LanguageRule() | MetadataRule() | AuthzRule():
            return 1.0
        case EventRule():
            return float(rule.criteria)
        case StructureRule() | ConversationRule() if rule.feature not in {"count"}:
            return 1.0
    return math.inf
