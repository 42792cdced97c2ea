"""The guards of one request: what they read, when a match of theirs is enough, and what is counted and logged of them.

Sources: "Long inputs" (Coverage and failures), `rulings.md` 6 and 12b.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Final

from router.asking.plan import is_blank
from router.asking.scanning.stage import GuardStage
from router.config.families import family_of, written_name
from router.deciding.guarded import GuardResult, Refusals, not_asked, nothing_to_read, result_of
from router.deciding.overload import Overload, unread_for_overload
from router.generation import Policy
from router.observe import Metrics
from router.questions import Answer, Unknown, UnknownReason
from router.scan.rules import Outcome
from router.signals.reading import Reading, read_all
from router.wire.request import LlmRequest, guard_state

logger = logging.getLogger("pointsman.judging")

Refuses = Callable[[str, Mapping[str, Answer], Mapping[str, Answer]], bool]


_NOTHING: Final[Mapping[str, Answer]] = MappingProxyType({})
_NO_OUTCOMES: Final[Mapping[str, Outcome]] = MappingProxyType({})


class RequestGuards:
    """The guards of one request. `inputs` are what they read, by part of the request."""

    def __init__(self, policy: Policy, guards: GuardStage, refusals: Refusals, request: LlmRequest) -> None:
        """`guards` and `refusals` are the policy's."""
        self._policy = policy
        self._refusals = refusals
        self.inputs = {state: guard_state(request, state) for state in guards.states}
        blank = {state for state, text in self.inputs.items() if is_blank(text)}
        self._empty = {rule.name: nothing_to_read(rule) for rule in guards.rules if rule.state in blank}

    @property
    def known(self) -> Mapping[str, Reading]:
        """The readings that need no asking."""
        return {name: result.reading for name, result in self._empty.items()}

    def refusing(self, computed: Mapping[str, Reading], known: Mapping[str, Answer]) -> Refuses:
        """Whether a match settles that the request is refused, beside what is known of it before anything is asked."""

        def refuses(key: str, matched: Mapping[str, Answer], answers: Mapping[str, Answer]) -> bool:
            given = {**known, **answers}
            rules = [rule for rule in self._policy.recipe.questions if rule.name in given]
            return self._refusals.settled(key, matched, {**computed, **self.known, **read_all(rules, given)})

        return refuses

    def final(self, matched: Mapping[str, Answer], outcomes: Mapping[str, Outcome]) -> Mapping[str, Reading]:
        """The readings that stay as they are, of what the scans have matched so far and of what they ended with."""
        ended = self.results(outcomes).items() if outcomes else ()
        read = {name: result.reading for name, result in ended if not result.lacks_room}
        return {**self.known, **self._refusals.certain(matched), **read}

    def results(self, outcomes: Mapping[str, Outcome]) -> dict[str, GuardResult]:
        """What every guard of the recipe comes to, given the scans' outcomes of those that were asked."""
        waits = self._policy.overload is not None
        found: dict[str, GuardResult] = {}
        for rule in self._policy.recipe.guards:
            if rule.name in self._empty:
                found[rule.name] = self._empty[rule.name]
            elif rule.name in outcomes:
                found[rule.name] = result_of(rule, outcomes, waits=waits)
            else:
                found[rule.name] = not_asked(rule)
        return found


class Foregone:
    """Whether a request is refused whatever else would be read of it, so that nobody needs to wait for room."""

    def __init__(
        self,
        policy: Policy,
        overload: Overload,
        guards: RequestGuards | None,
        computed: Mapping[str, Reading],
        known: Mapping[str, Answer],
    ) -> None:
        """`overload` is the policy's. `computed` and `known` is what there is before anything is asked, by rule."""
        self._questions = policy.recipe.questions
        self._overload = overload
        self._guards = guards
        self._computed = computed
        self._known = known

    def is_refused(
        self,
        answers: Mapping[str, Answer],
        matched: Mapping[str, Answer] = _NOTHING,
        outcomes: Mapping[str, Outcome] = _NO_OUTCOMES,
    ) -> bool:
        """By the answers so far, by rule, and what is known of the guards' scans (`RequestGuards.final`)."""
        given = {**self._known, **answers}
        rules = [rule for rule in self._questions if rule.name in given]
        final = self._guards.final(matched, outcomes) if self._guards is not None else {}
        readings = {**self._computed, **read_all(rules, given), **final}
        return self._overload.refuses_already(readings, unread_for_overload(readings))


def count(metrics: Metrics, deployments: Mapping[str, str], results: Mapping[str, GuardResult]) -> None:
    """Count how much was read. `deployments` are by rule."""
    for name, result in results.items():
        if result.coverage is not None:
            metrics.scans.coverage(_signal(name), result.coverage.result)()
            metrics.scans.ratio(_signal(name))(result.coverage.share)
            if result.decided:
                metrics.scans.decided(_signal(name))()
        if isinstance(result.answer, Unknown) and result.answer.reason is not UnknownReason.NOT_ASKED:
            metrics.unknown_answer(deployments[name], result.answer.reason)()


def tell_closed(
    metrics: Metrics, recipe: str, results: Mapping[str, GuardResult], unread: Iterable[str] = ()
) -> frozenset[str]:
    """Count and log the rules that match without evidence, and return them. `unread` do for overload."""
    closed: dict[str, str] = {name: one.failed_closed for name, one in results.items() if one.failed_closed is not None}
    closed |= dict.fromkeys(unread, "on_unknown")
    if not closed:
        return frozenset()
    told: list[str] = []
    for name, policy in closed.items():
        metrics.scans.failed_closed(_signal(name), policy)()
        reason = results[name].reason or UnknownReason.OVERLOADED
        told.append(f"{_signal(name)} ({policy}: {reason})")
    logger.warning("signal_failed_closed", extra={"fields": {"recipe": recipe, "signals": told}})
    return frozenset(closed)


def _signal(name: str) -> str:
    return f"{family_of(name)}:{written_name(name)}"
