"""What each rule of a recipe read, was asked and answered about one request. Lengths and numbers, never text."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

import orjson

from router.asking.placement import model_name
from router.asking.render import as_asked, render
from router.config.plan import Deployment, Plan, QuestionRule, Recipe, StateKind
from router.explaining.notes import Notes
from router.questions import Answer, Predicate, QuestionType, Unknown, UnknownReason
from router.signals.reading import Reading, read
from router.wire.request import state_text

FAMILY = "systemone"
"""The family of rules that ask a model."""


@dataclass(frozen=True, slots=True)
class RuleFact:
    """One rule that asks a decision model, and what came of it.

    `question` is its id in `question_id`'s sense, `part_bytes` the length of the part of the request that it is about
    and `read_bytes` how much of that the model was shown, both in UTF-8. `seconds` is the time of the call that its
    deployment was made for this request, None when none was: then a known answer was one that had been given before.
    """

    name: str
    family: str
    deployment: str
    question: str
    type: QuestionType
    preset: str | None
    state: StateKind
    part_bytes: int
    read_bytes: int
    predicate: Predicate | None
    answer: Answer
    reading: Reading
    seconds: float | None

    @property
    def reason(self) -> UnknownReason | None:
        """Why the rule is unknown; None when it is known."""
        return self.reading.reason

    @property
    def coverage(self) -> str:
        """How much of its part was read: `full`, `partial n/m` in bytes, or `none`."""
        if self.reading.matched is None or not self.read_bytes:
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


def rule_facts(plan: Plan, recipe: Recipe, notes: Notes) -> tuple[RuleFact, ...]:
    """The facts of every rule that a recipe asks, in its order."""
    seconds: dict[str, float] = {}
    for call in notes.calls:
        seconds[call.deployment] = max(call.seconds, seconds.get(call.deployment, 0.0))
    lengths = _lengths(notes, {rule.state for rule in recipe.questions})
    return tuple(_fact(rule, plan, notes, lengths[rule.state], seconds) for rule in recipe.questions)


def _fact(rule: QuestionRule, plan: Plan, notes: Notes, length: int, seconds: Mapping[str, float]) -> RuleFact:
    answer = notes.answers.get(rule.name, Unknown(UnknownReason.NOT_ASKED))
    shown = notes.texts.get((rule.deployment, rule.state), "")
    return RuleFact(
        name=rule.name,
        family=FAMILY,
        deployment=rule.deployment,
        question=question_id(rule, plan.deployments[rule.deployment]),
        type=rule.question.type,
        preset=rule.question.preset,
        state=rule.state,
        part_bytes=length,
        read_bytes=_size(shown),
        predicate=rule.predicate,
        answer=answer,
        reading=notes.readings.get(rule.name) or read(rule, answer),
        seconds=None if _never_asked(answer) else seconds.get(rule.deployment),
    )


def _lengths(notes: Notes, states: set[StateKind]) -> dict[StateKind, int]:
    if notes.request is None:
        return dict.fromkeys(states, 0)
    return {state: _size(state_text(notes.request, state)) for state in states}


def _size(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def _never_asked(answer: Answer) -> bool:
    return isinstance(answer, Unknown) and answer.reason in (UnknownReason.NOT_ASKED, UnknownReason.NO_TEXT)
