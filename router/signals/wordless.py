"""Rules that look for no words: the language, the length, the shape of the conversation, who asks, what is attached."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Final

from router.config.heuristics import (
    AuthzRule,
    ContextRule,
    ConversationRule,
    InputModalityRule,
    LanguageRule,
    MetadataRule,
)
from router.questions import UnknownReason
from router.signals.languages import identifier
from router.signals.reading import Reading
from router.signals.seen import Seen
from router.wire.counting import Counts

Evaluate = Callable[[Seen], Reading]
Wordless = LanguageRule | ContextRule | ConversationRule | MetadataRule | AuthzRule | InputModalityRule


def wordless(rule: Wordless) -> Evaluate:
    """One rule as a function."""
    match rule:
        case LanguageRule():
            return _language(rule)
        case ContextRule():
            return _context(rule)
        case ConversationRule():
            return _conversation(rule)
        case MetadataRule():
            return _metadata(rule)
        case AuthzRule():
            return _authz(rule)
    return _modality(rule)


@lru_cache(4096)  # most rules say one of few things, and a record costs more than looking it up
def plain(matched: bool, value: float, confidence: float | None = None) -> Reading:
    """What a rule says that has one number."""
    if not (matched or value or confidence):
        return _NO
    return Reading(None, matched, confidence, {"": value})


_YES: Final = Reading(None, True, None, {"": 1.0})
_NO: Final = Reading(None, False, None, {"": 0.0})
"""What most rules say of most requests."""


def _language(rule: LanguageRule) -> Evaluate:
    identifier()  # while the configuration is loaded, not on the first request

    def evaluate(seen: Seen) -> Reading:
        found = seen.language
        if found is None:
            return Reading(None, None, reason=UnknownReason.NO_TEXT)
        if found.code != rule.language:
            return plain(False, 0.0)
        matched = found.probability >= rule.threshold
        return plain(matched, found.probability, found.probability if matched else None)

    return evaluate


def _context(rule: ContextRule) -> Evaluate:
    most = float("inf") if rule.most is None else rule.most

    def evaluate(seen: Seen) -> Reading:
        tokens = seen.facts.counts.token_floor
        return plain(rule.least <= tokens <= most, float(tokens))

    return evaluate


def _conversation(rule: ConversationRule) -> Evaluate:
    number = _messages(rule.role) if rule.source == "message" else _COUNTS[rule.source]
    predicate = rule.predicate

    def exists(seen: Seen) -> Reading:
        return _YES if number(seen.facts.counts) > 0 else _NO

    def evaluate(seen: Seen) -> Reading:
        value = float(number(seen.facts.counts))
        return plain(value > 0 if predicate is None else predicate.holds(value), value)

    return exists if rule.feature == "exists" else evaluate


def _messages(role: str | None) -> Callable[[Counts], int]:
    if role is None:
        return lambda counts: counts.message_count
    if role == "non_user":
        return lambda counts: counts.message_count - counts.messages.get("user", 0)
    return lambda counts: counts.messages.get(role, 0)


_COUNTS: Final[Mapping[str, Callable[[Counts], int]]] = {
    "tool_definition": lambda counts: counts.tool_definitions,
    "assistant_tool_call": lambda counts: counts.tool_calls,
    "assistant_tool_cycle": lambda counts: counts.tool_results,
    "active_tool_loop": lambda counts: int(counts.active_tool_loop),
    "image_content": lambda counts: counts.images,
}


def _metadata(rule: MetadataRule) -> Evaluate:
    def evaluate(seen: Seen) -> Reading:
        value = seen.facts.metadata.get(rule.key)
        matched = (value is not None) is rule.exists if rule.values is None else value in rule.values
        return plain(matched, float(matched))

    return evaluate


def _authz(rule: AuthzRule) -> Evaluate:
    def evaluate(seen: Seen) -> Reading:
        identity = seen.facts.identity
        matched = identity.user in rule.users or not identity.groups.isdisjoint(rule.groups)
        return plain(matched, float(matched))

    return evaluate


def _modality(rule: InputModalityRule) -> Evaluate:
    def evaluate(seen: Seen) -> Reading:
        number = seen.facts.counts.media.get(rule.modality, 0)
        return plain(number > 0, float(number))

    return evaluate
