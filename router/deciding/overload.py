"""What becomes of a request of which some rules were left unread because their model had no room.

Such a request is neither let through unread nor refused for having been unlucky. With `action: retry` it gets an error
that its client tries again, wherever what was left unread is what it would have been refused for, or could have been:

| with what was read, and what was not    | then                                                    |
| --------------------------------------- | ------------------------------------------------------- |
| a decision that refuses matches         | it refuses: on evidence, or by a condition's `on_error` |
| it is refused whatever would be read    | it refuses, by the policies of other failures           |
| it fails whatever would be read         | it fails: `fail_request` on another failure             |
| what was not read could refuse it, or   | the retryable error, in place of the refusal, of the    |
| fails it                                | forward and of the failure alike                        |
| nothing that was not read could refuse  | it goes on; those rules are unknown, or what their own  |
|                                         | `on_unknown` stands for                                 |

A prompt that no model could take is refused before this is asked.

Sources: "Performance and cost" (When the decision model is overloaded), `rulings.md` (Overload against failure
policies), `reference.md` 3.6.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from router.deciding.engine import CompiledRecipe, Outcome, Readings, decide
from router.deciding.possible import Fate, Outlook
from router.questions import UnknownReason
from router.signals.reading import Reading

Action = Literal["refuse", "retry"]


@dataclass(frozen=True, slots=True)
class Resolution:
    """What to do with a request. `outcome` is None when it gets the retryable error.

    `unread` are the rules left unread for overload, in the recipe's order. `failed_closed` are those of them that count
    as matches in the outcome because their own policy says so; they are no detections.
    """

    outcome: Outcome | None
    unread: tuple[str, ...]
    failed_closed: tuple[str, ...] = ()


NOT_READ: Final = Reading(None, None, reason=UnknownReason.OVERLOADED)


def unread_for_overload(readings: Readings) -> frozenset[str]:
    """The rules that are unknown because their model had no room."""
    return frozenset(name for name, reading in readings.items() if reading.reason is UnknownReason.OVERLOADED)


class Overload:
    """A recipe made ready for such questions. Immutable, and shared by all requests."""

    __slots__ = ("_compiled", "_outlook", "_policies", "_rules")

    def __init__(self, compiled: CompiledRecipe, policies: Mapping[str, Reading]) -> None:
        """`policies` holds, for each guard with an `on_unknown` of its own, the reading that this stands for: a match
        or none. A rule that is not in it stays unknown."""
        self._compiled = compiled
        self._outlook = Outlook(compiled)
        self._policies = policies
        self._rules = tuple(rule.name for rule in compiled.recipe.rules)

    def resolve(self, readings: Readings, unread: Iterable[str], action: Action) -> Resolution:
        """Decide once the wait is over, or at once with `refuse`.

        `readings` are of all rules, and no policy may have been applied to those of `unread`. These may be read in
        part: a match of a part stands, while a part in which nothing was found says nothing of the rest.
        """
        left = frozenset(name for name in unread if not (name in readings and readings[name].matched))
        unknown = [name for name in left if name not in readings or readings[name].matched is None]
        by_policy = {name: self._policies[name] for name in unknown if name in self._policies}
        outcome = decide(self._compiled, {**readings, **by_policy})
        names = tuple(name for name in self._rules if name in left)
        closed = tuple(name for name in names if name in by_policy and by_policy[name].matched)
        if not left or action == "refuse":
            return Resolution(outcome, names, closed)
        evident = self._without(readings, left)
        if evident is not None:
            return Resolution(evident, names)
        if outcome.failed or any(fate.decision.refuses and fate.may_match for fate in self._fates(readings, left)):
            return Resolution(None, names)
        return Resolution(outcome, names, closed)

    def refuses_already(self, readings: Readings, unread: Iterable[str]) -> bool:
        """Whether the request is refused whatever `unread` turn out, so that nobody needs to wait for them."""
        return _refuse_for_sure(self._fates(readings, frozenset(unread)))

    def _without(self, readings: Readings, left: frozenset[str]) -> Outcome | None:
        """The refusal or failure that does not rest on what was left unread; None where there is none."""
        evident = decide(self._compiled, {**readings, **dict.fromkeys(left, NOT_READ)})
        selected = evident.selected
        if selected is not None and selected.refuses and selected.name not in evident.applied:
            return evident
        fates = self._fates(readings, left)
        if selected is not None and selected.refuses and _refuse_for_sure(fates):
            return evident
        fails_anyway = {fate.decision.name for fate in fates if fate.sure and fate.may_fail and not fate.may_match}
        return evident if fails_anyway & set(evident.failed) else None

    def _fates(self, readings: Readings, left: frozenset[str]) -> tuple[Fate, ...]:
        return self._outlook.fates({name: reading for name, reading in readings.items() if name not in left})


def _refuse_for_sure(fates: Iterable[Fate]) -> bool:
    """Whether one of these is selected for sure, and each of them refuses."""
    fates = tuple(fates)
    certain = any(fate.sure and fate.may_match and not fate.may_fail for fate in fates)
    return certain and all(fate.decision.refuses and not fate.may_fail for fate in fates)
