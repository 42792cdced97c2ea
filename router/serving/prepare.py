"""From a plan to a generation that can serve: models connected, ready, and able to answer what they will be asked."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
from collections.abc import Iterator

from router.asking.asker import Asker, CallObserver
from router.asking.fleet import Connections, Fleet
from router.asking.probe import probe
from router.config.plan import Deployment, Plan, QuestionRule
from router.generation import Generation
from router.questions import Capabilities, QuestionType

logger = logging.getLogger("pointsman.serving")

PROBE_TIMEOUT_S = 3.0


class NotServable(Exception):
    """A valid configuration that cannot be served as things are; `problems` says why, one sentence each."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


def asked_deployments(plan: Plan) -> tuple[Deployment, ...]:
    """The deployments that some published recipe asks. Others are not started: nothing would ever reach them."""
    recipes = set(plan.entrypoints.values()) | ({plan.default_entrypoint} if plan.default_entrypoint else set())
    asked = dict.fromkeys(
        rule.deployment for name, recipe in plan.recipes.items() if name in recipes for rule in recipe.questions
    )
    return tuple(plan.deployments[name] for name in asked)


async def prepare(plan: Plan, fleet: Fleet, observer: CallObserver, *, ready_within_s: float) -> Generation:
    """Start what the plan needs and wait for it. Raises NotServable; models of other plans are left alone."""
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
    return generation


async def connect(plan: Plan, fleet: Fleet, observer: CallObserver) -> Generation:
    """Start what the plan needs without waiting for it. Raises NotServable."""
    connections = fleet.use(asked_deployments(plan))
    plan = await _described(plan, connections)
    problems = list(_incapable(plan))
    if problems:
        raise NotServable(problems)
    asker = Asker(connections.clients, is_ready=connections.is_ready, observer=observer)
    return Generation(plan, connections, asker)


async def _described(plan: Plan, connections: Connections) -> Plan:
    """The plan with what attached models say of themselves; one that does not answer now is asked as the plan says."""
    known = dict(plan.deployments)
    for name, deployment in plan.deployments.items():
        client = connections.clients.get(name)
        if deployment.endpoint is None or deployment.capabilities is not None or client is None:
            continue
        found = await probe(client, deployment, timeout_s=PROBE_TIMEOUT_S)
        if found is None:
            logger.warning("attached decision model does not describe itself", extra={"fields": {"deployment": name}})
        else:
            known[name] = dataclasses.replace(deployment, capabilities=found)
    return dataclasses.replace(plan, deployments=known)


def _incapable(plan: Plan) -> Iterator[str]:
    for recipe in plan.recipes.values():
        for rule in recipe.questions:
            capabilities = plan.deployments[rule.deployment].capabilities
            if capabilities is not None and not _can_answer(capabilities, rule):
                preset = rule.question.preset
                asked = f"preset {preset!r}" if preset else f"{rule.question.type} questions"
                where = f"recipe {recipe.name!r}, rule {rule.name!r}"
                yield f"{where}: decision model {rule.deployment!r} does not answer {asked}"


def _can_answer(capabilities: Capabilities, rule: QuestionRule) -> bool:
    if rule.question.preset is not None:
        return rule.question.preset in capabilities.presets
    if rule.question.type is QuestionType.SET and QuestionType.NOUL in capabilities.question_types:
        return True  # put together from one yes/no question per label
    return rule.question.type in capabilities.question_types
