"""Guard rules: questions about the whole of an input, which is read in windows where it is long.

The families `jailbreak`, `safety` and `pii`, and `systemone` rules with `coverage: full`. How an input is cut and in
which order it is read is the deployment's (`config.sizes.ScanWindow`); what a rule makes of what was read is here.

Sources: "Long inputs" (Guard rules read the whole input; Coverage and failures), `rulings.md` 3, 6, 10, 12b-12d, 30.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Literal

from router.config.sizes import BYTES_PER_TOKEN
from router.questions import Levels, Predicate, Question, QuestionType, level_at

if TYPE_CHECKING:
    from router.config.plan import StateKind

OnUnscanned = Literal["best_effort", "match", "no_match", "unknown"]
"""What decides when a deadline left windows unread and none of those that were read decided."""

GuardPolicy = Literal["match", "no_match"]

_NO_LEVELS: Final[Mapping[str, Levels]] = MappingProxyType({})


def in_bytes(levels: Levels) -> Levels:
    """Levels by tokens as levels by bytes, the way windows are measured."""
    return tuple((tokens * BYTES_PER_TOKEN, level) for tokens, level in levels)


@dataclass(frozen=True, slots=True)
class Hazard:
    """The kinds of harm by which a `safety` rule matches: a second question, a set, about the same input.

    The rule matches where the input is unsafe and one of `labels` is as probable as `threshold`. `chosen`: the operator
    named them; else they are all that the model is known to have. `calibrated` and `stopgap` as of a guard rule.
    """

    question: Question
    labels: frozenset[str]
    chosen: bool
    threshold: float
    calibrated: bool
    stopgap: bool = False

    def calibrated_by(self, thresholds: Mapping[str, float]) -> Hazard:
        """As `GuardRule.calibrated_by`."""
        own = thresholds.get(self.question.preset or "")
        if own is None or not self.stopgap:
            return self
        question = replace(self.question, threshold=None)
        return replace(self, question=question, threshold=own, calibrated=True, stopgap=False)


@dataclass(frozen=True, slots=True)
class GuardRule:
    """A rule that reads all of its input.

    `name` is the rule's key (`config.families`). A noul matches by `predicate`. A set or span matches by any label that
    its answer selects, by the model's own threshold or by `question.threshold`, except `allowed` ones; `predicate`,
    which only `systemone` rules have then, asks more of the probability. `labels` are those that count (None: any).

    `threshold` is where near misses are measured from; None where nothing says. `calibrated`: it is the model card's,
    not the operator's and no stopgap, so that a model may correct it for the length of an input. `stopgap`: nobody has
    given one so far.

    `levels` are thresholds for inputs of up to so many bytes, shortest first, by which a calibrated one is corrected
    (a longer input has the last's): a yes among many windows is likelier by chance than one in a single window.

    `on_unknown` None leaves an unknown rule to its decisions. `min_coverage` is the share of windows that `best_effort`
    needs. `normalise`: the normalised twin is read too. `timeout_ms` bounds each window's answer; None for the signals'
    deadline alone. `whole`: a match does not end the reading, because something wants all labels or the exact value.
    """

    name: str
    family: str
    deployment: str
    question: Question
    state: StateKind
    predicate: Predicate | None
    threshold: float | None
    calibrated: bool = False
    labels: frozenset[str] | None = None
    allowed: frozenset[str] = frozenset()
    on_unknown: GuardPolicy | None = None
    on_unscanned: OnUnscanned = "best_effort"
    min_coverage: float | None = None
    normalise: bool = True
    timeout_ms: int | None = None
    hazard: Hazard | None = None
    whole: bool = False
    stopgap: bool = False
    levels: Levels = ()

    def at(self, size: int) -> GuardRule:
        """The rule for an input of so many bytes. The length alone corrects, and never what an operator wrote."""
        level = level_at(self.levels, size)
        return self if level is None else replace(self, threshold=level, predicate=Predicate(gte=level))

    def calibrated_by(self, thresholds: Mapping[str, float], levels: Mapping[str, Levels] = _NO_LEVELS) -> GuardRule:
        """The rule with the thresholds that its model was calibrated to, by preset, in place of stopgaps.

        For a model that tells them itself, after the configuration was read. `levels` are by length, in tokens.
        """
        hazard = None if self.hazard is None else self.hazard.calibrated_by(thresholds)
        own = thresholds.get(self.question.preset or "")
        if own is None or not self.stopgap:
            return replace(self, hazard=hazard)
        found = replace(self, hazard=hazard, threshold=own, calibrated=True, stopgap=False)
        if self.question.type is QuestionType.NOUL:
            corrected = in_bytes(levels.get(self.question.preset or "", ()))
            return replace(found, predicate=Predicate(gte=own), levels=corrected)
        return replace(found, question=replace(self.question, threshold=None))

    @property
    def labelled(self) -> bool:
        """Whether conditions can ask for one of its labels."""
        return self.hazard is not None or self.question.type is not QuestionType.NOUL

    @property
    def counted(self) -> tuple[str, ...]:
        """The labels by which it can match, sorted; none for a plain yes/no.

        Of a model of which nobody knows them, those of the public text.
        """
        if self.hazard is not None:
            return tuple(sorted(self.hazard.labels))
        if not self.labelled:
            return ()
        public = {option.key for option in self.question.options} - self.allowed
        return tuple(sorted(public if self.labels is None else self.labels))
