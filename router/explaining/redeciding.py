"""Recorded requests decided again by another configuration: what would be routed otherwise.

A question that the new recipe has in common with the recorded one has its recorded answer. Where it asks something else
the record cannot say, unless what is known settles the decision whatever the answer would be.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from router.acting.target import Contest, Refused, settle
from router.config.families import family_of, written_name
from router.config.guards import GuardRule
from router.config.plan import Plan, QuestionRule, Recipe
from router.deciding.engine import CompiledRecipe, decide, prepare
from router.deciding.possible import Outlook
from router.explaining.answers import recorded_answer, recorded_guard, recorded_reading
from router.explaining.endings import Reason
from router.explaining.facts import rule_ids, verdict_id
from router.explaining.records import OTHER
from router.signals.reading import Reading, read
from router.wire.errors import ErrorCode
from router.wire.surface import Format

EXAMPLES: Final = 5
_OF_BACKENDS: Final = frozenset(Reason)
_UNDECIDED: Final = frozenset({ErrorCode.OVERLOADED, ErrorCode.CONTEXT_LENGTH_EXCEEDED})
"""Ends of requests that were not decided: there was no room, or they were too long for every model."""


@dataclass(frozen=True, slots=True)
class Route:
    """Where a request goes: the recipe's decision and the model; or the error that it ends with."""

    decision: str | None = None
    model: str | None = None
    error: str | None = None

    def __str__(self) -> str:
        if self.error is not None:
            return f"error {self.error}"
        return f"{self.decision or 'no decision'} → {self.model or 'answered'}"


@dataclass(slots=True)
class Change:
    """Requests that go another way now, with the ids of some."""

    count: int = 0
    examples: list[str] = field(default_factory=list)

    def add(self, record: str) -> None:
        """Count one."""
        self.count += 1
        if len(self.examples) < EXAMPLES:
            self.examples.append(record)


@dataclass(slots=True)
class Difference:
    """What another configuration would make of recorded requests.

    `undecided` are those whose records do not hold what it asks: they need the request's text, which is not recorded.
    `missing` says which rules that is, and for how many. `unreadable` are records of requests that never reached a
    recipe, or of another version.
    """

    same: int = 0
    changed: dict[tuple[Route, Route], Change] = field(default_factory=dict)
    undecided: Change = field(default_factory=Change)
    missing: Counter[str] = field(default_factory=Counter)
    unreadable: int = 0

    @property
    def compared(self) -> int:
        """How many could be decided again."""
        return self.same + sum(change.count for change in self.changed.values())

    def as_json(self) -> dict[str, Any]:
        """The difference as JSON, the most frequent change first."""
        changes = sorted(self.changed.items(), key=lambda item: -item[1].count)
        return {
            "compared": self.compared,
            "same": self.same,
            "changed": [
                {"from": str(old), "to": str(new), "count": change.count, "examples": change.examples}
                for (old, new), change in changes
            ],
            "undecided": {
                "count": self.undecided.count,
                "examples": self.undecided.examples,
                "missing": dict(self.missing.most_common()),
            },
            "unreadable": self.unreadable,
        }


