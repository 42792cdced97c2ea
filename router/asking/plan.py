"""The calls of a stage: one per deployment, with every question about every state in it.

`prepare` does once what depends on the recipe alone: which questions are equal, which sets must be composed, and each
question's JSON. `bind` adds a request's texts: equal texts become one state, and an equal question about an equal state
is asked once, whoever reads the answer. Both are pure. A server that reads one state a call gets a call for each.

Source: "Performance and cost" (Calls per request, Batching, Budgets and deadlines).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import orjson

from router.asking import openai
from router.asking.answer_cache import question_digest
from router.asking.placement import model_name
from router.asking.render import as_asked, must_compose, noul_for_label, render
from router.config.deployments import Deployment, Dialect
from router.config.plan import QuestionRule, StateKind
from router.questions import Capabilities, Question, QuestionType, Unknown, UnknownReason
from router.wire.longtext import Words

StateKey = tuple[str, StateKind]

COMPOSED_THRESHOLD = 0.5
"""P(yes) from which a label of a composed set counts as selected when neither rule nor question says otherwise."""


@dataclass(frozen=True, slots=True)
class Asked:
    """One question of a deployment as it travels.

    `written` is its finished JSON: a member (`"q0":{...}`), or an item in OpenAI's dialect. `digest` stands for what is
    asked, whatever its id. `labels` are the keys that its answer must hold; None when a preset's labels are known to
    the model alone.
    """

    id: str
    type: QuestionType
    written: bytes
    labels: tuple[str, ...] | None
    digest: bytes


@dataclass(frozen=True, slots=True)
class Composition:
    """How a set is put together from nouls: `labels` in the order of the consumer's questions."""

    labels: tuple[str, ...]
    threshold: float


@dataclass(frozen=True, slots=True)
class Consumer:
    """A rule that waits for an answer. `asked` is one question, or one per label when `composition` is set."""

    rule: str
    state: StateKind
    timeout_s: float
    asked: tuple[Asked, ...]
    composition: Composition | None


@dataclass(frozen=True, slots=True)
class DeploymentStage:
    """What a stage can ask one deployment. `attempt_s` bounds a call to an attached model; None when nothing does.

    `identify`: the server is asked who it is with every answer, because another model may have taken its place.
    """

    name: str
    model: bytes
    dialect: Dialect
    identify: bool
    attempt_s: float | None
    consumers: tuple[Consumer, ...]


@dataclass(frozen=True, slots=True)
class StagePlan:
    """All that a stage can ask. `states` are the texts that `bind` needs, each cut to its deployment's view."""

    deployments: tuple[DeploymentStage, ...]
    states: tuple[StateKey, ...]


@dataclass(frozen=True, slots=True)
class Rider:
    """A question about a text of its own that travels in the stage's call to its deployment."""

    stage: DeploymentStage
    consumer: Consumer
    text: str


@dataclass(frozen=True, slots=True)
class Part:
    """One state of a call with its questions; every question stands once."""

    text: str
    asked: tuple[Asked, ...]


@dataclass(frozen=True, slots=True)
class Call:
    """One call to one deployment: bound to texts, not yet to a moment.

    `readers` pairs each rule with the index of the part that answers it. `timeout_s` is the longest that any of them
    waits, within `attempt_s`, the deployment's own bound on an attempt.
    """

    stage: DeploymentStage
    parts: tuple[Part, ...]
    readers: tuple[tuple[Consumer, int], ...]
    timeout_s: float

    @property
    def deployment(self) -> str:
        """Whom it goes to."""
        return self.stage.name

    @property
    def questions(self) -> int:
        """How many questions travel."""
        return sum(len(part.asked) for part in self.parts)

    def body(self, deadline_ms: int) -> bytes:
        """The request. The first state is `state`, further ones are `states.s1`, `states.s2`, and so on.

        The deadline is told to servers that know what it is.
        """
        stage = self.stage
        if stage.dialect is Dialect.OPENAI:
            (part,) = self.parts
            questions = b",".join(asked.written for asked in part.asked)
            return b'{"model":%s,"input":%s,"questions":[%s]}' % (stage.model, _text(part.text), questions)
        pieces = [b'{"model":', stage.model, b",", _state(self.parts[0])]
        if len(self.parts) > 1:
            more = (b'"%s":{%s}' % (part_name(i).encode(), _state(self.parts[i])) for i in range(1, len(self.parts)))
            pieces += [b',"states":{', b",".join(more), b"}"]
        if stage.dialect is Dialect.RUNTIME:
            meta = b',"return_meta":true' if stage.identify else b""
            pieces.append(b',"options":{"deadline_ms":%d%s}' % (deadline_ms, meta))
        pieces.append(b"}")
        return b"".join(pieces)


@dataclass(frozen=True, slots=True)
class Bound:
    """A stage bound to a request: the calls to make, and the rules that need none because there is nothing to read."""

    calls: tuple[Call, ...]
    unread: Mapping[str, Unknown]


_Readers = list[tuple[Consumer, int]]
_Parts = dict[str, dict[str, Asked]]


def composed(questions: Iterable[QuestionRule], deployments: Mapping[str, Deployment]) -> tuple[str, ...]:
    """The rules whose set is put together from one yes/no question per label (`composed_noul`), because their model has
    no set of its own."""
    return tuple(
        rule.name
        for rule in questions
        for capabilities in (deployments[rule.deployment].capabilities,)
        if must_compose(as_asked(rule.question, capabilities), capabilities)
    )


def is_blank(text: Words) -> bool:
    """Whether there is nothing to ask about."""
    return not text or text.isspace()


def part_name(index: int) -> str:
    """The key of a call's further state in `states`."""
    return f"s{index}"


