"""The rules of a recipe that the router computes by itself, compiled once and read together.

`compile_heuristics` turns each rule into a small function; words and expressions of all rules go into two shared
automata, so that a text is read once by each, whatever the number of rules. A family that no rule uses costs nothing.

Source: `reference.md` 4.3.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Final

from router.config.expressions import compile_pattern
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
from router.questions import UnknownReason
from router.signals import similar
from router.signals.facts import RequestFacts
from router.signals.folding import fold
from router.signals.languages import Language, identifier, language_of
from router.signals.lazy import lazy
from router.signals.literals import Found, Literals
from router.signals.patterns import Patterns
from router.signals.reading import Reading
from router.signals.scripts import units
from router.wire.counting import Counts

URGENT: Final = (
    *("urgent", "urgently", "immediate", "immediately", "asap", "deadline"),
    *("time-sensitive", "time-critical", "right now", "critical window"),
)
"""What `temporal` of an event rule looks for."""

_REGEX_CHARACTERS: Final = frozenset("\\.^$*+?{}[]|()")


class Seen:
    """One request as compiled rules read it: its facts, and what the shared automata found."""

    def __init__(self, facts: RequestFacts, literals: Literals, patterns: Patterns) -> None:
        self.facts = facts
        self._literals = literals
        self._patterns = patterns

    @lazy
    def words(self) -> Found:
        """Literals of all rules."""
        return self._literals.find(self.facts)

    @lazy
    def expressions(self) -> frozenset[int]:
        """Regular expressions of all rules."""
        return self._patterns.find(self.facts.encoded)

    @lazy
    def language(self) -> Language | None:
        """The language of the current turn."""
        return language_of(self.facts.text)


Evaluate = Callable[[Seen], Reading]


class Heuristics:
    """The compiled rules of one recipe. Immutable, and shared by all requests."""

    __slots__ = ("_literals", "_patterns", "_rules")

    def __init__(self, rules: Sequence[HeuristicRule]) -> None:
        """Raises `config.expressions.BadPattern` and ValueError for what the loader refuses first."""
        self._literals = Literals()
        self._patterns = Patterns()
        self._rules = tuple((rule.name, self._compile(rule)) for rule in rules)
        self._literals.compile()
        self._patterns.compile()

    def read(self, facts: RequestFacts) -> dict[str, Reading]:
        """The readings by rule key. Linear in the request's length; never raises."""
        seen = Seen(facts, self._literals, self._patterns)
        return {name: evaluate(seen) for name, evaluate in self._rules}

    def _compile(self, rule: HeuristicRule) -> Evaluate:
        match rule:
            case KeywordRule():
                return self._keyword(rule)
            case StructureRule():
                return self._structure(rule)
            case EventRule():
                return self._event(rule)
            case _:
                return _without_words(rule)

    # Rules that read words.

    def _keyword(self, rule: KeywordRule) -> Evaluate:
        if rule.method in {"exact", "regex"}:
            return self._spelled(rule)
        keywords = rule.keywords if rule.case_sensitive else tuple(fold(keyword) for keyword in rule.keywords)
        threshold = 1.0 if rule.method == "fuzzy" else rule.threshold
        if rule.method == "fuzzy":
            score = similar.fuzzy(keywords, rule.edits)
        else:
            score = similar.ngram(keywords, rule.arity) if rule.method == "ngram" else similar.bm25(keywords)

        def evaluate(seen: Seen) -> Reading:
            scores = score(seen.facts.spaced if rule.case_sensitive else seen.facts.folded)
            hits = sum(value > 0.0 and value >= threshold for value in scores)
            return _combined(rule, hits)

        return evaluate

    def _spelled(self, rule: KeywordRule) -> Evaluate:
        cased = rule.case_sensitive
        plain = [k for k in rule.keywords if rule.method == "exact" or _REGEX_CHARACTERS.isdisjoint(k)]
        words = {self._literals.add(keyword, case_sensitive=cased) for keyword in plain}
        others = {self._patterns.add(k, case_sensitive=cased) for k in rule.keywords if k not in plain}

        def evaluate(seen: Seen) -> Reading:
            found = seen.words.counts if words else None
            hits = len(found.keys() & words) if found else 0
            if others:
                hits += len(others & seen.expressions)
            return _combined(rule, hits, of=len(words) + len(others))

        return evaluate

    def _structure(self, rule: StructureRule) -> Evaluate:
        value = self._structure_value(rule)
        predicate = rule.predicate

        def evaluate(seen: Seen) -> Reading:
            number = value(seen)
            return _reading(number > 0 if predicate is None else predicate.holds(number), number)

        return evaluate

    def _structure_value(self, rule: StructureRule) -> Callable[[Seen], float]:
        count = self._structure_count(rule)
        if rule.feature == "count":
            return count
        if rule.feature == "density":
            return lambda seen: min(count(seen) / (units(seen.facts.text) or 1), 1.0)
        return lambda seen: 1.0 if count(seen) else 0.0

    def _structure_count(self, rule: StructureRule) -> Callable[[Seen], float]:
        cased = rule.case_sensitive
        if rule.source == "text_bytes":
            return lambda seen: float(len(seen.facts.encoded))
        if rule.source == "regex":
            pattern = rule.pattern or ""
            if rule.feature == "exists":
                number = self._patterns.add(pattern, case_sensitive=cased)
                return lambda seen: float(number in seen.expressions)
            expression = compile_pattern(pattern, case_sensitive=cased)
            return lambda seen: float(sum(1 for _ in expression.finditer(seen.facts.encoded)))
        if rule.source == "sequence":
            sequences = {self._literals.add_sequence(one, case_sensitive=cased) for one in rule.sequences}
            return lambda seen: float(len(sequences & seen.words.sequences))
        words = {self._literals.add(keyword, case_sensitive=cased) for keyword in rule.keywords}
        return lambda seen: float(sum(seen.words.counts.get(word, 0) for word in words))

    def _event(self, rule: EventRule) -> Evaluate:
        groups = [rule.event_types, rule.severities, rule.action_codes, URGENT if rule.temporal else ()]
        numbered = [{self._literals.add(word, case_sensitive=False) for word in group} for group in groups if group]

        def evaluate(seen: Seen) -> Reading:
            found = seen.words.counts.keys()
            hits = sum(0 if found.isdisjoint(words) else 1 for words in numbered)
            if not hits:
                return _reading(False, 0.0)
            return _reading(True, float(hits), 0.5 + 0.5 * hits / len(numbered))

        return evaluate


