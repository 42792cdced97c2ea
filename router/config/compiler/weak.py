"""Decisions that refuse by answers that the model's own card calls weak.

A card says per type of question, and per preset, how far its answers can be relied on. Routing by a weak answer sends a
request to the second-best model; refusing by one turns a client away.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from router.config.compiler.context import Context
from router.config.deployments import Deployment
from router.config.guards import GuardRule
from router.config.model.recipes import Recipe as WrittenRecipe
from router.config.plan import Decision, QuestionRule, Recipe, leaves_of
from router.questions import Capabilities, Question


def warn_of_weak(
    context: Context, written: WrittenRecipe, recipe: Recipe, described: Mapping[str, Deployment | None]
) -> None:
    """Warn, at its rules, of every decision that answers by itself because of a weak answer."""
    rules: list[QuestionRule | GuardRule] = [*recipe.questions, *recipe.guards]
    weak = {rule.name: said for rule in rules if (said := _weakness(rule, described))}
    if not weak:
        return
    by_order = dict(enumerate(written.decisions))
    for decision in recipe.decisions:
        if not decision.refuses:
            continue
        for rule, said in weak.items():
            if rule in _read_by(recipe, decision):
                name = context.shown(rule.partition(":")[2] or rule)
                message = f"the decision refuses by the rule {name}, and {said}"
                hint = "let it route instead, ask a bigger model (deployment), or measure it on your own traffic"
                context.warn(by_order[decision.order].at("rules"), message, hint, key=True)


def _weakness(rule: QuestionRule | GuardRule, described: Mapping[str, Deployment | None]) -> str | None:
    """What the card says against the answers of a rule; None where it says nothing."""
    deployment = described.get(rule.deployment)
    can = deployment.capabilities if deployment is not None else None
    if deployment is None or can is None:
        return None
    said = _said(rule.question, can)
    return None if said is None else f"the model of deployment {deployment.name} calls its answers to {said} weak"


def _said(question: Question, can: Capabilities) -> str | None:
    if question.preset is not None and question.preset in can.presets:
        return question.preset if question.preset in can.weak_presets else None
    return f"{question.type} questions in free words" if question.type in can.weak_types else None


def _read_by(recipe: Recipe, decision: Decision) -> frozenset[str]:
    """The keys of the rules that a decision rests on, also through projections."""
    sources = {output.name: mapping.source for mapping in recipe.mappings for output in mapping.outputs}
    inputs = {score.name: score.inputs for score in recipe.scores}

    def behind(family: str, name: str) -> Iterator[str]:
        if family != "projection":
            yield name
            return
        for term in inputs.get(sources.get(name, name), ()):
            yield from behind(term.family, term.name)

    return frozenset(key for leaf in leaves_of(decision.rule) for key in behind(leaf.family, leaf.name))