def prepare(questions: Sequence[QuestionRule], deployments: Mapping[str, Deployment]) -> StagePlan:
    """Compile the rules of a stage. Raises KeyError for a rule whose deployment is not in `deployments`."""
    by_deployment: dict[str, list[QuestionRule]] = {}
    for rule in questions:
        by_deployment.setdefault(rule.deployment, []).append(rule)
    stages = tuple(prepare_deployment(deployments[name], rules) for name, rules in by_deployment.items())
    states = dict.fromkeys((rule.deployment, rule.state) for rule in questions)
    return StagePlan(stages, tuple(states))


def bind(stage: StagePlan, texts: Mapping[StateKey, str], riders: Iterable[Rider] = ()) -> Bound:
    """The calls for one request. `texts` holds every key of `stage.states`; blank text is not asked about.

    `riders` travel along; a deployment that the stage does not ask gets a call for them.
    """
    calls: list[Call] = []
    unread: dict[str, Unknown] = {}
    riding: dict[str, list[Rider]] = {}
    for rider in riders:
        riding.setdefault(rider.stage.name, []).append(rider)
    for deployment in stage.deployments:
        about: list[tuple[Consumer, str]] = []
        for consumer in deployment.consumers:
            text = texts[deployment.name, consumer.state]
            if is_blank(text):
                unread[consumer.rule] = Unknown(UnknownReason.NO_TEXT)
            else:
                about.append((consumer, text))
        about += ((rider.consumer, rider.text) for rider in riding.pop(deployment.name, ()))
        calls.extend(calls_about(deployment, about))
    for left in riding.values():
        calls.extend(calls_about(left[0].stage, [(rider.consumer, rider.text) for rider in left]))
    return Bound(tuple(calls), unread)


def calls_about(deployment: DeploymentStage, about: Iterable[tuple[Consumer, str]]) -> list[Call]:
    """The calls that ask for all of these, each about its text: one, unless the server reads one state a call."""
    readers: _Readers = []
    parts: _Parts = {}
    index: dict[str, int] = {}
    for consumer, text in about:
        part = parts.setdefault(text, {})
        part.update((asked.id, asked) for asked in consumer.asked)
        readers.append((consumer, index.setdefault(text, len(index))))
    if deployment.dialect is Dialect.RUNTIME:
        groups = [(readers, parts)] if readers else []
    else:
        groups = _one_state_each(readers, parts)
    return [_call(deployment, *group) for group in groups]


def _one_state_each(readers: _Readers, parts: _Parts) -> list[tuple[_Readers, _Parts]]:
    return [
        ([(consumer, 0) for consumer, index in readers if index == here], {text: asked})
        for here, (text, asked) in enumerate(parts.items())
    ]


def _call(
    deployment: DeploymentStage, readers: list[tuple[Consumer, int]], parts: Mapping[str, Mapping[str, Asked]]
) -> Call:
    timeout_s = max(consumer.timeout_s for consumer, _ in readers)
    if deployment.attempt_s is not None:
        timeout_s = min(timeout_s, deployment.attempt_s)
    bound = tuple(Part(text, tuple(asked.values())) for text, asked in parts.items())
    return Call(deployment, bound, tuple(readers), timeout_s)


def prepare_deployment(deployment: Deployment, rules: Iterable[QuestionRule], prefix: str = "q") -> DeploymentStage:
    """What rules ask one deployment. Questions that may travel with another stage's have ids of another `prefix`."""
    known: dict[Question, Asked] = {}

    def share(question: Question) -> Asked:
        if question not in known:
            known[question] = _asked(f"{prefix}{len(known)}", question, deployment)
        return known[question]

    attempt_ms = deployment.timeout_ms if deployment.endpoint is not None else None
    return DeploymentStage(
        name=deployment.name,
        model=orjson.dumps(model_name(deployment)),
        dialect=deployment.dialect,
        identify=deployment.endpoint is not None,
        attempt_s=None if attempt_ms is None else attempt_ms / 1000,
        consumers=tuple(_consumer(rule, deployment.capabilities, share) for rule in rules),
    )


def _consumer(rule: QuestionRule, capabilities: Capabilities | None, share: Callable[[Question], Asked]) -> Consumer:
    question = as_asked(rule.question, capabilities)
    composition: Composition | None = None
    asked: tuple[Asked, ...]
    if must_compose(question, capabilities):
        threshold = COMPOSED_THRESHOLD if question.threshold is None else question.threshold
        composition = Composition(tuple(label.key for label in question.options), threshold)
        asked = tuple(share(noul_for_label(question, label)) for label in question.options)
    else:
        asked = (share(question),)
    return Consumer(rule.name, rule.state, rule.timeout_ms / 1000, asked, composition)


def _asked(question_id: str, question: Question, deployment: Deployment) -> Asked:
    body = orjson.dumps(render(question))
    if deployment.dialect is Dialect.OPENAI:
        written = orjson.dumps(openai.render(question_id, question))
    else:
        written = orjson.dumps(question_id) + b":" + body
    labels = _labels(question, deployment.capabilities)
    return Asked(question_id, question.type, written, labels, question_digest(body))


def _labels(question: Question, capabilities: Capabilities | None) -> tuple[str, ...] | None:
    if question.options:
        return tuple(option.key for option in question.options)
    if question.preset is not None and capabilities is not None:
        return capabilities.preset_labels.get(question.preset)
    return None


def _state(part: Part) -> bytes:
    members = b",".join(asked.written for asked in part.asked)
    return b'"state":%s,"questions":{%s}' % (_text(part.text), members)


def _text(text: str) -> bytes:
    try:
        return orjson.dumps(text)
    except TypeError:
        # A lone surrogate has no UTF-8 form. One "?" for each keeps every code point, hence every span, in its place.
        return orjson.dumps(text.encode("utf-8", "replace").decode())