_Wordless = LanguageRule | ContextRule | ConversationRule | MetadataRule | AuthzRule | InputModalityRule


def _without_words(rule: _Wordless) -> Evaluate:
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
def _reading(matched: bool, value: float, confidence: float | None = None) -> Reading:
    return Reading(None, matched, confidence, {"": value})


def _combined(rule: KeywordRule, hits: int, of: int | None = None) -> Reading:
    match rule.operator:
        case "AND":
            matched = hits == (len(rule.keywords) if of is None else of)
        case "OR":
            matched = hits > 0
        case "NOR":
            matched = hits == 0
    return _reading(matched, float(hits))


def _language(rule: LanguageRule) -> Evaluate:
    identifier()  # while the configuration is loaded, not on the first request

    def evaluate(seen: Seen) -> Reading:
        found = seen.language
        if found is None:
            return Reading(None, None, reason=UnknownReason.NO_TEXT)
        if found.code != rule.language:
            return _reading(False, 0.0)
        matched = found.probability >= rule.threshold
        return _reading(matched, found.probability, found.probability if matched else None)

    return evaluate


def _context(rule: ContextRule) -> Evaluate:
    most = float("inf") if rule.most is None else rule.most

    def evaluate(seen: Seen) -> Reading:
        tokens = seen.facts.counts.token_floor
        return _reading(rule.least <= tokens <= most, float(tokens))

    return evaluate


def _conversation(rule: ConversationRule) -> Evaluate:
    number = _messages(rule.role) if rule.source == "message" else _COUNTS[rule.source]
    predicate = rule.predicate

    def evaluate(seen: Seen) -> Reading:
        value = float(number(seen.facts.counts))
        if rule.feature == "exists":
            return _reading(value > 0, float(value > 0))
        return _reading(value > 0 if predicate is None else predicate.holds(value), value)

    return evaluate


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
        return _reading(matched, float(matched))

    return evaluate


def _authz(rule: AuthzRule) -> Evaluate:
    def evaluate(seen: Seen) -> Reading:
        identity = seen.facts.identity
        matched = identity.user in rule.users or not identity.groups.isdisjoint(rule.groups)
        return _reading(matched, float(matched))

    return evaluate


def _modality(rule: InputModalityRule) -> Evaluate:
    def evaluate(seen: Seen) -> Reading:
        number = seen.facts.counts.media.get(rule.modality, 0)
        return _reading(number > 0, float(number))

    return evaluate
