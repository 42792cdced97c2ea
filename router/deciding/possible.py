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

from router.config.families import PROJECTION
from router.config.plan import Decision, Leaf, Operator, Recipe, Rule
from router.deciding.compiling import Facts, Names, compile_leaf
from router.deciding.engine import CompiledRecipe, Readings
from router.deciding.kleene import Truth

_TRUE: Final = 1
_FALSE: Final = 2
_UNKNOWN: Final = 4
_ANY: Final = _TRUE | _FALSE | _UNKNOWN
_SETTLED: Final = frozenset({_TRUE, _FALSE, _UNKNOWN})
_BIT: Final = {Truth.TRUE: _TRUE, Truth.FALSE: _FALSE, Truth.UNKNOWN: _UNKNOWN}

_MATCHES: Final = 1
_REJECTS: Final = 2
_FAILS: Final = 4
_ON_ERROR: Final = {None: _UNKNOWN, "match": _TRUE, "no_match": _FALSE}
_OF_UNKNOWN: Final = {"match": _MATCHES, "no_match": _REJECTS, "fail_request": _FAILS}

Rules = frozenset[str]
_NONE: Final[Rules] = frozenset()


def can_still_be_selected(compiled: CompiledRecipe, readings: Readings) -> Rules:
    """The names of the decisions that some answers to the rules without a reading could still select."""
    return Outlook(compiled).can_still_be_selected(readings)


def needed_rules(compiled: CompiledRecipe, readings: Readings) -> Rules:
    """The names of the rules without a reading whose answers could still change what is decided."""
    return Outlook(compiled).needed_rules(readings)


_Truths = Callable[[Facts], int]
"""The truths that a rule can have, given what is known."""


class _Prospect(NamedTuple):
    """A rule of one request, in full: the truths it can have, and the rules without a reading that it reads.

    `for_truth` are those of `reads` that its truth depends on; its confidence may depend on all of them.
    """

    truths: int
    for_truth: Rules
    reads: Rules


_Look = Callable[[Facts], _Prospect]


class _Item(NamedTuple):
    """A compiled decision."""

    decision: Decision
    truths: _Truths
    look: _Look
    of_unknown: int


class _Standing(NamedTuple):
    """A decision of one request with what can become of it."""

    item: _Item
    fates: int

    @property
    def decision(self) -> Decision:
        return self.item.decision


class Fate(NamedTuple):
    """What can become of a decision that could still be selected or fail the request: some of these, or to be passed
    over, which `sure` excludes."""

    decision: Decision
    may_match: bool
    may_fail: bool
    sure: bool


