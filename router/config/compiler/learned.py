"""Rules of the learned families: which question is asked, of whom, about what, and when it matches.

A question is the deployment's own text for the preset where the operator wrote one, else the model's own preset, else
the public text. Sources: `rulings.md` 24, 25 (Families and presets), `reference.md` 4.2.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final, NamedTuple

from router.config.compiler.catalogue import Catalogue
from router.config.compiler.context import PROBABILITY, Context
from router.config.compiler.questions import NOUL_DEFAULT, Asked, answers, free_question, labels_of
from router.config.compiler.waits import wait_ms
from router.config.deployments import Deployment
from router.config.families import rule_key
from router.config.model.learned import DomainRule, LearnedRule
from router.config.plan import QuestionRule, StateKind
from router.config.presets import public_presets
from router.config.problems import Path, nearest
from router.questions import Answer, ChoiceAnswer, Predicate, Question, QuestionType


class _Family(NamedTuple):
    """What a family asks, about which part of a request, what is so when nothing precedes, and what is no news."""

    preset: str
    state: StateKind = StateKind.USER
    opening: str | None = None
    nothing: str | None = None


_FAMILIES: Final[Mapping[str, _Family]] = {
    "domain": _Family("domains"),
    "complexity": _Family("complexity"),
    "modality": _Family("modality"),
    "fact_check": _Family("fact_check"),
    "user_feedback": _Family("user_feedback", StateKind.FEEDBACK, "no_feedback", "no_feedback"),
    "turn_relation": _Family("turn_relation", StateKind.RELATION, "new"),
}


def compile_learned(context: Context, catalogue: Catalogue, family: str, rule: LearnedRule) -> Asked | None:
    """The rule resolved, or None after reporting what is wrong with it."""
    before = len(context.document.problems)
    about = _FAMILIES[family]
    deployment = catalogue.find(rule.deployment, rule.at("deployment"))
    if deployment is None:
        return None
    where = rule.at("deployment") if rule.has("deployment") else rule.at()
    question = preset_question(context, catalogue, about.preset, deployment, where)
    if question is None:
        return None
    labels = labels_of(question, deployment.capabilities) if question.type is QuestionType.CHOICE else None
    only = _only(context, rule, about, labels)
    predicate = _predicate(context, rule, question, deployment)
    resolved = QuestionRule(
        name=rule_key(family, rule.name),
        deployment=deployment.name,
        question=question,
        state=about.state,
        predicate=predicate,
        timeout_ms=wait_ms(context, rule, deployment),
        labels=only,
        opening=_opening(about, question, labels),
        stopgap=predicate is NOUL_DEFAULT,
    )
    errors = any(problem.severity == "error" for problem in context.document.problems[before:])
    return None if errors else Asked(resolved, labels, PROBABILITY)


def preset_question(
    context: Context, catalogue: Catalogue, preset: str, deployment: Deployment, where: Path
) -> Question | None:
    """A well-known question as a deployment is asked it; None after reporting, at `where`, that it cannot be.

    With the preset's name the model's own goes first, if it has one.
    """
    public = public_presets()[preset]
    written = catalogue.deployments.get(deployment.name)
    own = written.presets.get(preset) if written is not None else None
    if own is not None:
        question = free_question(context, own)
        if question is not None and question.type is not public.type:
            context.error(own.at("type"), f"the preset {preset} is a {public.type} question, not {question.type}")
            return None
    elif deployment.capabilities is not None and preset in deployment.capabilities.presets:
        kind = deployment.capabilities.presets[preset]
        if kind is not public.type:
            message = f"the model of deployment {deployment.name} answers {preset} by {kind}, not by {public.type}"
            context.error(where, message)
            return None
        return public
    else:
        question = public
    can = deployment.capabilities
    if question is not None and can is not None and not answers(can, question.type):
        message = f"the model of deployment {deployment.name} has no preset {preset}, and cannot answer its public text"
        context.error(where, message, f"it answers: {', '.join(sorted(can.question_types)) or 'no free question'}")
        return None
    return question


def _only(context: Context, rule: LearnedRule, about: _Family, labels: tuple[str, ...] | None) -> frozenset[str] | None:
    """The labels by which the rule as a whole matches; None for all, of which a condition then has to choose one."""
    if labels is not None and about.nothing in labels:
        return frozenset(labels) - {about.nothing}
    if not isinstance(rule, DomainRule):
        return None
    if rule.mmlu_categories is None:
        return frozenset({rule.name}) if labels is not None and rule.name in labels else None
    for index, label in enumerate(rule.mmlu_categories):
        path = rule.at_item("mmlu_categories", index)
        if labels is not None and label not in labels and not context.is_unset(path):
            guess = nearest(label, labels)
            hint = f"did you mean {context.shown(guess)}?" if guess else f"it has: {', '.join(labels)}"
            context.error(path, f"the model cannot give the label {context.shown(label, path)}", hint)
    return frozenset(rule.mmlu_categories)


def _opening(about: _Family, question: Question, labels: tuple[str, ...] | None) -> Answer | None:
    known = labels or tuple(option.key for option in question.options)
    if about.opening is None or about.opening not in known:
        return None
    return ChoiceAnswer(about.opening, {label: float(label == about.opening) for label in known}, 1.0)


def _predicate(context: Context, rule: LearnedRule, question: Question, deployment: Deployment) -> Predicate | None:
    if rule.threshold is not None and rule.predicate is not None:
        hint = "keep one: threshold: T is predicate: {gte: T}"
        context.error(rule.at("threshold"), "threshold and predicate cannot both be given", hint, key=True)
    if rule.predicate is not None:
        return context.predicate(rule.predicate, PROBABILITY)
    if rule.threshold is not None:
        return Predicate(gte=rule.threshold)
    if question.type is not QuestionType.NOUL:
        return None
    can = deployment.capabilities
    calibrated = can.preset_thresholds.get(question.preset or "") if can is not None else None
    return NOUL_DEFAULT if calibrated is None else replace(NOUL_DEFAULT, gte=calibrated)
