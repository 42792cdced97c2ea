"""What a plan reads of requests and answers beside what says how a request travels.

Envoy sends the router nothing else: nobody's key and no cookie leaves Envoy for it, and a phase that nothing reads is
not asked.
"""

from __future__ import annotations

from router.config.candidates import SESSION_HEADERS
from router.config.offers import LISTENER_HEADER
from router.config.plan import Plan
from router.config.services import REQUEST_ID, TRACE_HEADERS


def read_headers(plan: Plan) -> tuple[str, ...]:
    """Their names in lower case, sorted."""
    names: set[str] = set()
    if plan.offers is not None and plan.offers.differ:
        names.add(LISTENER_HEADER)
    for recipe in plan.recipes.values():
        for decision in recipe.decisions:
            if decision.selector.kind != "static" and decision.selector.sticky:
                names.update(SESSION_HEADERS)
            if decision.actions.headers is not None:
                names.update(name for name, _ in decision.actions.headers.add)
    services = plan.services
    if services.tracing is not None:
        names.update(TRACE_HEADERS)
    if services.replay is not None and services.replay.capture_personal_data:
        names.update((REQUEST_ID, *SESSION_HEADERS))
    return tuple(sorted(names))


def reads_answers(plan: Plan) -> bool:
    """Whether something reads how backends answer: a selector that measures them, records of requests, or traces."""
    services = plan.services
    return any((services.replay, services.tracing)) or any(
        decision.selector.measured is not None for recipe in plan.recipes.values() for decision in recipe.decisions
    )
