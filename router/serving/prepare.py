"""From a plan to a generation that can serve: models connected, ready, and able to answer what they will be asked."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
from collections.abc import Iterator, Mapping

from router.asking.asker import Asker
from router.asking.fleet import Connections, Fleet
from router.asking.probe import probe
from router.asking.report import CallObserver
from router.asking.scanning.stage import composed_rules, guard_questions
from router.config.deployments import Deployment, Dialect
from router.config.plan import Plan, QuestionRule, Recipe
from router.generation import Generation
from router.questions import Capabilities, Levels, QuestionType
from router.scan.normalise import normalise
from router.serving.embedding import embed_candidates
from router.serving.errors import NotServable
from router.serving.labels import impossible_labels
from router.signals.guards import rule_of

logger = logging.getLogger("pointsman.serving")

PROBE_TIMEOUT_S = 3.0
_NOT_PLAIN = "\u00e9"


def asked_deployments(plan: Plan) -> tuple[Deployment, ...]:
    """The deployments that some published recipe asks. Others are not started: nothing would ever reach them."""
    recipes = set(plan.entrypoints.values()) | ({plan.default_entrypoint} if plan.default_entrypoint else set())
    published = [recipe for name, recipe in plan.recipes.items() if name in recipes]
    asked = [rule.deployment for recipe in published for rule in recipe.asked]
    asked += [rule.deployment for recipe in published for rule in recipe.guards]
    return tuple(plan.deployments[name] for name in dict.fromkeys(asked))


def undescribed(plan: Plan) -> tuple[Deployment, ...]:
    """Attached models that are asked although they have not said yet what they can answer."""
    return tuple(
        deployment
        for deployment in asked_deployments(plan)
        if deployment.endpoint is not None and deployment.capabilities is None
    )


async def prepare(plan: Plan, fleet: Fleet, observer: CallObserver, *, ready_within_s: float) -> Generation:
    """Start what the plan needs and wait for it.

    Raises NotServable, and SupervisionError for a model that ends again and again. Other plans' models are left alone.
    """
    generation = await connect(plan, fleet, observer)
    connections = generation.connections
    try:
        async with asyncio.timeout(ready_within_s):
            await connections.wait_ready()
    except TimeoutError:
        late = [name for name in connections.processes if not connections.is_ready(name)]
        raise NotServable(
            [f"decision model {name!r} did not answer within {ready_within_s:g} s" for name in late]
        ) from None
    await embed_candidates(generation)
    return generation


async def connect(plan: Plan, fleet: Fleet, observer: CallObserver) -> Generation:
    """Start what the plan needs without waiting for it. Raises NotServable, and SupervisionError."""
    try:
        connections = fleet.use(asked_deployments(plan))
    except ValueError as error:
        raise NotServable([str(error)]) from None
    plan = await describe_attached(plan, connections)
    problems = [*_incapable(plan), *impossible_labels(plan)]
    if problems:
        raise NotServable(problems)
    for recipe in plan.recipes.values():
        if rules := composed_rules(recipe, plan.deployments):
            logger.info("composed_noul", extra={"fields": {"recipe": recipe.name, "rules": list(rules)}})
    if any(guard.normalise for recipe in plan.recipes.values() for guard in recipe.guards):
        await asyncio.to_thread(normalise, _NOT_PLAIN)  # its tables are made on first use
    asker = Asker(connections.lines, is_ready=connections.is_ready, observer=observer)
    return Generation(plan, connections, asker, fleet.desk)


async def describe_attached(plan: Plan, connections: Connections) -> Plan:
    """The plan with what attached models say of themselves; one that does not answer now is asked as the plan says.

    A remote API that lists what its model can be asked speaks as our runtime does; one that does not is taken for what
    the configuration says, in the dialect that every such API understands.
    """
    remote = [deployment for deployment in asked_deployments(plan) if deployment.dialect is Dialect.SYSTEMONE]
    silent = [*undescribed(plan), *remote]
    if not silent:
        return plan
    found = await asyncio.gather(
        *(probe(connections.clients[one.name], one, timeout_s=PROBE_TIMEOUT_S) for one in silent)
    )
    known = dict(plan.deployments)
    for deployment, capabilities in zip(silent, found, strict=True):
        if capabilities is not None:
            described = dataclasses.replace(deployment.described(capabilities), dialect=Dialect.RUNTIME)
            known[deployment.name] = described
        elif deployment.dialect is Dialect.RUNTIME:
            fields = {"deployment": deployment.name}
            logger.warning("attached decision model does not describe itself", extra={"fields": fields})
    recipes = {name: _calibrated(recipe, known) for name, recipe in plan.recipes.items()}
    return dataclasses.replace(plan, deployments=known, recipes=recipes)


def _calibrated(recipe: Recipe, deployments: Mapping[str, Deployment]) -> Recipe:
    """The recipe with the thresholds that models list, where neither its rules nor a card at hand gave one."""

    def listed(deployment: str) -> Mapping[str, float]:
        can = deployments[deployment].capabilities
        return can.preset_thresholds if can is not None else {}

    def levels(deployment: str) -> Mapping[str, Levels]:
        can = deployments[deployment].capabilities
        return can.preset_levels if can is not None else {}

    guards = tuple(guard.calibrated_by(listed(guard.deployment), levels(guard.deployment)) for guard in recipe.guards)
    questions = tuple(rule.calibrated_by(listed(rule.deployment)) for rule in recipe.questions)
    changed = [(new.name, new.threshold) for new, old in zip(guards, recipe.guards, strict=True) if new != old]
    pairs = zip(questions, recipe.questions, strict=True)
    changed += [(new.name, new.predicate.gte) for new, old in pairs if new != old and new.predicate is not None]
    for rule, threshold in changed:
        fields = {"recipe": recipe.name, "rule": rule, "threshold": threshold}
        logger.info("the model's own threshold is used", extra={"fields": fields})
    return dataclasses.replace(recipe, guards=guards, questions=questions)


def _incapable(plan: Plan) -> Iterator[str]:
    for recipe in plan.recipes.values():
        for rule in (*recipe.asked, *guard_questions(recipe.guards)):
            capabilities = plan.deployments[rule.deployment].capabilities
            if capabilities is not None and not _can_answer(capabilities, rule):
                preset = rule.question.preset
                asked = f"preset {preset!r}" if preset else f"{rule.question.type} questions"
                where = f"recipe {recipe.name!r}, rule {rule_of(rule.name)!r}"
                yield f"{where}: decision model {rule.deployment!r} does not answer {asked}"


def _can_answer(capabilities: Capabilities, rule: QuestionRule) -> bool:
    question = rule.question
    if question.type is QuestionType.SIMILARITY:
        return capabilities.similarity
    if question.preset is not None:
        if question.preset in capabilities.presets:
            return capabilities.presets[question.preset] is question.type
        if question.instructions is None:
            return False  # without the preset's public text there is nothing to ask instead
    if question.type is QuestionType.SET and QuestionType.NOUL in capabilities.question_types:
        return True  # put together from one yes/no question per label
    return question.type in capabilities.question_types
