"""All signal rules of one recipe, by family, and by either spelling of a family's name."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import NamedTuple

from router.config.compiler.context import Context, Names, deprecated
from router.config.compiler.embedding import compile_embedding
from router.config.compiler.guards import compile_guard
from router.config.compiler.heuristics import compile_heuristic
from router.config.compiler.learned import compile_learned
from router.config.compiler.questions import Asked, Questions
from router.config.families import EMBEDDING, FAMILIES, GUARDS, HEURISTIC, LEARNED, SPELLINGS, SYSTEMONE, rule_key
from router.config.guards import GuardRule
from router.config.heuristics import HeuristicRule, highest_value
from router.config.model.base import Model
from router.config.model.guards import GuardRule as WrittenGuard
from router.config.model.learned import EmbeddingRule, LearnedRule
from router.config.model.recipes import Recipe as WrittenRecipe
from router.config.model.signals import SystemoneRule
from router.config.plan import QuestionRule
from router.config.problems import Path


class Kept(NamedTuple):
    """The rules of a recipe that something reads, by what is done about them."""

    questions: tuple[QuestionRule, ...]
    heuristics: tuple[HeuristicRule, ...]
    guards: tuple[GuardRule, ...]


class Signals:
    """The compiled rules of a recipe. What is wrong with one is reported, and it is left out."""

    def __init__(self, context: Context, questions: Questions, recipe: WrittenRecipe) -> None:
        self.context = context
        self.questions = questions
        self._names: dict[str, Names[Asked]] = {family: Names(f"{family} rule") for family in FAMILIES}
        self._written: list[tuple[str, str, Path]] = []
        for spelling, family in SPELLINGS.items():
            self._names[family].foresee(context, *recipe.at("signals", spelling))
        if recipe.signals is None:
            return
        for spelling in (key for key in recipe.signals._block if key in SPELLINGS):
            if spelling == "decision":
                deprecated(context, recipe.signals.at(spelling), key=True)
            for rule in getattr(recipe.signals, spelling):
                self._declare(SPELLINGS[spelling], rule)

    def names(self, family: str) -> Names[Asked]:
        """The rules of a family by their written names."""
        return self._names[family]

    def only(self, keys: AbstractSet[str]) -> Kept:
        """The rules of these keys, in the order of the document."""
        known = {asked.rule.name: asked.rule for names in self._names.values() for asked in names.known.values()}
        ordered = [known[key] for key, _, _ in self._written if key in keys and key in known]
        unique = list(dict.fromkeys(rule.name for rule in ordered))
        rules = [known[key] for key in unique]
        questions = tuple(rule for rule in rules if isinstance(rule, QuestionRule))
        guards = tuple(rule for rule in rules if isinstance(rule, GuardRule))
        return Kept(questions, tuple(rule for rule in rules if isinstance(rule, HeuristicRule)), guards)

    def warn_unread(self, read: AbstractSet[str]) -> None:
        """Say which rules nothing reads."""
        for key, name, path in self._written:
            if key not in read:
                message = f"no decision or projection reads {self.context.shown(name, path)}"
                self.context.warn(path, message, "it is never asked" if ":" not in key else "it is never computed")

    def _declare(self, family: str, rule: Model) -> None:
        name: str = getattr(rule, "name")  # noqa: B009 - every rule has one, whatever its model
        path = rule.at("name")
        self._written.append((rule_key(family, name), name, path))
        self._names[family].declare(self.context, path, name, self._compile(family, rule))

    def _compile(self, family: str, rule: Model) -> Asked | None:
        if family == SYSTEMONE:
            assert isinstance(rule, SystemoneRule)  # noqa: S101 - the container's type
            return self.questions.compile(rule)
        if family in LEARNED:
            assert isinstance(rule, LearnedRule)  # noqa: S101
            return compile_learned(self.context, self.questions.catalogue, family, rule)
        if family in GUARDS:
            assert isinstance(rule, WrittenGuard)  # noqa: S101
            return compile_guard(self.context, self.questions.catalogue, family, rule)
        if family == EMBEDDING:
            assert isinstance(rule, EmbeddingRule)  # noqa: S101
            return compile_embedding(self.context, self.questions.catalogue, rule)
        assert family in HEURISTIC  # noqa: S101
        compiled = compile_heuristic(self.context, family, rule)
        return None if compiled is None else Asked(compiled, None, (0.0, highest_value(compiled)))
