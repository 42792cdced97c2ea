"""One request explained: its rules, its projections, every decision, and why the one that was selected was.

Pure, and made only when somebody asks. It holds names, numbers and lengths; request text is never in it.

Sources: `reference.md` 7.5 (preview, evaluation trace), `rulings.md` 8 (what was not asked is reported as such).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from router.acting.standing import Contestants
from router.asking.report import CallReport, WaitReport
from router.config.plan import Decision, Plan
from router.deciding.engine import CompiledRecipe, Outcome, decide
from router.deciding.projections import Projected
from router.deciding.trace import DecisionTrace
from router.explaining.facts import RuleFact, rule_facts
from router.explaining.notes import Notes
from router.explaining.ranking import Because, Choice, choice_of
from router.wire.errors import ErrorCode

NOT_RANKED = Choice(Because.NO_MATCH, ())


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds: the whole, the rules that are computed here, the wait for answers, and projections and decisions."""

    total: float
    computing: float
    signals: float
    decision: float


@dataclass(frozen=True, slots=True)
class Explanation:
    """All there is to say about how one request was decided.

    `recipe` is None when the client named a provider model itself: then there is nothing but `model`. `model` is None
    when the request was refused, and `code` says with what. `bands` says which score each projection output is of.
    `contestants` is how the decision's candidates stood, where its selector reads what was measured of them.
    `waited` is how the request waited for room in decision models, None when it did not.
    """

    requested_model: str | None
    recipe: str | None
    rules: tuple[RuleFact, ...]
    projected: Projected
    bands: Mapping[str, str]
    decisions: tuple[DecisionTrace, ...]
    outcome: Outcome | None
    choice: Choice
    model: str | None
    algorithm: str | None
    code: ErrorCode | None
    calls: tuple[CallReport, ...]
    times: Times
    contestants: Contestants | None = None
    waited: WaitReport | None = None

    @property
    def decision(self) -> Decision | None:
        """What was selected."""
        return self.outcome.selected if self.outcome is not None else None


def explain(plan: Plan, compiled: CompiledRecipe | None, notes: Notes) -> Explanation:
    """Explain a request from the notes of its way. `compiled` is the recipe that they name, None without one."""
    request, target = notes.request, notes.target
    rules: tuple[RuleFact, ...] = ()
    outcome: Outcome | None = None
    choice = NOT_RANKED
    bands: dict[str, str] = {}
    if compiled is not None and request is not None:
        recipe = compiled.recipe
        rules = rule_facts(plan, compiled, notes)
        outcome = decide(compiled, notes.readings, trace=True)
        choice = choice_of(recipe, notes.readings, outcome)
        bands = {output.name: mapping.source for mapping in recipe.mappings for output in mapping.outputs}
    return Explanation(
        requested_model=request.model if request is not None else None,
        recipe=notes.recipe,
        rules=rules,
        projected=outcome.projected if outcome is not None else Projected({}, {}),
        bands=bands,
        decisions=outcome.traces if outcome is not None else (),
        outcome=outcome,
        choice=choice,
        model=target.told.get("model") if target is not None else None,
        algorithm=target.told.get("algorithm") if target is not None else None,
        code=notes.code,
        calls=notes.calls,
        times=_times(notes),
        contestants=notes.contestants,
        waited=notes.waited,
    )


def _times(notes: Notes) -> Times:
    asked = notes.asked_at > 0.0
    return Times(
        total=max(notes.ended - notes.started, 0.0),
        computing=notes.computing,
        signals=max(notes.answered_at - notes.asked_at, 0.0) if asked else 0.0,
        decision=max(notes.decided_at - notes.answered_at, 0.0),
    )
