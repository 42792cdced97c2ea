"""What probes come to: decided here without a router, or sent to a listener that is running.

Without a router a probe waits for its answers as long as they take, because it tests the policy, not the pace. A
listener keeps its own deadlines.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence

import aiohttp

from router.config.plan import Plan, Recipe
from router.explaining.notes import Notes
from router.explaining.probes import Came, Judged, Probe
from router.generation import Generation
from router.observe import Metrics
from router.pipeline import Pipeline
from router.serving.offline import only_needed, rehearsing
from router.wire.http import Reply

PATIENCE_MS = 60_000
"""How long a question is waited for without a router, in milliseconds."""

AT_ONCE = 4
"""Requests in flight to a listener."""


class Unreachable(Exception):
    """The listener does not answer. The message names its address."""


async def rehearse(
    plan: Plan,
    probes: Sequence[Probe],
    *,
    environ: Mapping[str, str],
    ready_within_s: float,
    starting: Callable[[str], None] = lambda name: None,
) -> tuple[tuple[Judged, ...], Mapping[str, str]]:
    """Decide probes by a plan, one after the other; and the decision models that could not be asked, with the reason.

    Raises NotServable for questions that a model does not answer.
    """
    plan = _patient(only_needed(plan, (probe.posed for probe in probes)))
    async with rehearsing(plan, environ=environ, ready_within_s=ready_within_s, starting=starting) as found:
        generation, silent = found
        pipeline = Pipeline(generation, Metrics())
        judged = [Judged(probe, await _decided(pipeline, generation, probe)) for probe in probes]
    return tuple(judged), silent


async def _decided(pipeline: Pipeline, generation: Generation, probe: Probe) -> Came:
    notes = Notes()
    reply = await pipeline.decided(probe.posed.head, probe.posed.body, generation, notes)
    selected = notes.outcome.selected if notes.outcome is not None and notes.code is None else None
    return Came(
        status=reply.status if isinstance(reply, Reply) else 200,
        decision=selected.name if selected is not None else None,
        model=notes.target.told.get("model") if notes.target is not None else None,
    )


def _patient(plan: Plan) -> Plan:
    recipes = {name: _patient_recipe(recipe) for name, recipe in plan.recipes.items()}
    return dataclasses.replace(plan, recipes=recipes, signal_timeout_ms=PATIENCE_MS)


def _patient_recipe(recipe: Recipe) -> Recipe:
    questions = (dataclasses.replace(rule, timeout_ms=PATIENCE_MS) for rule in recipe.questions)
    guards = (dataclasses.replace(rule, timeout_ms=None) for rule in recipe.guards)
    return dataclasses.replace(recipe, questions=tuple(questions), guards=tuple(guards))


async def send(url: str, probes: Iterable[Probe]) -> tuple[Judged, ...]:
    """Send probes to a listener (`http://host:port`) and read what its answers say. Raises Unreachable."""
    room = asyncio.Semaphore(AT_ONCE)
    async with aiohttp.ClientSession() as session:

        async def one(probe: Probe) -> Judged:
            async with room:
                return Judged(probe, await _sent(session, url, probe))

        return tuple(await asyncio.gather(*map(one, probes)))


async def _sent(session: aiohttp.ClientSession, url: str, probe: Probe) -> Came:
    head = probe.posed.head
    headers = {"content-type": "application/json", **head.headers}
    try:
        async with session.post(url.rstrip("/") + head.path, data=probe.posed.body, headers=headers) as answer:
            await answer.read()
            told = answer.headers
            return Came(answer.status, told.get("x-vsr-selected-decision"), told.get("x-vsr-selected-model"))
    except (aiohttp.ClientError, ValueError) as error:
        raise Unreachable(f"{url}: cannot be asked: {type(error).__name__}") from None
