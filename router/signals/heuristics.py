"""The rules of a recipe that the router computes by itself, compiled once and read together.

Words and expressions of all rules are found together, so that a text is read once whatever the number of rules. What a
rule says when nothing of its own is in the text is known beforehand: only rules that something was found for are looked
at, and a request in which nothing is found pays for one pass over its text. A family that no rule uses costs nothing.

Source: `reference.md` 4.3.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Final, NamedTuple

from router.config.expressions import compile_pattern
from router.config.heuristics import EventRule, HeuristicRule, KeywordRule, StructureRule
from router.signals import similar
from router.signals.facts import RequestFacts
from router.signals.folding import fold
from router.signals.literals import Literals
from router.signals.patterns import NONE, Patterns
from router.signals.reading import Reading
from router.signals.scripts import units
from router.signals.seen import Empty, Seen
from router.signals.wordless import Evaluate, plain, wordless

URGENT: Final = (
    *("urgent", "urgently", "immediate", "immediately", "asap", "deadline"),
    *("time-sensitive", "time-critical", "right now", "critical window"),
)
"""What `temporal` of an event rule looks for."""

_REGEX_CHARACTERS: Final = frozenset("\\.^$*+?{}[]|()")


class _Compiled(NamedTuple):
    """One rule: how it is evaluated, and the literals and expressions without which it says what it always says.

    A rule without any is evaluated for every request.
    """

    evaluate: Evaluate
    words: Collection[int] = ()
    expressions: Collection[int] = ()


class Heuristics:
    """The compiled rules of one recipe. Immutable, and shared by all requests."""

    __slots__ = ("_always", "_idle", "_literals", "_of_expression", "_of_literal", "_patterns")

    def __init__(self, rules: Sequence[HeuristicRule]) -> None:
        """Raises `config.expressions.BadPattern` and ValueError for what the loader refuses first."""
        self._literals = Literals()
        self._patterns = Patterns()
        self._always: list[tuple[str, Evaluate]] = []
        self._of_literal: dict[int, dict[str, Evaluate]] = {}
        self._of_expression: dict[int, dict[str, Evaluate]] = {}
        self._idle: dict[str, Reading] = {}
        empty = Empty()
        for rule in rules:
            evaluate, words, expressions = self._compile(rule)
            for number in words:
                self._of_literal.setdefault(number, {})[rule.name] = evaluate
            for number in expressions:
                self._of_expression.setdefault(number, {})[rule.name] = evaluate
            if words or expressions:
                self._idle[rule.name] = evaluate(empty)
            else:
                self._idle[rule.name] = plain(False, 0.0)
                self._always.append((rule.name, evaluate))
        self._literals.compile()
        self._patterns.compile(self._literals.loosely)

    def read(self, facts: RequestFacts) -> dict[str, Reading]:
        """The readings by rule key. Linear in the request's length; never raises."""
        hits = self._patterns.find(facts)
        seen = Seen(facts, self._literals, hits)
        readings = self._idle.copy()
        if hits is not NONE:
            for name, evaluate in self._touched(seen).items():
                readings[name] = evaluate(seen)
        for name, evaluate in self._always:
            readings[name] = evaluate(seen)
        return readings

    def _touched(self, seen: Seen) -> dict[str, Evaluate]:
        """The rules for which something was found."""
        touched: dict[str, Evaluate] = {}
        for literal in seen.words.counts:
            touched |= self._of_literal[literal]
        for expression in seen.hits.expressions:
            touched |= self._of_expression[expression]
        return touched

    def _compile(self, rule: HeuristicRule) -> _Compiled:
        match rule:
            case KeywordRule():
                return self._keyword(rule)
            case StructureRule():
                return self._structure(rule)
            case EventRule():
                return self._event(rule)
            case _:
                return _Compiled(wordless(rule))

    def _keyword(self, rule: KeywordRule) -> _Compiled:
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

        return _Compiled(evaluate)

    def _spelled(self, rule: KeywordRule) -> _Compiled:
        cased = rule.case_sensitive
        literal = [k for k in rule.keywords if rule.method == "exact" or _REGEX_CHARACTERS.isdisjoint(k)]
        words = {self._literals.add(keyword, case_sensitive=cased) for keyword in literal}
        others = {self._patterns.add(k, case_sensitive=cased) for k in rule.keywords if k not in literal}

        def evaluate(seen: Seen) -> Reading:
            hits = len(seen.words.counts.keys() & words) if words else 0
            if others:
                hits += len(others & seen.hits.expressions)
            return _combined(rule, hits, of=len(words) + len(others))

        return _Compiled(evaluate, words, others)

    def _structure(self, rule: StructureRule) -> _Compiled:
        count, words, expressions = self._structure_count(rule)
        predicate = rule.predicate

        def density(seen: Seen) -> float:
            number = count(seen)
            return min(number / (units(seen.facts.text) or 1), 1.0) if number else 0.0

        def exists(seen: Seen) -> float:
            return float(count(seen) > 0)

        value = {"count": count, "density": density}.get(rule.feature, exists)

        def evaluate(seen: Seen) -> Reading:
            number = value(seen)
            return plain(number > 0 if predicate is None else predicate.holds(number), number)

        return _Compiled(evaluate, words, expressions)

    def _structure_count(self, rule: StructureRule) -> tuple[Callable[[Seen], float], Collection[int], Collection[int]]:
        cased = rule.case_sensitive
        if rule.source == "text_bytes":
            return lambda seen: float(len(seen.facts.encoded)), (), ()
        if rule.source == "regex":
            pattern = rule.pattern or ""
            number = self._patterns.add(pattern, case_sensitive=cased)
            if rule.feature == "exists":
                return lambda seen: float(number in seen.hits.expressions), (), (number,)
            expression = compile_pattern(pattern, case_sensitive=cased)

            def occurrences(seen: Seen) -> float:
                if number not in seen.hits.expressions:
                    return 0.0
                return float(sum(1 for _ in expression.finditer(seen.facts.encoded)))

            return occurrences, (), (number,)
        if rule.source == "sequence":
            sequences = {self._literals.add_sequence(one, case_sensitive=cased) for one in rule.sequences}
            words = {number for sequence in sequences for number in self._literals.of_sequence(sequence)}
            return lambda seen: float(len(sequences & seen.words.sequences)), words, ()
        words = {self._literals.add(keyword, case_sensitive=cased) for keyword in rule.keywords}
        return lambda seen: float(sum(seen.words.counts.get(word, 0) for word in words)), words, ()

    def _event(self, rule: EventRule) -> _Compiled:
        groups = [rule.event_types, rule.severities, rule.action_codes, URGENT if rule.temporal else ()]
        numbered = [{self._literals.add(word, case_sensitive=False) for word in group} for group in groups if group]

        def evaluate(seen: Seen) -> Reading:
            found = seen.words.counts.keys()
            hits = sum(0 if found.isdisjoint(words) else 1 for words in numbered)
            if not hits:
                return plain(False, 0.0)
            return plain(True, float(hits), 0.5 + 0.5 * hits / len(numbered))

        return _Compiled(evaluate, set().union(*numbered))


def _combined(rule: KeywordRule, hits: int, of: int | None = None) -> Reading:
    match rule.operator:
        case "AND":
            matched = hits == (len(rule.keywords) if of is None else of)
        case "OR":
            matched = hits > 0
        case "NOR":
            matched = hits == 0
    return plain(matched, float(hits))
