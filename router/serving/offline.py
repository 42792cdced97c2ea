"""Requests decided without a router: the models that they need are started for them, and ended again.

A model that does not start, or does not answer in time, leaves its questions unknown, as it would in a router.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import tempfile
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from pathlib import Path

from router.asking.errors import SupervisionError
from router.asking.fleet import Connections, Fleet
from router.asking.overload.desk import Desk
from router.asking.placement import Placement
from router.asking.report import CallReport
from router.asking.supervise import default_command
from router.config.credentials import why_absent
from router.config.plan import Plan
from router.explaining.explanation import Explanation, explain
from router.explaining.notes import Notes
from router.explaining.posed import Posed, text_of
from router.generation import Generation
from router.observe import Metrics
from router.pipeline import Pipeline
from router.serving.prepare import asked_deployments, connect
from router.verdict import Forward
from router.wire.errors import WireError
from router.wire.http import Reply
from router.wire.request import read_request
from router.wire.surface import classify


class _Unheard:
    """Nobody counts these calls."""

    def call_ended(self, report: CallReport) -> None:
        """Nothing."""

    def looked_up(self, deployment: str, hits: int, shared: int, misses: int) -> None:
        """Nothing."""


@dataclasses.dataclass(frozen=True, slots=True)
class Offline:
    """A request's explanation, the plan as it was decided by, and the models that could not be asked with the reason.

    `text` is the request's own. `explanation` is None when the request cannot be read; then `reply` is what its client
    would get.
    """

    plan: Plan
    explanation: Explanation | None
    reply: Reply | Forward
    silent: Mapping[str, str]
    text: str = ""


async def explain_offline(
    plan: Plan,
    posed: Posed,
    *,
    environ: Mapping[str, str],
    ready_within_s: float,
    starting: Callable[[str], None] = lambda name: None,
) -> Offline:
    """Decide `posed` by `plan` and explain it. Raises NotServable for questions that a model does not answer.

    `starting` is told of each model that is started here; loading them may take `ready_within_s` in all.
    """
    plan = only_needed(plan, [posed])
    async with rehearsing(plan, environ=environ, ready_within_s=ready_within_s, starting=starting) as found:
        generation, silent = found
        notes = Notes()
        pipeline = Pipeline(generation, Metrics())
        reply = await pipeline.decided(posed.head, posed.body, generation, notes)
    plan = generation.plan
    if notes.request is None:
        return Offline(plan, None, reply, silent)
    policy = generation.policies.get(notes.recipe) if notes.recipe is not None else None
    explanation = explain(plan, policy.compiled if policy is not None else None, notes)
    return Offline(plan, explanation, reply, silent, text_of(posed, notes.request))


@contextlib.asynccontextmanager
async def rehearsing(
    plan: Plan, *, environ: Mapping[str, str], ready_within_s: float, starting: Callable[[str], None]
) -> AsyncIterator[tuple[Generation, dict[str, str]]]:
    """A generation that can decide, until the end of the block, and the models that cannot be asked with the reason.

    Raises NotServable for questions that a model does not answer.
    """
    with tempfile.TemporaryDirectory(prefix="pointsman-") as name:
        folder = Path(name)
        plan, silent = _without_keyless(plan, folder, environ)
        desk = Desk(asyncio.get_running_loop())
        async with Fleet(folder, environ=environ, command=_quietly, desk=desk) as fleet:
            generation = await connect(plan, fleet, _Unheard())
            silent |= await _loaded(generation.connections, ready_within_s, starting)
            yield generation, silent


def only_needed(plan: Plan, posed: Iterable[Posed]) -> Plan:
    """The plan with no entrypoints but those that these requests come in by, so that no other's models are started."""
    models = set[str | None]()
    for one in posed:
        surface = classify(one.head)
        if surface.format is None:
            return plan
        with contextlib.suppress(WireError):  # one that cannot be read reaches no recipe
            models.add(read_request(surface.format, one.body).model)
    entrypoints = {name: recipe for name, recipe in plan.entrypoints.items() if name in models}
    return dataclasses.replace(
        plan, entrypoints=entrypoints, default_entrypoint=plan.default_entrypoint if None in models else None
    )


def _without_keyless(plan: Plan, folder: Path, environ: Mapping[str, str]) -> tuple[Plan, dict[str, str]]:
    """The plan with models whose key is not here where nobody answers, and why for each."""
    silent: dict[str, str] = {}
    deployments = dict(plan.deployments)
    for deployment in asked_deployments(plan):
        reason = why_absent(deployment.key, environ) if deployment.key is not None else None
        if reason is not None:
            silent[deployment.name] = reason
            nowhere = f"unix://{folder / 'nobody'}"
            deployments[deployment.name] = dataclasses.replace(deployment, endpoint=nowhere, replicas=(), key=None)
    return dataclasses.replace(plan, deployments=deployments), silent


def _quietly(placement: Placement, socket: Path) -> list[str]:
    return [*default_command(placement, socket), "--log-level", "warning"]


async def _loaded(connections: Connections, within_s: float, starting: Callable[[str], None]) -> dict[str, str]:
    """Wait for the models that are ours; those that do not answer, with the reason."""
    for name in connections.processes:
        starting(name)
    silent: dict[str, str] = {}

    async def wait(name: str) -> None:
        try:
            async with asyncio.timeout(within_s):
                await connections.processes[name].wait_ready()
        except TimeoutError:
            silent[name] = f"it was not ready within {within_s:g} s"
        except SupervisionError as error:
            silent[name] = str(error)

    await asyncio.gather(*map(wait, connections.processes))
    return silent
