"""One recipe: its rules, projections and decisions together, and the client formats that it can serve."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from router.config.actions import Actions
from router.config.compiler.actions import compile_actions
from router.config.compiler.candidates import Candidates
from router.config.compiler.catalogue import Catalogue
from router.config.compiler.context import Context, Names
from router.config.compiler.projections import Projections
from router.config.compiler.questions import Questions
from router.config.compiler.rules import Rules
from router.config.compiler.signals import Signals
from router.config.compiler.weak import warn_of_weak
from router.config.model import decisions as dialect
from router.config.model.recipes import Recipe as WrittenRecipe
from router.config.plan import ApiFormat, Decision, ProviderModel, Recipe, leaves_of
from router.config.projections import Partition, Score


class Recipes:
    """The compiler of recipes."""

    def __init__(
        self,
        context: Context,
        catalogue: Catalogue,
        models: Names[ProviderModel],
        default: ProviderModel | None,
        candidates: Candidates,
    ) -> None:
        self.context = context
        self.questions = Questions(context, catalogue)
        self.models = models
        self.candidates = candidates
        self.default = default

    def compile(self, recipe: WrittenRecipe) -> Recipe:
        """The recipe resolved; what is wrong with it is reported and left out."""
        signals = Signals(self.context, self.questions, recipe)
        projections = Projections(self.context, signals, recipe.projections)
        projections.score_names.foresee(self.context, *recipe.at("projections", "scores"))
        self._foresee_outputs(recipe, projections.outputs)
        rules = Rules(self.context, signals, projections.outputs, projections.names_elsewhere)
        names: Names[Decision] = Names("decision")
        for order, decision in enumerate(recipe.decisions):
            resolved = self._decision(decision, order, rules)
            names.declare(self.context, decision.at("name"), decision.name, resolved)
        scores, mappings = projections.compile()
        partitions = projections.partitions()
        self._check_decisions(recipe)
        read = _with_rivals(rules.read | projections.read, partitions)
        signals.warn_unread(read)
        decisions = tuple(names.known.values())
        self._check_formats(decisions, recipe)
        kept = signals.only(read)
        competing = tuple(one for one in partitions if not read.isdisjoint(one.members))
        exact = _read_exactly(decisions, scores)
        compiled = Recipe(
            recipe.name,
            recipe.strategy,
            kept.questions,
            scores,
            mappings,
            decisions,
            kept.heuristics,
            competing,
            tuple(replace(rule, whole=rule.name in exact) for rule in kept.guards),
        )
        warn_of_weak(self.context, recipe, compiled, self.questions.catalogue.described)
        return compiled

    def _foresee_outputs(self, recipe: WrittenRecipe, outputs: Names[str]) -> None:
        path = recipe.at("projections", "mappings")
        mappings = self.context.document.value_at(path)
        for index in range(len(mappings) if isinstance(mappings, list) else 0):
            outputs.foresee(self.context, *path, index, "outputs")
        outputs.open = outputs.open or self.context.is_refused(path)

    def _decision(self, decision: dialect.Decision, order: int, rules: Rules) -> Decision | None:
        rule = rules.compile(decision.rules) if self.context.need(decision, "rules") and decision.rules else None
        actions = compile_actions(self.context, decision)
        refs, selector = self.candidates.compile(decision)
        if self._needs_models(decision, actions) or rule is None or not (refs or actions.fast_response):
            return None
        on_unknown = (decision.rules.on_unknown if decision.rules else None) or "no_match"
        return Decision(
            decision.name, decision.priority, decision.tier, rule, on_unknown, refs, order, actions, selector
        )

    def _needs_models(self, decision: dialect.Decision, actions: Actions) -> bool:
        """Whether candidates are missing; reports it unless something was refused that may have brought them."""
        if decision.modelRefs or actions.fast_response is not None:
            return False
        if not (self.context.is_cut(decision.at("modelRefs")) or self.context.is_cut(decision.at("plugins"))):
            hint = "add modelRefs: [{model: NAME}], or the plugin fast_response"
            self.context.error(decision.at(), "a decision needs at least one model", hint, key=True)
        return True

    def _check_decisions(self, recipe: WrittenRecipe) -> None:
        """A recipe that decides nothing, and catch-alls that can never be reached."""
        path = recipe.at("decisions")
        if not recipe.decisions and self.default is None and not self.context.is_cut(path):
            hint = "add decisions, or providers.defaults.model"
            self.context.error(recipe.at(), "the recipe has no decision, and there is no default model", hint, key=True)
        catch_alls = [decision for decision in recipe.decisions if _catches_all(decision)]
        tiered = any(decision.tier > 0 for decision in recipe.decisions)
        if len(catch_alls) > 1 and not self.context.is_cut(path):
            best = min(catch_alls, key=lambda d: (d.tier if tiered and d.tier else 0, -d.priority, d.name))
            for decision in catch_alls:
                if decision is not best:
                    shown = self.context.shown(best.name)
                    self.context.warn(
                        decision.at("rules"), f"never selected: {shown} matches every request first", key=True
                    )

    def _check_formats(self, decisions: tuple[Decision, ...], recipe: WrittenRecipe) -> None:
        """Every decision must leave a client format that the recipe can serve whatever is decided."""
        by_order = dict(enumerate(recipe.decisions))
        # Where a catch-all decides whatever is left, the default model never answers.
        fallback = None if any(decision.catch_all for decision in decisions) else self.default
        served: set[ApiFormat] | None = {fallback.api_format} if fallback else None
        first = f"the default model speaks {fallback.api_format}" if fallback else ""
        for decision in decisions:
            if decision.refuses:
                continue  # answers in every format
            formats = {self.models.known[ref.model].api_format for ref in decision.model_refs}
            left = formats if served is None else served & formats
            if not left:
                names = ", ".join(sorted(formats))
                path = by_order[decision.order].at("modelRefs")
                message = f"no client format is left that this recipe serves: its models speak {names}, {first}"
                self.context.error(path, message, "give each decision a model of one common api_format", key=True)
                return
            if served is None or left != served:
                names = " or ".join(sorted(left))
                first = f"what stands before it leaves {names}"
            served = left


def _with_rivals(read: set[str], partitions: tuple[Partition, ...]) -> set[str]:
    """What is read, with the rules that compete with it: who wins depends on them."""
    return read.union(*(one.members for one in partitions if not read.isdisjoint(one.members)))


def _read_exactly(decisions: Iterable[Decision], scores: Iterable[Score]) -> frozenset[str]:
    """The rules of which something reads a label or the value: that they match is not all that is wanted of them."""
    leaves = (leaf for decision in decisions for leaf in leaves_of(decision.rule))
    conditions = (leaf.name for leaf in leaves if leaf.label is not None or leaf.predicate is not None)
    terms = (term for score in scores for term in score.inputs)
    return frozenset((*conditions, *(term.name for term in terms if term.key is not None or term.source != "binary")))


def _catches_all(decision: dialect.Decision) -> bool:
    rules = decision.rules
    if not isinstance(rules, dialect.NodeRule) or rules.conditions:
        return False
    return rules.operator == "AND" or rules.operator is None
