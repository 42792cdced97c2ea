"""Labels that a plan reads and that the models it is bound to cannot give: such a condition would never hold.

Models that are here are checked when the configuration is compiled. A model that runs elsewhere says what it has only
once it is asked, so what it says is held against the plan then.

Source: `rulings.md` (Families and presets): a label that the bound model cannot give is a load error.
"""

from __future__ import annotations

from collections.abc import Iterator

from router.config.families import family_of, written_name
from router.config.guards import GuardRule
from router.config.plan import Plan, QuestionRule, Recipe, leaves_of


def impossible_labels(plan: Plan) -> Iterator[str]:
    """What is wrong, a sentence each, naming recipe, rule, label and the labels that the model has."""
    for recipe in plan.recipes.values():
        rules: dict[str, QuestionRule | GuardRule] = {rule.name: rule for rule in recipe.questions}
        rules.update((rule.name, rule) for rule in recipe.guards)
        for name, label in dict.fromkeys(_read(recipe)):
            rule = rules.get(name)
            known = _own_labels(plan, rule) if rule is not None else None
            if rule is not None and known is not None and label not in known:
                yield (
                    f"recipe {recipe.name!r}, rule {written_name(name)!r}: decision model {rule.deployment!r} cannot "
                    f"give the label {label!r}; it has: {', '.join(known)}"
                )


def _read(recipe: Recipe) -> Iterator[tuple[str, str]]:
    """Every rule with a label of it that something reads."""
    for decision in recipe.decisions:
        yield from ((leaf.name, leaf.label) for leaf in leaves_of(decision.rule) if leaf.label is not None)
    for score in recipe.scores:
        yield from ((term.name, term.key) for term in score.inputs if term.key is not None)
    for guard in recipe.guards:
        named = guard.hazard.labels if guard.hazard is not None and guard.hazard.chosen else guard.allowed
        yield from ((guard.name, label) for label in sorted(named))
    for rule in recipe.questions:
        if family_of(rule.name) == "domain":  # the operator's categories; other families' labels follow from the text
            yield from ((rule.name, label) for label in sorted(rule.labels or ()))


def _own_labels(plan: Plan, rule: QuestionRule | GuardRule) -> tuple[str, ...] | None:
    """The labels of the model's own preset; None when it is asked a text, or nobody knows them."""
    hazard = rule.hazard if isinstance(rule, GuardRule) else None
    can, preset = plan.deployments[rule.deployment].capabilities, (hazard or rule).question.preset
    if can is None or preset is None or preset not in can.presets:
        return None
    return can.preset_labels.get(preset)
