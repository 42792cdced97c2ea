"""Guard rules: what is asked, from which probability it counts, and what is made of windows that are not read.

Sources: "Long inputs" (Guard rules read the whole input; Coverage and failures), `rulings.md` 3, 6, 10, 12b-12d,
Families and presets; `reference.md` 4.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from router.config.compiler.catalogue import Catalogue
from router.config.compiler.context import PROBABILITY, Context
from router.config.compiler.coverage import check_unscanned, guard_timeout_ms
from router.config.compiler.learned import preset_question
from router.config.compiler.questions import Asked, labels_of
from router.config.compiler.waits import warn_of_cut
from router.config.deployments import Deployment
from router.config.families import rule_key
from router.config.guards import GuardPolicy, GuardRule, Hazard, in_bytes
from router.config.model import guards as dialect
from router.config.plan import StateKind
from router.config.problems import Path, nearest
from router.questions import Levels, Predicate, Question, QuestionType

DEFAULT_THRESHOLD: Final = 0.5

_ON_UNKNOWN: Final[dict[str, GuardPolicy | None]] = {"jailbreak": "match", "pii": "match", "safety": None}


class _Level(NamedTuple):
    """From which probability something counts; `calibrated` when the model's card says so, `stopgap` if nobody does."""

    value: float
    calibrated: bool
    stopgap: bool = False


def compile_guard(context: Context, catalogue: Catalogue, family: str, rule: dialect.GuardRule) -> Asked | None:
    """The rule resolved, or None after reporting what is wrong with it."""
    before = len(context.document.problems)
    check_unscanned(context, rule)
    deployment = catalogue.find(rule.deployment, rule.at("deployment"))
    if deployment is None:
        return None
    where = rule.at("deployment") if rule.has("deployment") else rule.at()
    question = preset_question(context, catalogue, family, deployment, where)
    if question is None:
        return None
    level = _level(context, rule, rule, family, question, deployment)
    warn_of_cut(context, rule, deployment)
    guard = GuardRule(
        name=rule_key(family, rule.name),
        family=family,
        deployment=deployment.name,
        question=_asked_at(question, level),
        state=StateKind.HISTORY if rule.include_history else StateKind.FRESH,
        predicate=Predicate(gte=level.value) if question.type is QuestionType.NOUL else None,
        threshold=level.value,
        calibrated=level.calibrated,
        on_unknown=rule.on_unknown or _ON_UNKNOWN[family],
        on_unscanned=rule.on_unscanned,
        min_coverage=rule.min_coverage,
        normalise=rule.normalise == "on",
        timeout_ms=guard_timeout_ms(rule.timeout_ms, deployment),
        stopgap=level.stopgap,
        levels=_levels(question, level, deployment),
    )
    labels: tuple[str, ...] | None = None
    if isinstance(rule, dialect.PiiRule):
        guard, labels = _without_allowed(context, rule, guard, labels_of(question, deployment.capabilities))
    if isinstance(rule, dialect.SafetyRule) and rule.hazard is not None:
        hazard = _hazard(context, catalogue, rule.hazard, rule, deployment)
        guard, labels = replace(guard, hazard=hazard), tuple(sorted(hazard.labels)) if hazard else None
    errors = any(problem.severity == "error" for problem in context.document.problems[before:])
    return None if errors else Asked(guard, labels, PROBABILITY)


def _level(
    context: Context,
    written: dialect.GuardRule | dialect.Hazard,
    rule: dialect.GuardRule,
    preset: str,
    question: Question,
    deployment: Deployment,
) -> _Level:
    """Ruling 10: the written threshold, else the card's, else a stopgap that is warned about."""
    if written.threshold is not None:
        return _Level(written.threshold, False)
    can = deployment.capabilities
    calibrated = can.preset_thresholds.get(question.preset or "") if can is not None else None
    if calibrated is not None:
        return _Level(calibrated, True)
    if not context.is_cut(written.at("threshold")):
        what = "threshold" if written is rule else "hazard.threshold"
        unless = "" if deployment.endpoint is None else " unless the model lists its own"
        message = (
            f"rule {context.shown(rule.name, rule.at('name'))} has no {what}, and deployment {deployment.name} none "
            f"that was calibrated for {preset}: {DEFAULT_THRESHOLD} is used{unless}"
        )
        context.warn(written.at(), message, f"measure, and write {what}", key=written is not rule)
    return _Level(DEFAULT_THRESHOLD, False, stopgap=True)


def _levels(question: Question, level: _Level, deployment: Deployment) -> Levels:
    """How the model's own threshold depends on the length of the input (ruling 30)."""
    can = deployment.capabilities
    if can is None or not level.calibrated or question.type is not QuestionType.NOUL:
        return ()
    return in_bytes(can.preset_levels.get(question.preset or "", ()))


def _asked_at(question: Question, level: _Level) -> Question:
    """What selects labels travels with the question, except the model's own threshold, which it knows."""
    selects = question.type is not QuestionType.NOUL and not level.calibrated
    return replace(question, threshold=level.value) if selects else question


def _without_allowed(
    context: Context, rule: dialect.PiiRule, guard: GuardRule, known: tuple[str, ...] | None
) -> tuple[GuardRule, tuple[str, ...] | None]:
    """The rule with the types that count, and those that conditions may name."""
    if rule.pii_types_allowed is None:
        return replace(guard, labels=None if known is None else frozenset(known)), known
    allowed = frozenset(_checked(context, rule, "pii_types_allowed", rule.pii_types_allowed, known))
    counted = None if known is None else tuple(label for label in known if label not in allowed)
    if counted == ():
        hint = "leave out a type, or the rule"
        context.error(rule.at("pii_types_allowed"), "every type is allowed, so the rule never matches", hint, key=True)
    return replace(guard, allowed=allowed, labels=None if counted is None else frozenset(counted)), counted


def _hazard(
    context: Context,
    catalogue: Catalogue,
    written: dialect.Hazard,
    rule: dialect.SafetyRule,
    deployment: Deployment,
) -> Hazard | None:
    question = preset_question(context, catalogue, "hazard", deployment, written.at())
    if question is None:
        return None
    if written.labels is not None and written.categories is not None:
        context.error(written.at("categories"), "labels and categories are one key", "keep labels", key=True)
    key = "labels" if written.labels is not None else "categories"
    known = labels_of(question, deployment.capabilities)
    chosen: Sequence[str] | None = getattr(written, key)
    if chosen is not None:
        chosen = _checked(context, written, key, chosen, known)
    level = _level(context, written, rule, "hazard", question, deployment)
    labels = frozenset(chosen if chosen is not None else known or ())
    return Hazard(_asked_at(question, level), labels, chosen is not None, *level)


def _checked(
    context: Context,
    written: dialect.PiiRule | dialect.Hazard,
    key: str,
    labels: Sequence[str],
    known: tuple[str, ...] | None,
) -> list[str]:
    """The labels that the model can give; the others are reported."""
    good: list[str] = []
    for index, label in enumerate(labels):
        path: Path = written.at_item(key, index)
        if label in good:
            context.error(path, f"{context.shown(label, path)} is listed twice", "remove it")
        elif known is None or label in known or context.is_unset(path):
            good.append(label)
        else:
            guess = nearest(label, known)
            hint = f"did you mean {context.shown(guess)}?" if guess else f"it has: {', '.join(known)}"
            context.error(path, f"the model cannot give the label {context.shown(label, path)}", hint)
    return good
