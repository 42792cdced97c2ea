"""The decision engine: a recipe and one request's readings in, the selected decision out.

`prepare` compiles a recipe once; `decide` is pure, allocates little and asks nobody.

Sources: "Decision signal" (failure policies), `rulings.md` 4, 5, 7, 9, `reference.md` 3.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from router.config.plan import Decision, Recipe
from router.deciding.compiling import Facts, Names, Test, compile_rule, possible_kinds
from router.deciding.kleene import TRUE_UNSCORED, ScoreKind, Truth, Verdict
from router.deciding.partitions import Partitions
from router.deciding.projections import Projected, Projections
from router.deciding.ranking import Match, best
from router.deciding.trace import DecisionTrace, trace_rule
from router.signals.reading import Reading
from router.signals.traits import trait_of

Readings = Mapping[str, Reading]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a recipe decided about one request.

    `selected` is None when nothing matched, and also when `failed` is not empty: a failed request has no decision.
    `confidence` is the selected decision's, 0..1. `matched_rules` names the signal rules that matched, in the recipe's
    order. `applied` names the decisions that matched only through `on_unknown: match`, `failed` those whose
    `on_unknown: fail_request` fails the request (`decision_unresolved`). `traces` is filled only on request.
    """

    selected: Decision | None
    confidence: float | None
    matched_rules: tuple[str, ...]
    applied: tuple[str, ...]
    failed: tuple[str, ...]
    projected: Projected
    traces: tuple[DecisionTrace, ...] = ()


class _Compiled(NamedTuple):
    decision: Decision
    test: Test
    catch_all: bool
    kinds: frozenset[ScoreKind | None]


class CompiledRecipe:
    """A recipe made ready for `decide`. Immutable, and shared by all requests."""

    __slots__ = ("_decisions", "_rules", "names", "partitions", "projections", "recipe")

    def __init__(self, recipe: Recipe) -> None:
        self.recipe = recipe
        self._rules = tuple(rule.name for rule in recipe.rules)
        rules = {rule.name: trait_of(rule) for rule in recipe.rules}
        self.projections = Projections(recipe.scores, recipe.mappings, rules)
        self.partitions = Partitions(recipe.partitions)
        self.names = Names(rules, self.projections.sources, self.partitions.defaults)
        self._decisions = tuple(
            _Compiled(
                decision,
                compile_rule(decision.rule, self.names),
                decision.catch_all,
                possible_kinds(decision.rule, self.names),
            )
            for decision in recipe.decisions
        )


def prepare(recipe: Recipe) -> CompiledRecipe:
    """Compile a recipe. Raises ValueError for a dangling or circular reference; the loader refuses those first."""
    return CompiledRecipe(recipe)


def decide(compiled: CompiledRecipe, readings: Readings, *, trace: bool = False) -> Outcome:
    """Select a decision. A rule without a reading is unknown. With `trace`, the outcome explains every decision."""
    readings = compiled.partitions.apply(readings)
    projected = compiled.projections.evaluate(readings)
    facts = Facts(readings, projected.outputs)
    matches: list[Match] = []
    verdicts: list[Verdict] = []
    applied: list[str] = []
    doubtful: list[_Compiled] = []
    for item in compiled._decisions:
        verdict = item.test(facts)
        verdicts.append(verdict)
        if verdict.truth is Truth.TRUE:
            matches.append(Match(item.decision, verdict, item.catch_all))
        elif verdict.truth is Truth.UNKNOWN:
            if item.decision.on_unknown == "match":
                matches.append(Match(item.decision, TRUE_UNSCORED, item.catch_all))
                applied.append(item.decision.name)
            elif item.decision.on_unknown == "fail_request":
                doubtful.append(item)
    strategy = compiled.recipe.strategy
    winner = best(matches, strategy)
    failed = tuple(item.decision.name for item in doubtful if _could_change(item, matches, winner, compiled))
    if failed:
        winner = None
    outcome = Outcome(
        winner.decision if winner else None,
        winner.verdict.confidence if winner else None,
        tuple(name for name in compiled._rules if _matched(readings, name)),
        tuple(applied),
        failed,
        projected,
        _traces(compiled, facts, verdicts, projected, winner, failed) if trace else (),
    )
    return outcome


def _could_change(item: _Compiled, matches: Sequence[Match], winner: Match | None, compiled: CompiledRecipe) -> bool:
    """Whether the selection would be another if this unknown decision matched.

    It would rank best with full confidence, so that is tried, once for each thing its confidence might measure: another
    kind of measurement can also make the confidences around it incomparable and so change the order of the others.
    """
    for kind in item.kinds:
        supposed = Match(item.decision, Verdict(Truth.TRUE, 1.0, kind), item.catch_all)
        if best([*matches, supposed], compiled.recipe.strategy) is not winner:
            return True
    return False


def _matched(readings: Readings, name: str) -> bool:
    reading = readings.get(name)
    return reading is not None and reading.matched is True


def _traces(
    compiled: CompiledRecipe,
    facts: Facts,
    verdicts: Sequence[Verdict],
    projected: Projected,
    winner: Match | None,
    failed: Sequence[str],
) -> tuple[DecisionTrace, ...]:
    traces: list[DecisionTrace] = []
    for item, verdict in zip(compiled._decisions, verdicts, strict=True):
        decision = item.decision
        unknown = verdict.truth is Truth.UNKNOWN
        by_policy = unknown and decision.on_unknown == "match"
        traces.append(
            DecisionTrace(
                decision=decision.name,
                truth=verdict.truth,
                matched=verdict.truth is Truth.TRUE or by_policy,
                confidence=1.0 if by_policy else verdict.confidence,
                policy=decision.on_unknown if unknown else None,
                fails=decision.name in failed,
                selected=winner is not None and winner.decision is decision,
                root=trace_rule(decision.rule, facts, compiled.names, projected.scores),
            )
        )
    return tuple(traces)
