"""What guards come to: from what the scans of a request say to what its decisions see.

Evidence goes first, then what a rule says about what was not read (`on_unscanned`), then what it says about an answer
that it has not got (`on_unknown`). A rule of which nobody waited for the answer any more is none of this.

Sources: "Long inputs" (Coverage and failures), `rulings.md` 6.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from router.config.families import PROJECTION
from router.config.guards import GuardRule
from router.config.plan import Leaf, leaves_of
from router.deciding.compiling import Facts, Test, compile_leaf
from router.deciding.engine import CompiledRecipe, Readings
from router.deciding.kleene import Truth
from router.deciding.possible import Outlook
from router.deciding.refusing import match_alone_refuses
from router.questions import Answer, Unknown, UnknownReason
from router.scan.evidence import NOTHING
from router.scan.rules import Coverage, Outcome, Result
from router.signals.guards import by_policy, hazard_key, read_guard, rule_of
from router.signals.reading import Reading


@dataclass(frozen=True, slots=True)
class GuardResult:
    """A guard rule of one request. `reading` is what decisions see.

    `answer` is what the windows that were read say together, and `hazard` what they say to the second question, where
    the rule has one. `coverage` is None when there was nothing to read, or nobody asked. `decided`: a window decided
    the rule before the rest was read. `unread` is why some was not. `failed_closed` names the policy by which the rule
    matches without evidence, and `reason` is then why there was none.
    """

    reading: Reading
    answer: Answer
    hazard: Answer | None = None
    coverage: Coverage | None = None
    decided: bool = False
    unread: UnknownReason | None = None
    failed_closed: Literal["on_unknown", "on_unscanned"] | None = None
    reason: UnknownReason | None = None

    @property
    def partial(self) -> bool:
        """Whether only a part was read."""
        return self.coverage is not None and self.coverage.result == "partial"

    @property
    def lacks_room(self) -> bool:
        """Whether something was left unread for overload, and what was read is no match."""
        return self.unread is UnknownReason.OVERLOADED and self.reading.matched is not True


def nothing_to_read(rule: GuardRule) -> GuardResult:
    """A guard of a request that has no text for it: there is no attack in nothing. An operator's own question is
    unknown then, as any other of theirs is."""
    if rule.family in ("systemone", "decision"):
        return _unknown(rule, UnknownReason.NO_TEXT)
    answer = NOTHING[rule.question.type]
    return GuardResult(read_guard(rule, answer, Unknown(UnknownReason.NO_TEXT)), answer)


def not_asked(rule: GuardRule) -> GuardResult:
    """A guard that could not change what is decided."""
    return _unknown(rule, UnknownReason.NOT_ASKED)


def result_of(rule: GuardRule, outcomes: Mapping[str, Outcome], *, waits: bool) -> GuardResult:
    """What a rule comes to. With `waits`, one that is unread for overload, in part or whole, is left unknown whatever
    its policies say: the request may have to be asked for again (`deciding.overload`)."""
    parts = [outcomes[rule.name]]
    rule = rule.at(parts[0].coverage.of_bytes)
    if rule.hazard is not None:
        parts.append(outcomes[hazard_key(rule.name)])
    unread = [part.unread for part in parts if part.unread is not None]
    answers = [part.answer or Unknown(part.reason or UnknownReason.TIMEOUT) for part in parts]
    found = GuardResult(
        read_guard(rule, *answers),
        answers[0],
        answers[1] if rule.hazard is not None else None,
        min((part.coverage for part in parts), key=lambda coverage: coverage.share),
        unread=UnknownReason.OVERLOADED if UnknownReason.OVERLOADED in unread else next(iter(unread), None),
    )
    # What less than a threshold says of a part, the rest may undo: there the policy has the say.
    if found.reading.matched and not any(part.by_policy for part in parts):
        return replace(found, decided=any(part.decided for part in parts))
    if any(part.result is Result.NO_MATCH for part in parts):
        return found if found.reading.matched is False else replace(found, reading=by_policy(rule, "no_match"))
    if waits and found.unread is UnknownReason.OVERLOADED:
        return replace(found, reading=Reading(rule.question.type, None, reason=found.unread))
    unknown = [part.reason for part in parts if part.result is Result.UNKNOWN]
    if not unknown:
        return replace(found, reading=by_policy(rule, "match"), failed_closed="on_unscanned", reason=found.unread)
    reason = UnknownReason.OVERLOADED if UnknownReason.OVERLOADED in unknown else unknown[0] or UnknownReason.TIMEOUT
    if reason is UnknownReason.NOT_ASKED or rule.on_unknown is None:
        return replace(found, reading=Reading(rule.question.type, None, reason=reason))
    closed: Literal["on_unknown"] | None = "on_unknown" if rule.on_unknown == "match" else None
    return replace(found, reading=by_policy(rule, rule.on_unknown), failed_closed=closed, reason=reason)


def _unknown(rule: GuardRule, reason: UnknownReason) -> GuardResult:
    return GuardResult(Reading(rule.question.type, None, reason=reason), Unknown(reason))


class Refusals:
    """When a match of a guard settles that a request is refused: of one recipe, made ready. Shared by all requests.

    A scan may end only on what its later windows cannot change. They can add labels and raise probabilities. So a rule
    of which more than the match is read counts once every condition on it holds, and holds whatever is added.
    """

    __slots__ = ("_compiled", "_fixed", "_guards", "_outlook", "_tests")

    def __init__(self, compiled: CompiledRecipe) -> None:
        recipe = compiled.recipe
        self._compiled = compiled
        self._outlook = Outlook(compiled)
        self._guards = {rule.name: rule for rule in recipe.guards}
        measured = {term.name for score in recipe.scores for term in score.inputs}
        rivals = {member for partition in recipe.partitions for member in partition.members}
        leaves = [leaf for each in recipe.decisions for leaf in leaves_of(each.rule) if leaf.family != PROJECTION]
        self._tests: dict[str, tuple[Test, ...]] = {}
        self._fixed: set[str] = set()
        for rule in recipe.guards:
            own = [leaf for leaf in leaves if leaf.name == rule.name]
            if rule.name in rivals or (rule.whole and (rule.name in measured or not all(map(_only_grows, own)))):
                continue
            self._fixed.add(rule.name)
            self._tests[rule.name] = tuple(compile_leaf(leaf, compiled.names) for leaf in own if rule.whole)

    def settled(self, key: str, matched: Mapping[str, Answer], readings: Readings) -> bool:
        """Whether the match of `key` does, with what all matches found so far, by the keys of the scan.

        `readings` are those known of other rules.
        """
        found, name = self.certain(matched), rule_of(key)
        return name in found and match_alone_refuses(self._compiled, {**readings, **found}, name, self._outlook)

    def certain(self, matched: Mapping[str, Answer]) -> Readings:
        """The readings of rules that matched, as far as no later window can change what comes of them."""
        found: dict[str, Reading] = {}
        for name, rule in self._guards.items():
            if name not in self._fixed or name not in matched:
                continue
            reading = read_guard(rule, matched[name], matched.get(hazard_key(name)))
            facts = Facts({name: reading}, {})
            if reading.matched and all(test(facts).truth is Truth.TRUE for test in self._tests[name]):
                found[name] = reading
        return found


def _only_grows(leaf: Leaf) -> bool:
    """Whether a condition that holds goes on to hold when labels are added and values rise."""
    return leaf.predicate is None or (leaf.predicate.lt is None and leaf.predicate.lte is None)
