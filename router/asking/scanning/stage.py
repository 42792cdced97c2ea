"""What guards ask: their inputs, and the questions about each, compiled once a recipe.

Rules that read the same part of a request at the same deployment, in the same form, are one input. Equal questions
about it are asked once, whatever their rules make of the answers.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from router.asking.plan import (
    Call,
    Consumer,
    DeploymentStage,
    Rider,
    StateKey,
    calls_about,
    composed,
    prepare_deployment,
)
from router.config.deployments import Deployment
from router.config.guards import GuardRule, Hazard
from router.config.plan import QuestionRule, Recipe, StateKind
from router.config.sizes import ScanWindow
from router.questions import Predicate, Question
from router.scan.machine import Ask
from router.scan.reading import Input
from router.scan.rules import WatchedQuestion, WatchedRule
from router.scan.text import utf8_length
from router.signals.guards import hazard_key, rule_of
from router.wire.longtext import LongText, Words


@dataclass(frozen=True, slots=True)
class GuardInput:
    """A part of a request that is read whole at one deployment."""

    name: str
    deployment: str
    state: StateKind
    normalise: bool
    questions: tuple[WatchedQuestion, ...]


@dataclass(frozen=True, slots=True)
class GuardStage:
    """All that the guards of a recipe ask, or those of them that are needed.

    `consumers` are by the question's key, which is unique in the stage; `deployments` and `sizes` by deployment.
    """

    rules: tuple[GuardRule, ...]
    inputs: tuple[GuardInput, ...]
    consumers: Mapping[str, Consumer]
    deployments: Mapping[str, DeploymentStage]
    sizes: Mapping[str, ScanWindow]

    @property
    def states(self) -> tuple[StateKind, ...]:
        """The parts of a request that are read."""
        return tuple(dict.fromkeys(each.state for each in self.inputs))

    def about(self, texts: Mapping[StateKind, Words]) -> list[Input]:
        """The inputs of one request."""
        return [self._about(each, texts[each.state]) for each in self.inputs]

    def _about(self, each: GuardInput, text: Words) -> Input:
        questions = each.questions
        if any(rule.levels for question in questions for rule in question.rules):
            size = text.bytes if isinstance(text, LongText) else utf8_length(text)
            questions = tuple(question.at(size) for question in questions)
        return Input(each.name, each.deployment, text, questions, each.normalise)

    def call(self, ask: Ask) -> Call:
        """The call for a window."""
        (call,) = calls_about(
            self.deployments[ask.deployment], [(self.consumers[key], ask.text) for key in ask.questions]
        )
        return call

    def riders(self, ask: Ask) -> list[Rider]:
        """The questions about a whole input, to travel with others."""
        stage = self.deployments[ask.deployment]
        return [Rider(stage, self.consumers[key], ask.text) for key in ask.questions]


def guard_questions(rules: Iterable[GuardRule]) -> list[QuestionRule]:
    """All questions of guards as rules of their own, the second ones by their own keys."""
    found: list[QuestionRule] = []
    for rule in rules:
        found += (_question(key, rule, question) for key, question, _ in _watched(rule))
    return found


def composed_rules(recipe: Recipe, deployments: Mapping[str, Deployment]) -> tuple[str, ...]:
    """The rules of a recipe with a set that its model has not, so that it is asked one yes/no question per label."""
    found = composed((*recipe.questions, *guard_questions(recipe.guards)), deployments)
    return tuple(dict.fromkeys(map(rule_of, found)))


def prepare_guards(rules: Sequence[GuardRule], deployments: Mapping[str, Deployment]) -> GuardStage:
    """Compile rules. Raises KeyError for one whose deployment is not in `deployments`."""
    inputs: dict[tuple[StateKey, bool], dict[Question, list[WatchedRule]]] = {}
    waits: dict[tuple[tuple[StateKey, bool], Question], float] = {}
    for rule in rules:
        where = ((rule.deployment, rule.state), rule.normalise)
        timeout_s = math.inf if rule.timeout_ms is None else rule.timeout_ms / 1000
        for _, question, watched in _watched(rule):
            inputs.setdefault(where, {}).setdefault(question, []).append(watched)
            waits[where, question] = max(timeout_s, waits.get((where, question), 0.0))
    found: list[GuardInput] = []
    asked: dict[str, list[QuestionRule]] = {}
    timeouts: dict[str, float] = {}
    for number, (where, questions) in enumerate(inputs.items()):
        (deployment, state), normalise = where
        watched_questions: list[WatchedQuestion] = []
        for index, (question, watched_rules) in enumerate(questions.items()):
            key = f"guard/{number}/{index}"
            timeouts[key] = waits[where, question]
            asked.setdefault(deployment, []).append(QuestionRule(key, deployment, question, state, None, 0))
            watched_questions.append(WatchedQuestion(key, question.type, tuple(watched_rules)))
        found.append(GuardInput(f"{deployment}/{number}", deployment, state, normalise, tuple(watched_questions)))
    stages = {name: prepare_deployment(deployments[name], each, prefix="g") for name, each in asked.items()}
    consumers = {
        consumer.rule: replace(consumer, timeout_s=timeouts[consumer.rule])
        for stage in stages.values()
        for consumer in stage.consumers
    }
    sizes = {name: deployments[name].scan for name in asked}
    return GuardStage(tuple(rules), tuple(found), consumers, stages, sizes)


def _question(key: str, rule: GuardRule, question: Question) -> QuestionRule:
    return QuestionRule(key, rule.deployment, question, rule.state, None, 0)


def _watched(rule: GuardRule) -> list[tuple[str, Question, WatchedRule]]:
    """The questions of a rule, with what it wants of each: the rule matches only if all do."""
    labels = frozenset(rule.counted) if rule.allowed else rule.labels
    watched = WatchedRule(
        rule.name, rule.predicate, labels, rule.threshold, rule.on_unscanned, rule.min_coverage, rule.whole, rule.levels
    )
    found = [(rule.name, rule.question, watched)]
    if rule.hazard is not None:
        key = hazard_key(rule.name)
        found.append((key, rule.hazard.question, _kinds(key, rule, rule.hazard)))
    return found


def _kinds(key: str, rule: GuardRule, hazard: Hazard) -> WatchedRule:
    # Which of the kinds it is may be asked for, so one that is found says nothing of the others.
    at_least = Predicate(gte=hazard.threshold)
    return WatchedRule(key, at_least, hazard.labels, hazard.threshold, rule.on_unscanned, rule.min_coverage, rule.whole)
