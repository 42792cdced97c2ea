"""Where a request goes once it is decided, or what is answered at once, and what is told about it.

Pure: what a recipe without questions comes to is worked out once, when its configuration is loaded.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from router.acting.selection import eligible
from router.config.actions import NOTHING, Actions
from router.config.candidates import ModelRef, Reasoning
from router.config.families import SYSTEMONE, family_of
from router.config.plan import ApiFormat, Decision, Plan, ProviderModel
from router.deciding.engine import Outcome
from router.wire.errors import ErrorCode


class Refused(Exception):
    """The request ends here with an error of ours."""

    def __init__(self, code: ErrorCode) -> None:
        super().__init__(code.value)
        self.code = code


class NoRoom(Refused):
    """A decision model had no room to read the request: an error that clients retry, after so many seconds."""

    def __init__(self, retry_after_s: int) -> None:
        super().__init__(ErrorCode.OVERLOADED)
        self.retry_after_s = retry_after_s


class Target(msgspec.Struct, frozen=True):
    """The provider model that answers, the decision that says so (None: no decision did), and what is told about it.

    `told` holds keys of Envoy's dynamic metadata, from which it writes the `x-vsr-*` headers of the client's answer.
    """

    model: ProviderModel
    decision: str | None
    told: Mapping[str, str]
    actions: Actions = NOTHING
    ref: ModelRef | None = None

    @property
    def model_id(self) -> str:
        """The name by which the backend knows the model."""
        lora = self.ref.lora_name if self.ref is not None else None
        return lora or self.model.provider_model_id

    @property
    def reasoning(self) -> Reasoning | None:
        """How the candidate is told to think; None: as the client says."""
        return self.ref.reasoning if self.ref is not None else None


def warned(target: Target, warning: str) -> Target:
    """The target with a warning that every caller is told."""
    told = ",".join(filter(None, (target.told.get("warnings"), warning)))
    return msgspec.structs.replace(target, told={**target.told, "warnings": told})


class Answered(msgspec.Struct, frozen=True):
    """The decision answers by itself: `text` is all that the client gets, and no backend is asked."""

    decision: str
    text: str
    told: Mapping[str, str]


class Contest(msgspec.Struct, frozen=True):
    """Several candidates could answer: one of `refs` must be picked by the decision's selector."""

    rule: Decision
    refs: tuple[ModelRef, ...]
    told: Mapping[str, str]

    @property
    def decision(self) -> str:
        """The decision's name."""
        return self.rule.name

    def target(self, plan: Plan, ref: ModelRef) -> Target:
        """The target when `ref` is picked."""
        told = {**self.told, "model": ref.model}
        return Target(plan.models[ref.model], self.rule.name, told, self.rule.actions, ref)


Settled = Target | Answered
"""What a request comes to."""


def target_by_name(plan: Plan, name: str | None, wanted: ApiFormat) -> Target:
    """The target of a client that asked for a provider model by its own name: no recipe has a say. Raises Refused."""
    if not name:
        raise Refused(ErrorCode.MODEL_REQUIRED)
    model = plan.models.get(name)
    if model is None:
        raise Refused(ErrorCode.MODEL_NOT_FOUND)
    return Target(_speaking(model, wanted), None, {"model": name})


def settle(plan: Plan, recipe: str, outcome: Outcome, wanted: ApiFormat) -> Settled | Contest:
    """What a recipe's outcome comes to for a client that speaks `wanted`. Raises Refused."""
    if outcome.failed:
        raise Refused(ErrorCode.DECISION_UNRESOLVED)
    told = _told(recipe, outcome)
    decision = outcome.selected
    if decision is None:
        if plan.default_model is None:
            raise Refused(ErrorCode.NO_ROUTE)
        model = _speaking(plan.models[plan.default_model], wanted)
        return Target(model, None, told | {"model": model.name})
    told["decision"] = decision.name
    retention = decision.actions.retention
    if retention is not None:
        told |= retention.told()
    if decision.actions.fast_response is not None:
        return Answered(decision.name, decision.actions.fast_response, told)
    refs = eligible(decision, plan.models, wanted)
    if not refs:
        raise Refused(ErrorCode.NO_ELIGIBLE_MODEL)
    contest = Contest(decision, refs, told | {"algorithm": decision.selector.kind})
    open_ = decision.selector.kind != "static" or (retention is not None and retention.keep_current_model)
    return contest if len(refs) > 1 and open_ else contest.target(plan, refs[0])


def foregone(plan: Plan, recipe: str, outcome: Outcome) -> Mapping[ApiFormat, Settled | Contest]:
    """What an outcome that no request can change comes to, by client format; formats that it refuses are left out."""
    targets: dict[ApiFormat, Settled | Contest] = {}
    for wanted in ApiFormat:
        try:
            targets[wanted] = settle(plan, recipe, outcome, wanted)
        except Refused:
            continue
    return targets


def _speaking(model: ProviderModel, wanted: ApiFormat) -> ProviderModel:
    """`model` itself; requests are not translated between formats, so one of another format is not eligible."""
    if model.api_format is not wanted:
        raise Refused(ErrorCode.NO_ELIGIBLE_MODEL)
    return model


def _told(recipe: str, outcome: Outcome) -> dict[str, str]:
    told = {"recipe": recipe}
    if outcome.confidence is not None:
        told["confidence"] = f"{outcome.confidence:.4f}"
    asked = [rule for rule in outcome.matched_rules if family_of(rule) == SYSTEMONE]
    if asked:
        told["matched_decision_model"] = ",".join(asked)
    if outcome.applied:
        told["applied_unknown_policy"] = ",".join(outcome.applied)
    return told
