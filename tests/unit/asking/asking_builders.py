"""Short ways to write rules, deployments and calls in tests of `router.asking`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from router.asking.plan import Asked, StagePlan, StateKey, bind, prepare
from router.config.deployments import Deployment
from router.config.plan import QuestionRule, StateKind
from router.config.sizes import RoutingView
from router.questions import DECIDING, Capabilities, Option, Question, QuestionType

ALL_TYPES = frozenset(DECIDING)
NO_SET = ALL_TYPES - {QuestionType.SET}


def capabilities(types: Iterable[QuestionType] = ALL_TYPES, **more: Any) -> Capabilities:
    return Capabilities(question_types=frozenset(types), **more)


def deployment(name: str = "m", **changes: Any) -> Deployment:
    given: dict[str, Any] = {
        "artifact": None,
        "endpoint": "http://127.0.0.1:1",
        "served_name": f"{name}-served",
        "device": "auto",
        "timeout_ms": None,
        "view": RoutingView(32768, 0.25),
        "capabilities": capabilities(),
    }
    return Deployment(name=name, **{**given, **changes})


def managed(name: str = "m", artifact: str = "/models/tiny", device: str = "cpu", **changes: Any) -> Deployment:
    return deployment(name, artifact=artifact, endpoint=None, device=device, **changes)


def noul(instructions: str = "Is it code?", **changes: Any) -> Question:
    return Question(QuestionType.NOUL, instructions, **changes)


def choice(*keys: str) -> Question:
    return Question(QuestionType.CHOICE, "Which one?", tuple(Option(key) for key in keys))


def score(*levels: str) -> Question:
    options = tuple(Option(str(i), level) for i, level in enumerate(levels))
    return Question(QuestionType.SCORE, "How hard?", options)


def label_set(*keys: str, **changes: Any) -> Question:
    return Question(QuestionType.SET, "Which apply?", tuple(Option(key) for key in keys), **changes)


def span(*keys: str, **changes: Any) -> Question:
    return Question(QuestionType.SPAN, "Where?", tuple(Option(key) for key in keys), **changes)


def rule(
    name: str, question: Question, deployment: str = "m", state: StateKind = StateKind.USER, timeout_ms: int = 1000
) -> QuestionRule:
    return QuestionRule(name, deployment, question, state, None, timeout_ms)


def stage(*rules: QuestionRule, on: Iterable[Deployment] | None = None) -> StagePlan:
    return prepare(rules, {d.name: d for d in (on or [deployment()])})


def texts(plan: StagePlan, text: str = "some text", **by_state: str) -> dict[StateKey, str]:
    """The same text for every state, or `user="..."`, `system="..."`."""
    return {key: by_state.get(key[1].value, text) for key in plan.states}


def only_call(plan: StagePlan, text: str = "some text", **by_state: str) -> Any:
    (call,) = bind(plan, texts(plan, text, **by_state)).calls
    return call


def asked(question: Question, known: Capabilities | None = None) -> Asked:
    """The question as it travels, from a stage of its own."""
    found: Asked = (
        only_call(stage(rule("r", question), on=[deployment(capabilities=known or capabilities())])).parts[0].asked[0]
    )
    return found