class Redecider:
    """Decides records by one plan."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._offers = plan.offers
        self._recipes: dict[str, tuple[CompiledRecipe, Outlook, Mapping[str, str]]] = {}

    def difference(self, records: Iterable[Mapping[str, Any]]) -> Difference:
        """Decide every record again, and compare."""
        found = Difference()
        for record in records:
            try:
                self._compare(record, found)
            except (KeyError, ValueError, TypeError):
                found.unreadable += 1
        return found

    def _compare(self, record: Mapping[str, Any], found: Difference) -> None:
        name = record["id"]
        if record["format"] is None or record["original_model"] == OTHER or record["terminal_reason"] in _UNDECIDED:
            found.unreadable += 1
            return
        route, missing, eligible = self._route(record)
        if route is None:
            found.undecided.add(name)
            found.missing.update(missing)
            return
        old = _recorded(record)
        if old == route or (old.decision == route.decision and old.model in eligible):
            found.same += 1
            return
        found.changed.setdefault((old, route), Change()).add(name)

    def _route(self, record: Mapping[str, Any]) -> tuple[Route | None, list[str], Sequence[str]]:
        """Where it goes now, or the rules whose answers are not there; and the models among which a selector picks.

        What a selector would pick is not known: it depends on chance, measurements, or another question.
        """
        plan, model = self._plan, record["original_model"]
        wanted = Format(record["format"]).api
        offered = True if self._offers is None else self._offers.agreed(model)
        if not offered:
            return _not_offered(model, offered)
        recipe = plan.entrypoints.get(model) if model else plan.default_entrypoint
        if recipe is None:
            return self._named(model, wanted == plan.models[model].api_format if model in plan.models else False)
        compiled, outlook, ids = self._prepared(plan.recipes[recipe])
        readings, missing = _readings(compiled.recipe, ids, record["answers"])
        if missing and outlook.needed_rules(readings) & set(missing):
            return None, [f"{family_of(name)}:{written_name(name)}" for name in missing], ()
        outcome = decide(compiled, readings)
        try:
            settled = settle(plan, recipe, outcome, wanted)
        except Refused as refused:
            return Route(error=refused.code.value), [], ()
        if isinstance(settled, Contest):
            models = [ref.model for ref in settled.refs]
            return Route(settled.decision, f"one of {', '.join(models)}"), [], models
        return Route(settled.decision, settled.told.get("model")), [], ()

    def _named(self, model: str | None, speaks: bool) -> tuple[Route, list[str], Sequence[str]]:
        if not model:
            return Route(error=ErrorCode.MODEL_REQUIRED.value), [], ()
        if model not in self._plan.models:
            return Route(error=ErrorCode.MODEL_NOT_FOUND.value), [], ()
        return (Route(model=model) if speaks else Route(error=ErrorCode.NO_ELIGIBLE_MODEL.value)), [], ()

    def _prepared(self, recipe: Recipe) -> tuple[CompiledRecipe, Outlook, Mapping[str, str]]:
        found = self._recipes.get(recipe.name)
        if found is None:
            compiled = prepare(recipe)
            found = self._recipes[recipe.name] = (compiled, Outlook(compiled), rule_ids(self._plan, recipe))
        return found


def _recorded(record: Mapping[str, Any]) -> Route:
    """Where it went. How the backend answered then is another matter, though it is a record's reason, too."""
    reason = record["terminal_reason"]
    if reason is not None and reason not in _OF_BACKENDS:
        return Route(error=reason)
    return Route(record["decision"], record["selected_model"])


def _not_offered(model: str | None, offered: bool | None) -> tuple[Route | None, list[str], Sequence[str]]:
    if offered is None:  # a record does not say by which listener its request came
        return None, ["listeners[].models"], ()
    return Route(error=(ErrorCode.MODEL_NOT_ALLOWED if model else ErrorCode.MODEL_REQUIRED).value), [], ()


def _readings(
    recipe: Recipe, ids: Mapping[str, str], answers: Mapping[str, Any]
) -> tuple[dict[str, Reading], list[str]]:
    """The readings that a record holds for a recipe's rules, and the rules that it holds none for."""
    readings: dict[str, Reading] = {}
    missing: list[str] = []
    for rule in recipe.rules:
        kept = answers.get(ids[rule.name])
        if kept is None or kept.get("unknown") == "not_asked":
            missing.append(rule.name)
        elif isinstance(rule, GuardRule):
            guard = recorded_guard(rule, kept, verdict_id(rule))
            if guard is None:
                missing.append(rule.name)
            else:
                readings[rule.name] = guard
        elif isinstance(rule, QuestionRule):
            readings[rule.name] = read(rule, recorded_answer(kept))
        else:
            readings[rule.name] = recorded_reading(kept["computed"])
    return readings, missing
