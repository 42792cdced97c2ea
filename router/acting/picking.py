"""One of several candidates, picked by the decision's selector: by weight, or by one more question to a model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from router.acting.selection import drawn, drawn_for, eligible
from router.acting.target import Contest
from router.asking.asker import Asker
from router.asking.plan import StagePlan, prepare
from router.config.candidates import ModelRef
from router.config.plan import ApiFormat, Deployment, Plan, Recipe
from router.questions import Answer, ChoiceAnswer, Unknown, UnknownReason
from router.scan.view import routing_view
from router.wire.request import LlmRequest, state_text

Stages = Mapping[tuple[str, ApiFormat], StagePlan]
"""What selectors ask, by decision and by the client's format: only models that speak it are options."""


@dataclass(frozen=True, slots=True)
class Picked:
    """A candidate; `fallback` says why the model that should have chosen did not."""

    ref: ModelRef
    fallback: UnknownReason | None = None


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
