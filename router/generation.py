"""A plan made ready to serve: everything compiled from it once, and how many requests still use it.

A reload makes a new generation and swaps it in; requests that started on the old one finish there ("House rules", 10).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field

from router.acting.fitting import largest_window
from router.acting.picking import Stages, selector_stages
from router.acting.target import Contest, Settled, foregone
from router.asking.asker import Asker
from router.asking.fleet import Connections
from router.asking.overload.desk import Desk
from router.asking.plan import StagePlan
from router.asking.plan import prepare as prepare_stage
from router.asking.scanning.stage import GuardStage, prepare_guards
from router.config.plan import ApiFormat, Plan, QuestionRule, Recipe
from router.config.roots import api_roots
from router.deciding.engine import CompiledRecipe, decide
from router.deciding.engine import prepare as prepare_recipe
from router.deciding.guarded import Refusals
from router.deciding.overload import Overload
from router.needed import NeededStages
from router.signals.guards import policies
from router.signals.heuristics import Heuristics
from router.wire.surface import normalise_path

DEFAULT_SIGNAL_TIMEOUT_S = 45.0
"""How long a request's signals may take when nothing else bounds them ("Performance and cost")."""


@dataclass(frozen=True, slots=True)
class Policy:
    """One recipe: what it asks at the request stage and how it decides. `needed` is None when it asks everything.

    `heuristics` is None when the router computes nothing by itself. `openings` are the rules that need no asking when
    nothing precedes the current turn. `foregone` holds what a recipe without signals comes to, by client format: no
    request can change it. `at_once`: nothing has to be waited for, neither an answer nor a choice among candidates.
    `keeps_models`: some decision keeps a conversation on the model that another's gave it. `overload` says what becomes
    of requests that were left unread for overload; None where they are decided like any other (`action: refuse`).
    `window` is the most tokens that a model of it takes, if that is known. `guards` are the rules that read all of
    their input, and `refusals` when a match of one is enough; None without any.
    """

    recipe: Recipe
    stage: StagePlan
    needed: NeededStages | None
    compiled: CompiledRecipe
    foregone: Mapping[ApiFormat, Settled | Contest]
    heuristics: Heuristics | None = None
    openings: tuple[QuestionRule, ...] = ()
    selectors: Stages = field(default_factory=dict)
    at_once: bool = False
    keeps_models: bool = False
    overload: Overload | None = None
    window: int | None = None
    guards: GuardStage | None = None
    refusals: Refusals | None = None


def _policy(recipe: Recipe, plan: Plan) -> Policy:
    compiled = prepare_recipe(recipe)
    settled = {} if recipe.rules else foregone(plan, recipe.name, decide(compiled, {}))
    needed = NeededStages(recipe, plan.deployments, compiled) if plan.ask == "needed" else None
    stage = prepare_stage(recipe.questions, plan.deployments)
    heuristics = Heuristics(recipe.heuristics) if recipe.heuristics else None
    openings = tuple(rule for rule in recipe.questions if rule.opening is not None)
    chosen = any(len(one.model_refs) > 1 and one.selector.kind != "static" for one in recipe.decisions)
    selectors = selector_stages(recipe, plan)
    keeps = any(one.actions.retention and one.actions.retention.keep_current_model for one in recipe.decisions)
    at_once = not recipe.questions and not recipe.guards and not chosen and not keeps
    waits = plan.overload.action == "retry" and bool(recipe.questions or recipe.guards)
    overload = Overload(compiled, policies(recipe.guards)) if waits else None
    guards = prepare_guards(recipe.guards, plan.deployments) if recipe.guards else None
    return Policy(
        recipe=recipe,
        stage=stage,
        needed=needed,
        compiled=compiled,
        foregone=settled,
        heuristics=heuristics,
        openings=openings,
        selectors=selectors,
        at_once=at_once,
        keeps_models=keeps,
        overload=overload,
        window=largest_window(plan, recipe),
        guards=guards,
        refusals=Refusals(compiled) if guards is not None else None,
    )


class Generation:
    """One configuration in service. Must be used from one event loop."""

    def __init__(self, plan: Plan, connections: Connections, asker: Asker, desk: Desk | None = None) -> None:
        """`desk` is where requests wait for room in a model; without one none waits."""
        self.desk = desk
        self.plan = plan
        self.connections = connections
        self.asker = asker
        self.policies: Mapping[str, Policy] = {name: _policy(recipe, plan) for name, recipe in plan.recipes.items()}
        self.deployment_of: Mapping[str, Mapping[str, str]] = {
            name: {rule.name: rule.deployment for rule in recipe.questions}
            | {rule.name: rule.deployment for rule in recipe.guards}
            for name, recipe in plan.recipes.items()
        }
        self.public_models = tuple(plan.entrypoints) + tuple(
            name for name in plan.models if name not in plan.entrypoints
        )
        self.offers = plan.offers
        """What clients may name; None where they may name any model."""
        self.api_roots = tuple({normalise_path(root).rstrip("/") for root in api_roots(plan)})
        """See `classify`."""
        self.noting = any(
            decision.actions.diagnostics is not None
            for recipe in plan.recipes.values()
            for decision in recipe.decisions
        )
        """Whether something told of a request needs notes of how it was decided."""
        self.measured = frozenset(
            ref.model
            for recipe in plan.recipes.values()
            for decision in recipe.decisions
            if decision.selector.measured is not None
            for ref in decision.model_refs
        )
        """Models of which some selector reads how they have answered."""
        self.trusts_identity = any(listener.trusted_peers for listener in plan.listeners)
        """Whether somebody may tell who asks; Envoy lets nobody else's word through."""
        self.signal_timeout_s = plan.signal_timeout_ms / 1000 or DEFAULT_SIGNAL_TIMEOUT_S
        self._users = 0
        self._idle = asyncio.Event()
        self._idle.set()

    def enter(self) -> None:
        """A request begins to be decided on this generation, which is not idle until it has left."""
        if not self._users:
            self._idle.clear()
        self._users += 1

    def leave(self) -> None:
        """That request is decided."""
        self._users -= 1
        if not self._users:
            self._idle.set()

    async def idle(self) -> None:
        """Return once no request uses this generation."""
        await self._idle.wait()
