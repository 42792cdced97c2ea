"""What each rule of a recipe read, was asked and answered about one request. Lengths and numbers, never text."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Final

import orjson

from router.asking.placement import model_name
from router.asking.render import as_asked, render
from router.config.deployments import Deployment
from router.config.families import family_of, written_name
from router.config.guards import GuardRule
from router.config.heuristics import ContextRule, HeuristicRule, LanguageRule
from router.config.plan import Plan, QuestionRule, Recipe, StateKind
from router.deciding.engine import CompiledRecipe
from router.deciding.guarded import GuardResult, not_asked
from router.explaining.notes import Notes
from router.questions import Answer, Predicate, QuestionType, Unknown, UnknownReason
from router.signals.reading import YES, Reading, read
from router.wire.request import state_text

_WHOLE: Final = frozenset({"context", "conversation", "input_modality"})
_ELSEWHERE: Final = {"metadata": "metadata", "authz": "headers"}


@dataclass(frozen=True, slots=True)
class RuleFact:
    """One rule, and what came of it. Rules that ask no model have neither `deployment`, `type` nor `answer`.

    `question` is its id in `question_id`'s sense; `part` what it is about: a state, `request`, `metadata` or `headers`.
    `part_bytes` is the length of that part (0 where it is not the request's text) and `read_bytes` how much of it was
    read, both in UTF-8. `effective` is the rule's result after partitions, which may let another rule match in its
    stead. `seconds` is the time of the call that its deployment was made for this request, None when none was: then a
    known answer was one that had been given before. `guard` is what a rule that reads all of its part came to; it is
    read in windows, which `coverage` counts.
    """

    name: str
    family: str
    deployment: str | None
    question: str
    type: QuestionType | None
    preset: str | None
    part: str
    part_bytes: int
    read_bytes: int
    predicate: Predicate | None
    answer: Answer | None
    reading: Reading
    effective: bool | None
    seconds: float | None
    guard: GuardResult | None = None

    @property
    def key(self) -> str:
        """`family:name`."""
        return f"{self.family}:{self.name}"

    @property
    def reason(self) -> UnknownReason | None:
        """Why the rule is unknown; None when it is known."""
        return self.reading.reason

    @property
    def coverage(self) -> str:
        """How much of its part was read: `full`, `partial n/m` in bytes (of a guard in windows), or `none`."""
        if self.guard is not None and self.guard.coverage is not None:
            return str(self.guard.coverage)
        if self.reading.matched is None or (self.deployment is not None and not self.read_bytes):
            return "none"
        return "full" if self.read_bytes >= self.part_bytes else f"partial {self.read_bytes}/{self.part_bytes}"


def question_id(rule: QuestionRule, deployment: Deployment) -> str:
    """What stands for a question to a model about a part of a request, in any configuration that asks the same.

    Two rules with one id, perhaps of two configurations, get the same answer about the same request: model, question,
    part and how much of it is read are equal. Names and predicates do not count.
    """
    capabilities = deployment.capabilities
    asked = {
        "model": [deployment.artifact, deployment.revision, sorted(deployment.endpoints), model_name(deployment)],
        "files": capabilities.sha256 if capabilities else None,
        "part": rule.state.value,
        "view": [deployment.view.max_bytes, deployment.view.head_share],
        "question": render(as_asked(rule.question, capabilities)),
    }
    return hashlib.blake2b(orjson.dumps(asked, option=orjson.OPT_SORT_KEYS), digest_size=8).hexdigest()


def guard_id(rule: GuardRule, deployment: Deployment) -> str:
    """The same of a rule that reads all of its part: what it makes of the answers does not count."""
    questions = [rule.question, *([rule.hazard.question] if rule.hazard is not None else [])]
    scan = deployment.scan
    asked = {
        "model": _identity(deployment),
        "part": rule.state.value,
        "windows": [scan.size, scan.overlap, scan.max_size, scan.reread_margin],
        "normalise": rule.normalise,
        "questions": [render(as_asked(question, deployment.capabilities)) for question in questions],
    }
    return _digest(asked)


def verdict_id(rule: GuardRule) -> str:
    """What stands for all that a guard makes of answers: two with one such id and one `guard_id` always agree."""
    hazard = rule.hazard
    return _digest(
        {
            "predicate": repr(rule.predicate),
            "threshold": rule.threshold,
            **({"levels": rule.levels} if rule.levels else {}),
            "labels": None if rule.labels is None else sorted(rule.labels),
            "allowed": sorted(rule.allowed),
            "policies": [rule.on_unknown, rule.on_unscanned, rule.min_coverage, rule.timeout_ms, rule.whole],
            "hazard": [hazard.threshold, sorted(hazard.labels)] if hazard is not None else None,
        }
    )


def _identity(deployment: Deployment) -> list[object]:
    can = deployment.capabilities
    place = [deployment.artifact, deployment.revision, sorted(deployment.endpoints), model_name(deployment)]
    return [place, can.sha256 if can else None]


def _digest(value: object) -> str:
    return hashlib.blake2b(orjson.dumps(value, option=orjson.OPT_SORT_KEYS), digest_size=8).hexdigest()


def computed_id(rule: HeuristicRule) -> str:
    """The same of a rule that the router computes by itself: what it looks for, whatever it is called."""
    looks_for = {**asdict(rule), "name": "", "family": rule.family}
    # Sets have another order in every process, and ids are compared with those that other processes wrote down.
    return hashlib.blake2b(json.dumps(looks_for, sort_keys=True, default=sorted).encode(), digest_size=8).hexdigest()


def rule_ids(plan: Plan, recipe: Recipe) -> dict[str, str]:
    """The id of every rule of a recipe, by the rule's key."""
    asked = {rule.name: question_id(rule, plan.deployments[rule.deployment]) for rule in recipe.questions}
    guards = {rule.name: guard_id(rule, plan.deployments[rule.deployment]) for rule in recipe.guards}
    return {**asked, **{rule.name: computed_id(rule) for rule in recipe.heuristics}, **guards}


def rule_facts(plan: Plan, compiled: CompiledRecipe, notes: Notes) -> tuple[RuleFact, ...]:
    """The facts of every rule of a recipe: those that ask a model, those that are computed, and guards, each in its
    order."""
    recipe = compiled.recipe
    seconds = notes.longest_calls()
    lengths = _lengths(notes, {StateKind.USER, *(rule.state for rule in recipe.questions)})
    after = compiled.partitions.apply(notes.readings)
    asked = [_fact(rule, plan, notes, lengths[rule.state], seconds) for rule in recipe.questions]
    computed = [_computed(rule, notes, lengths[StateKind.USER]) for rule in recipe.heuristics]
    guards = [_guard(rule, plan, notes, seconds) for rule in recipe.guards]
    keys = [rule.name for rule in recipe.rules]
    return tuple(
        replace(fact, effective=after[key].matched) if key in after else fact
        for key, fact in zip(keys, [*asked, *computed, *guards], strict=True)
    )


def _computed(rule: HeuristicRule, notes: Notes, user_bytes: int) -> RuleFact:
    reading = notes.readings.get(rule.name) or Reading(None, None, reason=UnknownReason.NOT_ASKED)
    part = "request" if rule.family in _WHOLE else _ELSEWHERE.get(rule.family, "user")
    length = user_bytes if part == "user" else 0
    return RuleFact(
        name=written_name(rule.name),
        family=rule.family,
        deployment=None,
        question=computed_id(rule),
        type=None,
        preset=None,
        part=part,
        part_bytes=length,
        read_bytes=length,
        predicate=_bounds(rule),
        answer=None,
        reading=reading,
        effective=reading.matched,
        seconds=None,
    )


def _bounds(rule: HeuristicRule) -> Predicate | None:
    """What the rule's number is held against, where it is held against one."""
    if isinstance(rule, LanguageRule):
        return Predicate(gte=rule.threshold)
    if isinstance(rule, ContextRule):
        return Predicate(gte=rule.least or None, lte=rule.most)
    return getattr(rule, "predicate", None)


def _fact(rule: QuestionRule, plan: Plan, notes: Notes, length: int, seconds: Mapping[str, float]) -> RuleFact:
    answer = notes.answers.get(rule.name, Unknown(UnknownReason.NOT_ASKED))
    shown = notes.texts.get((rule.deployment, rule.state), "")
    reading = notes.readings.get(rule.name) or read(rule, answer)
    return RuleFact(
        name=written_name(rule.name),
        family=family_of(rule.name),
        deployment=rule.deployment,
        question=question_id(rule, plan.deployments[rule.deployment]),
        type=rule.question.type,
        preset=rule.question.preset,
        part=rule.state.value,
        part_bytes=length,
        read_bytes=_size(shown),
        predicate=rule.predicate or (YES if rule.question.type is QuestionType.NOUL else None),
        answer=answer,
        reading=reading,
        effective=reading.matched,
        # Without a text nothing is asked: what is known then is the rule's opening.
        seconds=None if _never_asked(answer) or not shown else seconds.get(rule.deployment),
    )


def _guard(rule: GuardRule, plan: Plan, notes: Notes, seconds: Mapping[str, float]) -> RuleFact:
    result = notes.guards.get(rule.name) or not_asked(rule)
    reading = notes.readings.get(rule.name) or result.reading
    coverage = result.coverage
    return RuleFact(
        name=written_name(rule.name),
        family=family_of(rule.name),
        deployment=rule.deployment,
        question=guard_id(rule, plan.deployments[rule.deployment]),
        type=rule.question.type,
        preset=rule.question.preset,
        part=rule.state.value,
        part_bytes=coverage.of_bytes if coverage is not None else 0,
        read_bytes=coverage.bytes if coverage is not None else 0,
        predicate=rule.at(coverage.of_bytes if coverage is not None else 0).predicate,
        answer=result.answer,
        reading=reading,
        effective=reading.matched,
        seconds=None if coverage is None else seconds.get(rule.deployment),
        guard=result,
    )


def _lengths(notes: Notes, states: set[StateKind]) -> dict[StateKind, int]:
    if notes.request is None:
        return dict.fromkeys(states, 0)
    return {state: _size(state_text(notes.request, state)) for state in states}


def _size(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def _never_asked(answer: Answer) -> bool:
    return isinstance(answer, Unknown) and answer.reason in (UnknownReason.NOT_ASKED, UnknownReason.NO_TEXT)