class Outlook:
    """A recipe made ready for such questions. Immutable, and shared by all requests."""

    __slots__ = ("_by_confidence", "_compiled", "_items")

    def __init__(self, compiled: CompiledRecipe) -> None:
        self._compiled = compiled
        self._by_confidence = compiled.recipe.strategy == "confidence"
        rivals = compiled.partitions.rivals
        sources = {**_sources(compiled.recipe, rivals), **rivals}
        self._items = tuple(
            _Item(
                decision,
                _compile_truths(decision.rule, compiled.names, sources),
                _compile_look(decision.rule, compiled.names, sources),
                _OF_UNKNOWN[decision.on_unknown],
            )
            for decision in compiled.recipe.decisions
        )

    def can_still_be_selected(self, readings: Readings) -> Rules:
        """As the function of this name."""
        contenders = self._contenders(self._standings(self._facts(readings)))
        return frozenset(standing.decision.name for standing in contenders if standing.fates & _MATCHES)

    def contenders(self, readings: Readings) -> tuple[tuple[Decision, bool], ...]:
        """The decisions that could still be selected or fail the request, and whether each matches for certain."""
        found = self._contenders(self._standings(self._facts(readings)))
        return tuple((standing.decision, standing.fates == _MATCHES) for standing in found)

    def fates(self, readings: Readings) -> tuple[Fate, ...]:
        """What can become of each decision that could still be selected or fail the request."""
        return tuple(
            Fate(decision, bool(fates & _MATCHES), bool(fates & _FAILS), not fates & _REJECTS)
            for (item, fates) in self._contenders(self._standings(self._facts(readings)))
            for decision in (item.decision,)
        )

    def needed_rules(self, readings: Readings) -> Rules:
        """As the function of this name."""
        facts = self._facts(readings)
        standings = self._standings(facts)
        contenders = self._contenders(standings)
        close = self._close_tiers(contenders)
        needed: set[str] = set()
        for standing in contenders:
            if standing.fates not in (_MATCHES, _REJECTS, _FAILS):
                needed |= standing.item.look(facts).for_truth
        for standing in standings:
            # A decision that cannot win can still make the confidences around it incomparable.
            if standing.decision.tier in close and not standing.decision.catch_all:
                needed |= standing.item.look(facts).reads
        return frozenset(needed)

    def _facts(self, readings: Readings) -> Facts:
        readings = self._compiled.partitions.apply(readings)
        return Facts(readings, self._compiled.projections.evaluate(readings).outputs)

    def _standings(self, facts: Facts) -> list[_Standing]:
        """Every decision that something could come of."""
        standings: list[_Standing] = []
        for item in self._items:
            truths = item.truths(facts)
            fates = truths & (_TRUE | _FALSE)  # a true rule matches, a false one does not
            if truths & _UNKNOWN:
                fates |= item.of_unknown
            if fates != _REJECTS:
                standings.append(_Standing(item, fates))
        return standings

    def _contenders(self, standings: list[_Standing]) -> list[_Standing]:
        """Decisions that could win, or fail the request, because none that surely matches ranks above them for sure."""
        sure = [standing.decision for standing in standings if standing.fates == _MATCHES]
        return [
            standing
            for standing in standings
            if not any(self._outranks(decision, standing.decision) for decision in sure)
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


def _compile_truths(rule: Rule, names: Names, sources: Mapping[str, Rules]) -> _Truths:
    if isinstance(rule, Leaf):
        return _leaf_truths(rule, names, sources)
    children = tuple(_compile_truths(child, names, sources) for child in rule.children)
    combine = _COMBINE[rule.operator]
    return lambda facts: combine([child(facts) for child in children])


def _leaf_truths(leaf: Leaf, names: Names, sources: Mapping[str, Rules]) -> _Truths:
    test = compile_leaf(leaf, names)
    name = leaf.name
    unsettled = _TRUE | _FALSE | _ON_ERROR[leaf.on_error]
    reads = _read_by(leaf, sources)
    if leaf.family != PROJECTION:
        return lambda facts: _BIT[test(facts).truth] if reads <= facts.readings.keys() else unsettled

    def truths(facts: Facts) -> int:
        # A band may be settled by what is known already, and then nothing can unsettle it.
        if facts.outputs[name].truth is not Truth.UNKNOWN or reads <= facts.readings.keys():
            return _BIT[test(facts).truth]
        return unsettled

    return truths


def _compile_look(rule: Rule, names: Names, sources: Mapping[str, Rules]) -> _Look:
    truths_of = _compile_truths(rule, names, sources)
    if isinstance(rule, Leaf):
        read = _read_by(rule, sources)

        def leaf(facts: Facts) -> _Prospect:
            truths, reads = truths_of(facts), read - facts.readings.keys()
            return _Prospect(truths, _NONE if truths in _SETTLED else reads, reads)

        return leaf
    children = tuple(_compile_look(child, names, sources) for child in rule.children)

    def node(facts: Facts) -> _Prospect:
        truths, found = truths_of(facts), [child(facts) for child in children]
        for_truth = _NONE if truths in _SETTLED else _NONE.union(*(prospect.for_truth for prospect in found))
        return _Prospect(truths, for_truth, _NONE.union(*(prospect.reads for prospect in found)))

    return node


def _negated(masks: list[int]) -> int:
    (mask,) = masks
    return _SWAPPED[mask]


def _every(masks: list[int]) -> int:
    """What independent parts can combine to: true if all can be, false if one can, else unknown if one can be."""
    result, all_true, none_false, unknown = 0, _TRUE, True, 0
    for mask in masks:
        all_true &= mask
        result |= mask & _FALSE
        unknown |= mask & _UNKNOWN
        none_false = none_false and mask != _FALSE
    return result | all_true | (unknown if none_false else 0)


def _some(masks: list[int]) -> int:
    return _SWAPPED[_every([_SWAPPED[mask] for mask in masks])]


# True and false with their roles changed: NOT, and what makes an OR of an AND.
_SWAPPED: Final = tuple(
    mask & _UNKNOWN | (_FALSE if mask & _TRUE else 0) | (_TRUE if mask & _FALSE else 0) for mask in range(_ANY + 1)
)
_COMBINE: Final = {Operator.AND: _every, Operator.OR: _some, Operator.NOT: _negated}


def _read_by(leaf: Leaf, sources: Mapping[str, Rules]) -> Rules:
    """The rules that a condition depends on: those of a projection, the rivals of a partition's member, or one."""
    return sources.get(leaf.name) or frozenset({leaf.name})


def _sources(recipe: Recipe, rivals: Mapping[str, Rules]) -> dict[str, Rules]:
    """The rules behind each projection output, through however many scores."""
    scores = {score.name: score for score in recipe.scores}
    score_of = {output.name: mapping.source for mapping in recipe.mappings for output in mapping.outputs}

    def rules(score: str) -> Iterator[str]:
        for item in scores[score].inputs:
            if item.weight == 0.0:
                continue
            if item.family != PROJECTION:
                yield from rivals.get(item.name, (item.name,))
            else:
                yield from rules(item.name if item.source == "score" else score_of[item.name])

    return {output: frozenset(rules(score)) for output, score in score_of.items()}
