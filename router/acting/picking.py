"""One of several candidates, picked by the decision's selector: by weight, by one more question to a model, or by what
was measured of the candidates.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from router.acting.factors import by_factors
from router.acting.latencies import Latencies
from router.acting.selection import drawn, drawn_for, eligible
from router.acting.standing import Contestants, Why, by_latency
from router.acting.target import Contest, Refused
from router.asking.asker import Asker
from router.asking.plan import StagePlan, prepare
from router.config.candidates import ModelRef
from router.config.deployments import Deployment
from router.config.measures import LatencyRule, MeasureRule
from router.config.plan import ApiFormat, Plan, ProviderModel, Recipe
from router.questions import Answer, ChoiceAnswer, Unknown, UnknownReason
from router.scan.view import routing_view
from router.wire.errors import ErrorCode
from router.wire.request import LlmRequest, state_text

Stages = Mapping[tuple[str, ApiFormat], StagePlan]
"""What selectors ask, by decision and by the client's format: only models that speak it are options."""


@dataclass(frozen=True, slots=True)
class Picked:
    """A candidate; `fallback` says why the model that should have chosen did not.

    `contestants` is how all candidates stand, where the selector reads what was measured of them.
    """

    ref: ModelRef
    fallback: UnknownReason | None = None
    contestants: Contestants | None = None


def selector_stages(recipe: Recipe, plan: Plan) -> Stages:
    """The questions of a recipe's selectors, ready to ask."""
    stages: dict[tuple[str, ApiFormat], StagePlan] = {}
    for decision in recipe.decisions:
        rule = decision.selector.question
        for wanted in ApiFormat if rule is not None else ():
            names = {ref.model for ref in eligible(decision, plan.models, wanted)}
            if rule is not None and len(names) > 1:
                options = tuple(option for option in rule.question.options if option.key in names)
                asked = replace(rule, question=replace(rule.question, options=options))
                stages[decision.name, wanted] = prepare((asked,), plan.deployments)
    return stages


def by_weight(contest: Contest, key: bytes | None, draw: Callable[[], float]) -> Picked:
    """By weight: always the same for the same conversation, in every process; by chance where there is none."""
    return Picked(drawn(contest.refs, draw()) if key is None else drawn_for(contest.refs, key))


def by_measure(
    contest: Contest,
    rule: MeasureRule,
    latencies: Latencies,
    models: Mapping[str, ProviderModel],
    kept: ModelRef | None,
) -> Picked:
    """By what was measured, unless the conversation has a model already: `kept`. Raises NoneWillDo."""
    candidates = [(models[ref.model], latencies.measured(models[ref.model])) for ref in contest.refs]
    stand = by_latency(rule, candidates) if isinstance(rule, LatencyRule) else by_factors(rule, candidates)
    if kept is not None:
        return Picked(kept, None, replace(stand, picked=contest.refs.index(kept), why=Why.CONVERSATION))
    if stand.picked is None:
        raise NoneWillDo(stand)
    return Picked(contest.refs[stand.picked], None, stand)


class NoneWillDo(Refused):
    """No candidate keeps to the selector's limits, and it says that then there is none."""

    def __init__(self, contestants: Contestants) -> None:
        super().__init__(ErrorCode.NO_ELIGIBLE_MODEL)
        self.contestants = contestants


async def by_question(
    contest: Contest,
    request: LlmRequest,
    asker: Asker,
    stage: StagePlan,
    deployments: Mapping[str, Deployment],
    *,
    deadline: float,
) -> Picked:
    """The model that the decision model chooses; the first candidate when it does not, with the reason."""
    texts = {
        (name, state): routing_view(state_text(request, state), deployments[name].view) for name, state in stage.states
    }
    asked = await asker.ask(stage, texts, stage_deadline=deadline)
    return _chosen(contest, next(iter(asked.answers.values()), None))


def _chosen(contest: Contest, answer: Answer | None) -> Picked:
    match answer:
        case ChoiceAnswer(choice=choice):
            for ref in contest.refs:
                if ref.model == choice:
                    return Picked(ref)
            reason = UnknownReason.INVALID_ANSWER
        case Unknown(reason):
            pass
        case _:
            reason = UnknownReason.NOT_ASKED
    return Picked(contest.refs[0], reason)
