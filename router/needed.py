"""Asking only what can matter: which of a recipe's questions could still change what is decided about a request.

Before anything is asked it is known what the router computes by itself, and which parts of the request have any text: a
rule about a part that has none is unknown for good. That may settle decisions at once; whatever cannot change the rest
is not asked. What is asked still travels in one call a deployment.

Source: `rulings.md` 8 (`global.model_catalog.ask`).
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from router.asking.plan import StagePlan, StateKey, is_blank, prepare
from router.asking.scanning.stage import GuardStage, prepare_guards
from router.config.deployments import Deployment
from router.config.plan import Recipe
from router.deciding.engine import CompiledRecipe
from router.deciding.possible import Outlook
from router.questions import Unknown, UnknownReason
from router.signals.reading import Reading, read_all

_NO_TEXT = Unknown(UnknownReason.NO_TEXT)
_MOST_KEPT = 64
_NOTHING: Final[Mapping[str, Reading]] = MappingProxyType({})


class Needed(NamedTuple):
    """What is worth asking: a stage, and guards (None: a recipe without any). `unread` are the rules of the stage that
    are unknown whatever is asked. All others are not asked."""

    stage: StagePlan
    unread: Mapping[str, Unknown]
    guards: GuardStage | None


class NeededStages:
    """What one recipe asks, by what is known of a request before anything is asked."""

    def __init__(self, recipe: Recipe, deployments: Mapping[str, Deployment], compiled: CompiledRecipe) -> None:
        self._recipe = recipe
        self._deployments = deployments
        self._outlook = Outlook(compiled)
        self._needed: dict[frozenset[StateKey], Needed] = {}
        self._stages: dict[frozenset[str], tuple[StagePlan, GuardStage | None]] = {}

    def given(self, texts: Mapping[StateKey, str], known: Mapping[str, Reading] = _NOTHING) -> Needed:
        """What to ask about a request. `known` are readings that need no asking, by rule key."""
        blank = frozenset(key for key, text in texts.items() if is_blank(text))
        if known:
            return self._without(blank, known)
        found = self._needed.get(blank)
        if found is None:
            _make_room(self._needed)
            found = self._needed[blank] = self._without(blank, known)
        return found

    def _without(self, blank: frozenset[StateKey], known: Mapping[str, Reading]) -> Needed:
        unread = [r for r in self._recipe.questions if (r.deployment, r.state) in blank and r.name not in known]
        answers = {rule.name: _NO_TEXT for rule in unread}
        needed = self._outlook.needed_rules({**known, **read_all(unread, answers)})
        stage, guards = self._stage(needed)
        return Needed(stage, answers, guards)

    def _stage(self, needed: frozenset[str]) -> tuple[StagePlan, GuardStage | None]:
        found = self._stages.get(needed)
        if found is None:
            _make_room(self._stages)
            rules = [rule for rule in self._recipe.questions if rule.name in needed]
            guards = [rule for rule in self._recipe.guards if rule.name in needed]
            guarded = prepare_guards(guards, self._deployments) if guards else None
            found = self._stages[needed] = (prepare(rules, self._deployments), guarded)
        return found


def _make_room(kept: dict[Any, Any]) -> None:
    if len(kept) >= _MOST_KEPT:
        kept.clear()
