"""Asking only what can matter: which of a recipe's questions could still change what is decided about a request.

Before anything is asked it is known which parts of the request have any text. A rule about a part that has none is
unknown for good, which may settle decisions at once; whatever cannot change the rest is not asked. What is asked still
travels in one call a deployment.

Source: `rulings.md` 8 (`global.model_catalog.ask`).
"""

from __future__ import annotations

from collections.abc import Mapping

from router.asking.plan import StagePlan, StateKey, is_blank, prepare
from router.config.plan import Deployment, Recipe
from router.deciding.engine import CompiledRecipe
from router.deciding.possible import Outlook
from router.questions import Unknown, UnknownReason
from router.signals.reading import read_all

_NO_TEXT = Unknown(UnknownReason.NO_TEXT)
_MOST_KEPT = 64


class NeededStages:
    """What one recipe asks, by which of its texts are blank; worked out when it first occurs."""

    def __init__(self, recipe: Recipe, deployments: Mapping[str, Deployment], compiled: CompiledRecipe) -> None:
        self._recipe = recipe
        self._deployments = deployments
        self._outlook = Outlook(compiled)
        self._stages: dict[frozenset[StateKey], tuple[StagePlan, Mapping[str, Unknown]]] = {}

    def given(self, texts: Mapping[StateKey, str]) -> tuple[StagePlan, Mapping[str, Unknown]]:
        """The stage to ask, and the rules that are unknown whatever is asked. All others are not asked."""
        blank = frozenset(key for key, text in texts.items() if is_blank(text))
        found = self._stages.get(blank)
        if found is None:
            if len(self._stages) >= _MOST_KEPT:
                self._stages.clear()
            found = self._stages[blank] = self._without(blank)
        return found

    def _without(self, blank: frozenset[StateKey]) -> tuple[StagePlan, Mapping[str, Unknown]]:
        unread = [rule for rule in self._recipe.questions if (rule.deployment, rule.state) in blank]
        answers = {rule.name: _NO_TEXT for rule in unread}
        needed = self._outlook.needed_rules(read_all(unread, answers))
        rules = [rule for rule in self._recipe.questions if rule.name in needed]
        return prepare(rules, self._deployments), answers
