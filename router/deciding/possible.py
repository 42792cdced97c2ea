"""Which decisions can still be selected while some answers are not known yet, and which answers can still matter.

A rule without a reading may turn out anything, unknown included; a reading, even an unknown one, is final.
Every condition is reduced to the truths that it can have, and conditions are taken for independent of each other. So
what is said to be impossible is impossible, whatever the answers turn out; what is said to be possible may not be.

Leaving out what is not needed never changes which decision is selected, nor whether an unknown fails the request.

Sources: `rulings.md` 8 (`ask: needed`), 9 (ranking).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple

from router.config.plan import Decision, Leaf, Operator, Recipe, Rule
from router.deciding.compiling import Facts, Names, compile_leaf
from router.deciding.engine import CompiledRecipe, Readings
from router.deciding.kleene import Truth

_TRUE: Final = 1
_FALSE: Final = 2
_UNKNOWN: Final = 4
_ANY: Final = _TRUE | _FALSE | _UNKNOWN
_BIT: Final = {Truth.TRUE: _TRUE, Truth.FALSE: _FALSE, Truth.UNKNOWN: _UNKNOWN}

_MATCHES: Final = 1
_REJECTS: Final = 2
_FAILS: Final = 4
_OF_UNKNOWN: Final = {"match": _MATCHES, "no_match": _REJECTS, "fail_request": _FAILS}

Rules = frozenset[str]
_NONE: Final[Rules] = frozenset()


def can_still_be_selected(compiled: CompiledRecipe, readings: Readings) -> Rules:
    """The names of the decisions that some answers to the rules without a reading could still select."""
    return Outlook(compiled).can_still_be_selected(readings)


def needed_rules(compiled: CompiledRecipe, readings: Readings) -> Rules:
    """The names of the rules without a reading whose answers could still change what is decided."""
    return Outlook(compiled).needed_rules(readings)


class _State(NamedTuple):
    """What is known about one request, and the rules about which nothing is."""

    facts: Facts
    pending: Rules


class _Prospect(NamedTuple):
    """A condition or a rule of one request: the truths it can have, and the pending rules that it reads.

    `for_truth` are those of `reads` that its truth depends on; its confidence may depend on all of them.
    """

    truths: int
    for_truth: Rules
    reads: Rules


_Look = Callable[[_State], _Prospect]


class _Standing(NamedTuple):
    """A decision of one request with what can become of it."""

    decision: Decision
    fates: int
    prospect: _Prospect

    @property
    def sure(self) -> bool:
        return self.fates == _MATCHES

    @property
    def out(self) -> bool:
        return self.fates == _REJECTS


class Outlook:
    """A recipe made ready for such questions. Immutable, and shared by all requests."""

    __slots__ = ("_by_confidence", "_compiled", "_looks", "_names")

    def __init__(self, compiled: CompiledRecipe) -> None:
        self._compiled = compiled
        self._by_confidence = compiled.recipe.strategy == "confidence"
        self._names = frozenset(rule.name for rule in compiled.recipe.questions)
        sources = _sources(compiled.recipe)
        self._looks = tuple(
            (decision, _compile(decision.rule, compiled.names, sources)) for decision in compiled.recipe.decisions
        )

    def can_still_be_selected(self, readings: Readings) -> Rules:
        """As the function of this name."""
        return frozenset(
            standing.decision.name
            for standing in self._contenders(self._standings(readings))
            if standing.fates & _MATCHES
        )

    def needed_rules(self, readings: Readings) -> Rules:
        """As the function of this name."""
        standings = self._standings(readings)
        contenders = self._contenders(standings)
        close = self._close_tiers(contenders)
        needed: set[str] = set()
        for standing in contenders:
            if standing.fates not in (_MATCHES, _REJECTS, _FAILS):
                needed |= standing.prospect.for_truth
        for standing in standings:
            # A decision that cannot win can still make the confidences around it incomparable.
            if not standing.out and not standing.decision.catch_all and standing.decision.tier in close:
                needed |= standing.prospect.reads
        return frozenset(needed)

    def _standings(self, readings: Readings) -> list[_Standing]:
        facts = Facts(readings, self._compiled.projections.evaluate(readings).outputs)
        state = _State(facts, self._names - readings.keys())
        standings: list[_Standing] = []
        for decision, look in self._looks:
            prospect = look(state)
            fates = prospect.truths & (_TRUE | _FALSE)  # a true rule matches, a false one does not
            if prospect.truths & _UNKNOWN:
                fates |= _OF_UNKNOWN[decision.on_unknown]
            standings.append(_Standing(decision, fates, prospect))
        return standings

    def _contenders(self, standings: list[_Standing]) -> list[_Standing]:
        """Decisions that could win, or fail the request, because none that surely matches ranks above them for sure."""
        sure = [standing.decision for standing in standings if standing.sure]
        return [
            standing
            for standing in standings
            if not standing.out and not any(self._outranks(decision, standing.decision) for decision in sure)
        ]

    def _outranks(self, one: Decision, other: Decision) -> bool:
        """Whether `one` ranks above `other` whatever their confidences."""
        first, second = (one.catch_all, one.tier), (other.catch_all, other.tier)
        if first != second:
            return first < second
        if one.catch_all:  # neither has any confidence
            return (-one.priority, one.name) < (-other.priority, other.name)
        return not self._by_confidence and one.priority > other.priority

    def _close_tiers(self, contenders: list[_Standing]) -> set[int]:
        """Tiers in which confidences can settle which of two contenders wins."""
        rivals = Counter(
            (decision.tier, 0 if self._by_confidence else decision.priority)
            for decision in (standing.decision for standing in contenders)
            if not decision.catch_all
        )
        return {tier for (tier, _), count in rivals.items() if count > 1}


def _compile(rule: Rule, names: Names, sources: Mapping[str, Rules]) -> _Look:
    if isinstance(rule, Leaf):
        return _compile_leaf(rule, names, sources)
    children = tuple(_compile(child, names, sources) for child in rule.children)
    combine = {Operator.AND: _every, Operator.OR: _some, Operator.NOT: _negated}[rule.operator]

    def look(state: _State) -> _Prospect:
        found = [child(state) for child in children]
        truths = combine([prospect.truths for prospect in found])
        open_question = truths not in (_TRUE, _FALSE, _UNKNOWN)
        return _Prospect(
            truths,
            _NONE.union(*(prospect.for_truth for prospect in found)) if open_question else _NONE,
            _NONE.union(*(prospect.reads for prospect in found)),
        )

    return look


def _compile_leaf(leaf: Leaf, names: Names, sources: Mapping[str, Rules]) -> _Look:
    test = compile_leaf(leaf, names)
    read = sources[leaf.name] if leaf.family == "projection" else frozenset({leaf.name})
    projection = leaf.family == "projection"
    unknown = {None: _UNKNOWN, "match": _TRUE, "no_match": _FALSE}[leaf.on_error]
    blank = compile_leaf(Leaf(leaf.family, leaf.name, leaf.label, leaf.predicate), names)

    def look(state: _State) -> _Prospect:
        pending = read & state.pending
        if not pending:
            return _Prospect(_BIT[test(state.facts).truth], _NONE, _NONE)
        # A band may be settled by what is known already, and then nothing can unsettle it.
        if projection and (truth := blank(state.facts).truth) is not Truth.UNKNOWN:
            return _Prospect(_BIT[truth], _NONE, pending)
        return _Prospect(_TRUE | _FALSE | unknown, pending, pending)

    return look


def _negated(masks: list[int]) -> int:
    (mask,) = masks
    return (mask & _UNKNOWN) | (_FALSE if mask & _TRUE else 0) | (_TRUE if mask & _FALSE else 0)


def _every(masks: list[int]) -> int:
    return _combined(masks, neutral=_TRUE, decisive=_FALSE)


def _some(masks: list[int]) -> int:
    return _combined(masks, neutral=_FALSE, decisive=_TRUE)


def _combined(masks: list[int], *, neutral: int, decisive: int) -> int:
    """AND, or OR with the roles of true and false changed: what independent parts can combine to."""
    result = 0
    if all(mask & neutral for mask in masks):
        result |= neutral
    if any(mask & decisive for mask in masks):
        result |= decisive
    if any(mask & _UNKNOWN for mask in masks) and all(mask & (neutral | _UNKNOWN) for mask in masks):
        result |= _UNKNOWN
    return result


def _sources(recipe: Recipe) -> dict[str, Rules]:
    """The rules behind each projection output, through however many scores."""
    scores = {score.name: score for score in recipe.scores}
    score_of = {output.name: mapping.source for mapping in recipe.mappings for output in mapping.outputs}

    def rules(score: str) -> Iterator[str]:
        for item in scores[score].inputs:
            if item.weight == 0.0:
                continue
            if item.family == "systemone":
                yield item.name
            else:
                yield from rules(item.name if item.source == "score" else score_of[item.name])

    return {output: frozenset(rules(score)) for output, score in score_of.items()}
