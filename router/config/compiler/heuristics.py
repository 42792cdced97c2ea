"""Rules that the router computes by itself: do they make sense, and what do they become in the plan?"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from router.config.compiler.context import Context
from router.config.expressions import BadPattern, compile_pattern
from router.config.families import rule_key
from router.config.heuristics import (
    AuthzRule,
    ContextRule,
    ConversationRule,
    EventRule,
    HeuristicRule,
    InputModalityRule,
    KeywordRule,
    LanguageRule,
    MetadataRule,
    StructureRule,
)
from router.config.model import heuristics as dialect
from router.config.model.base import Model
from router.config.problems import Path
from router.questions import Predicate

_NUMBER = (0.0, float("inf"))
_SHARE = (0.0, 1.0)
_OWN_KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "fuzzy": ("fuzzy_threshold",),
    "bm25": ("bm25_threshold",),
    "ngram": ("ngram_threshold", "ngram_arity"),
}
_SOURCE_KEYS: Final = {"regex": "pattern", "keyword_set": "keywords", "sequence": "sequences"}


def compile_heuristic(context: Context, family: str, rule: Model) -> HeuristicRule | None:
    """The rule resolved, or None after reporting what is wrong with it."""
    before = len(context.document.problems)
    compiled = _COMPILE[family](context, rule)
    errors = any(problem.severity == "error" for problem in context.document.problems[before:])
    return None if errors else compiled


def _keyword(context: Context, rule: dialect.KeywordRule) -> HeuristicRule:
    key = rule_key("keyword", rule.name)
    method = rule.method
    if rule.fuzzy_match is not None:
        if rule.has("method") and (method == "fuzzy") is not rule.fuzzy_match:
            context.error(rule.at("fuzzy_match"), f"contradicts method: {method}", "keep one of them", key=True)
        method = "fuzzy" if rule.fuzzy_match else method
    for owner, keys in _OWN_KEYS.items():
        for name in keys:
            if rule.has(name) and method != owner:
                message = f"{name} has no effect with method: {method}"
                context.error(rule.at(name), message, f"it belongs to method: {owner}", key=True)
    for index, keyword in enumerate(rule.keywords):
        path = rule.at_item("keywords", index)
        if method == "regex":
            _check_pattern(context, keyword, path, "to find it as it stands, write method: exact")
        else:
            _check_word(context, keyword, path, letters=method != "exact")
    threshold = 0.0
    if method == "bm25":
        threshold = 0.1 if rule.bm25_threshold is None else rule.bm25_threshold
    elif method == "ngram":
        threshold = 0.4 if rule.ngram_threshold is None else rule.ngram_threshold
    edits = 2 if rule.fuzzy_threshold is None else rule.fuzzy_threshold
    arity = rule.ngram_arity or 3
    words = tuple(rule.keywords)
    return KeywordRule(key, rule.operator, method, words, rule.case_sensitive, threshold, edits, arity)


def _language(context: Context, rule: dialect.LanguageRule) -> HeuristicRule:
    return LanguageRule(rule_key("language", rule.name), rule.name, rule.threshold)


def _context(context: Context, rule: dialect.ContextRule) -> HeuristicRule:
    least = rule.min_tokens or 0
    if rule.min_tokens is None and rule.max_tokens is None and not context.is_cut(rule.at()):
        context.error(rule.at(), "needs min_tokens, max_tokens, or both", key=True)
    if rule.max_tokens is not None and rule.max_tokens < least:
        context.error(rule.at("max_tokens"), "is below min_tokens, so nothing can match", key=True)
    return ContextRule(rule_key("context", rule.name), least, rule.max_tokens)


def _structure(context: Context, rule: dialect.StructureRule) -> HeuristicRule:
    feature, source = rule.feature, rule.feature.source
    needed = _SOURCE_KEYS.get(source.type)
    for kind, name in _SOURCE_KEYS.items():
        if source.has(name) and name != needed:
            context.error(source.at(name), f"{name} belongs to type: {kind}", "remove it", key=True)
    if needed is not None:
        context.need(source, needed)
    if (feature.type == "sequence") is not (source.type == "sequence"):
        hint = "a sequence reads a source of type sequence, and nothing else does"
        context.error(feature.at("type"), f"{feature.type} cannot be made of {source.type}", hint)
    if source.type == "text_bytes" and feature.type != "count":
        context.error(feature.at("type"), f"{feature.type} cannot be made of text_bytes", "write count")
    if source.pattern is not None:
        _check_pattern(context, source.pattern, source.at("pattern"), None)
    for index, keyword in enumerate(source.keywords or ()):
        _check_word(context, keyword, source.at_item("keywords", index))
    for sequence in source.sequences or ():
        for word in sequence:
            _check_word(context, word, source.at("sequences"))
    limits = _SHARE if feature.type == "density" else _NUMBER
    predicate = _number_test(context, rule, feature.type in {"count", "density"}, limits)
    return StructureRule(
        name=rule_key("structure", rule.name),
        feature=feature.type,
        source=source.type,
        predicate=predicate,
        pattern=source.pattern,
        keywords=tuple(source.keywords or ()),
        sequences=tuple(tuple(sequence) for sequence in source.sequences or ()),
        case_sensitive=source.case_sensitive,
    )


def _conversation(context: Context, rule: dialect.ConversationRule) -> HeuristicRule:
    feature, source = rule.feature, rule.feature.source
    if source.role is not None and source.type != "message":
        context.error(source.at("role"), "role belongs to type: message", "remove it", key=True)
    predicate = _number_test(context, rule, feature.type == "count", _NUMBER)
    key = rule_key("conversation", rule.name)
    return ConversationRule(key, feature.type, source.type, source.role, predicate)


def _metadata(context: Context, rule: dialect.MetadataRule) -> HeuristicRule:
    test = rule.predicate
    written = [name for name in ("equals", "in", "exists") if test.has(name)]
    if len(written) != 1 and not context.is_cut(test.at()):
        context.error(test.at(), "needs exactly one of equals, in, exists", key=True)
    values = test.in_ if test.equals is None else [test.equals]
    kept = None if values is None else frozenset(values)
    return MetadataRule(rule_key("metadata", rule.name), rule.key, kept, test.exists is not False)


def _authz(context: Context, rule: dialect.RoleBinding) -> HeuristicRule:
    users = frozenset(subject.name for subject in rule.subjects if subject.kind == "User")
    groups = frozenset(subject.name for subject in rule.subjects if subject.kind == "Group")
    return AuthzRule(rule_key("authz", rule.name), rule.role, users, groups)


def _modality(context: Context, rule: dialect.InputModalityRule) -> HeuristicRule:
    return InputModalityRule(rule_key("input_modality", rule.name), rule.modality)


def _event(context: Context, rule: dialect.EventRule) -> HeuristicRule:
    for name in ("event_types", "severities", "action_codes"):
        for index, word in enumerate(getattr(rule, name) or ()):
            _check_word(context, word, rule.at_item(name, index))
    compiled = EventRule(
        rule_key("event", rule.name),
        _words(rule.event_types),
        _words(rule.severities),
        _words(rule.action_codes),
        rule.temporal,
    )
    if not compiled.criteria and not context.is_cut(rule.at()):
        hint = "add event_types, severities, action_codes or temporal: true"
        context.error(rule.at(), "nothing to look for", hint, key=True)
    return compiled


def _number_test(
    context: Context, rule: dialect.StructureRule | dialect.ConversationRule, counts: bool, limits: tuple[float, float]
) -> Predicate | None:
    if rule.predicate is not None and not counts:
        what = rule.feature.type
        context.error(rule.at("predicate"), f"{what} takes no predicate", "it is there or it is not", key=True)
        return None
    if rule.predicate is None:
        if counts and not context.is_cut(rule.at("predicate")):
            message = f"{rule.feature.type} needs a predicate"
            context.error(rule.at(), message, "for example predicate: {gte: 2}", key=True)
        return None
    return context.predicate(rule.predicate, limits)


def _check_pattern(context: Context, pattern: str, path: Path, hint: str | None) -> None:
    if context.is_unset(path):
        return
    try:
        compile_pattern(pattern, case_sensitive=True)
    except BadPattern as error:
        context.error(path, f"is not a regular expression of RE2: {error}", hint)


def _check_word(context: Context, word: str, path: Path, *, letters: bool = False) -> None:
    if context.is_unset(path):
        return
    if letters and not any(character.isalnum() for character in word):
        context.error(path, "holds no letters to compare", "write method: exact")
    elif not word.strip():
        context.error(path, "holds nothing to find")


def _words(words: Sequence[str] | None) -> tuple[str, ...]:
    return tuple(words or ())


_COMPILE: Final[Mapping[str, Callable[[Context, Any], HeuristicRule]]] = {
    "keyword": _keyword,
    "language": _language,
    "context": _context,
    "structure": _structure,
    "conversation": _conversation,
    "metadata": _metadata,
    "authz": _authz,
    "input_modality": _modality,
    "event": _event,
}
