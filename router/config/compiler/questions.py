"""`systemone` rules: is the question well formed, and can the model that it goes to answer it?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from router.config.compiler.catalogue import Catalogue
from router.config.compiler.context import PROBABILITY, Context
from router.config.compiler.coverage import check_coverage, whole_rule
from router.config.compiler.waits import wait_ms
from router.config.deployments import Deployment
from router.config.guards import GuardRule
from router.config.heuristics import HeuristicRule
from router.config.model import signals as dialect
from router.config.plan import QuestionRule, StateKind
from router.config.presets import public_presets
from router.config.problems import nearest
from router.questions import Capabilities, Option, Predicate, Question, QuestionType, SpanHead

NOUL_DEFAULT = Predicate(gte=0.5)
LABELLED = frozenset({QuestionType.CHOICE, QuestionType.SET, QuestionType.SPAN})
_THRESHOLDED = frozenset({QuestionType.SET, QuestionType.SPAN})
_MOST_LEVELS = 10

_PAIRED = {
    **dict.fromkeys(("answer_check", "refusal", "same_request", "relevance", "tool_need"), QuestionType.NOUL),
    "tool_rank": QuestionType.CHOICE,
}


def preset_types() -> dict[str, QuestionType]:
    """Types of the well-known presets, for a model that nobody has described yet."""
    return {**{name: question.type for name, question in public_presets().items()}, **_PAIRED}


@dataclass(frozen=True, slots=True)
class Asked:
    """A signal rule that can be read, with what its conditions may say about it.

    `labels` is None when nobody knows them. `limits` are the least and the greatest value that it can have.
    """

    rule: QuestionRule | HeuristicRule | GuardRule
    labels: tuple[str, ...] | None
    limits: tuple[float, float]

    @property
    def type(self) -> QuestionType | None:
        """The type of the question; None for a rule that the router computes by itself."""
        return self.rule.question.type if isinstance(self.rule, QuestionRule | GuardRule) else None

    @property
    def labelled(self) -> bool:
        """Whether conditions can name one of its labels."""
        return self.rule.labelled if isinstance(self.rule, GuardRule) else self.type in LABELLED

    @property
    def needs_label(self) -> bool:
        """Whether a condition says nothing without a label: a choice always chooses something."""
        rule = self.rule
        if not isinstance(rule, QuestionRule) or rule.question.type is not QuestionType.CHOICE:
            return False
        return rule.predicate is None and rule.labels is None


class Questions:
    """The compiler of signal rules."""

    def __init__(self, context: Context, catalogue: Catalogue) -> None:
        self.context = context
        self.catalogue = catalogue

    def compile(self, rule: dialect.SystemoneRule) -> Asked | None:
        """The rule resolved, or None after reporting what is wrong with it."""
        context = self.context
        before = len(context.document.problems)
        deployment = self.catalogue.find(rule.deployment, rule.at("deployment"))
        if not self._one_source(rule):
            return None
        capabilities = deployment.capabilities if deployment else None
        question = self._preset(rule, deployment) if rule.preset is not None else self._free(rule)
        if question is None:
            return None
        if capabilities is not None and rule.preset is None:
            self._check_capability(rule, question, deployment, capabilities)
        self._check_threshold_and_head(rule, question)
        check_coverage(context, rule, question.type)
        labels = self._labels(question, capabilities)
        levels = len(question.options) or _MOST_LEVELS
        limits = (0.0, float(levels - 1)) if question.type is QuestionType.SCORE else PROBABILITY
        predicate = self._predicate(rule, question, limits)
        errors = [problem for problem in context.document.problems[before:] if problem.severity == "error"]
        if errors or deployment is None:
            return None
        timeout_ms = wait_ms(context, rule, deployment)
        resolved = QuestionRule(rule.name, deployment.name, question, StateKind(rule.state), predicate, timeout_ms)
        if rule.coverage == "full":
            return Asked(whole_rule(rule, resolved, deployment), labels, limits)
        return Asked(resolved, labels, limits)

    def _one_source(self, rule: dialect.SystemoneRule) -> bool:
        if rule.preset is not None and rule.question is not None:
            hint = "keep one: a preset brings its own question"
            self.context.error(rule.at("question"), "preset and question cannot both be given", hint, key=True)
            return False
        if rule.preset is None and rule.question is None:
            if not self.context.is_cut(rule.at("question")) and not self.context.is_cut(rule.at("preset")):
                self.context.error(rule.at(), "needs a question, or a preset", key=True)
            return False
        return True

    def _preset(self, rule: dialect.SystemoneRule, deployment: Deployment | None) -> Question | None:
        if deployment is None or rule.preset is None:
            return None
        path = rule.at("preset")
        capabilities = deployment.capabilities
        known = preset_types() if capabilities is None else capabilities.presets
        kind = known.get(rule.preset)
        if kind is None and capabilities is not None and (public := self._public(rule, capabilities)) is not None:
            return public
        if kind is None:
            shown = self.context.shown(rule.preset, path)
            guess = nearest(rule.preset, known)
            if capabilities is None:
                message = f"the type of the preset {shown} is not known, because {deployment.name} is not described"
            else:
                message = f"the model of deployment {deployment.name} has no preset {shown}"
            hint = f'did you mean "{guess}"?' if guess else f"it has: {', '.join(sorted(known)) or 'none'}"
            self.context.error(path, message, hint)
            return None
        return Question(type=kind, preset=rule.preset, threshold=rule.threshold, head=_head(rule.head))

    def _public(self, rule: dialect.SystemoneRule, can: Capabilities) -> Question | None:
        """The public text of a preset that the model lacks and can be asked."""
        public = public_presets().get(rule.preset or "")
        if public is None or not answers(can, public.type):
            return None
        return replace(public, threshold=rule.threshold, head=_head(rule.head))

    def _free(self, rule: dialect.SystemoneRule) -> Question | None:
        question = rule.question
        if question is None:
            return None
        asked = free_question(self.context, question)
        if asked is None:
            return None
        threshold = getattr(question, "threshold", None)
        head = getattr(question, "head", None)
        return replace(
            asked,
            threshold=rule.threshold if threshold is None else threshold,
            head=_head(rule.head if head is None else head),
        )

    def _check_capability(
        self, rule: dialect.SystemoneRule, question: Question, deployment: Deployment | None, can: Capabilities
    ) -> None:
        """A set may be put together from yes/no questions; nothing else has a stand-in."""
        if rule.question is None or deployment is None:
            return
        kinds = can.question_types
        composed = question.type is QuestionType.SET and QuestionType.NOUL in kinds
        path = rule.question.at("type")
        if question.type not in kinds and not composed:
            answers = ", ".join(sorted(kinds)) or "no free question"
            message = f"the model of deployment {deployment.name} cannot answer {question.type} questions"
            self.context.error(path, message, f"it answers: {answers}")
        key = "choices" if question.type is QuestionType.CHOICE else "labels"
        most = can.max_options if question.type is QuestionType.CHOICE else can.max_labels
        if question.type in LABELLED and len(question.options) > most and not composed:
            message = (
                f"the model of deployment {deployment.name} takes at most {most} {key}, not {len(question.options)}"
            )
            self.context.error(rule.question.at(key), message, key=True)

    def _check_threshold_and_head(self, rule: dialect.SystemoneRule, question: Question) -> None:
        for key in ("threshold", "head"):
            if rule.question is not None and rule.has(key) and rule.question.has(key):
                self.context.error(rule.at(key), f"{key} stands on the rule and in the question", "keep one", key=True)
        if rule.threshold is not None and question.type not in _THRESHOLDED:
            message = f"threshold is for set and span questions, not for {question.type}"
            self.context.error(rule.at("threshold"), message, "write a predicate", key=True)
        if rule.head is not None and (question.type is not QuestionType.SPAN or rule.preset is not None):
            what = "a preset" if rule.preset is not None else question.type
            self.context.error(rule.at("head"), f"head is for span questions, not for {what}", "remove it", key=True)

    def _labels(self, question: Question, capabilities: Capabilities | None) -> tuple[str, ...] | None:
        return labels_of(question, capabilities)

    def _predicate(
        self, rule: dialect.SystemoneRule, question: Question, limits: tuple[float, float]
    ) -> Predicate | None:
        if rule.predicate is not None:
            return self.context.predicate(rule.predicate, limits)
        if question.type is QuestionType.SCORE and not self.context.is_cut(rule.at("predicate")):
            hint = f"add, for example, predicate: {{gte: {limits[1] / 2:g}}}"
            self.context.error(rule.at(), "a score rule needs a predicate", hint, key=True)
        return NOUL_DEFAULT if question.type is QuestionType.NOUL else None


def free_question(context: Context, question: dialect.Question) -> Question | None:
    """A question in the operator's words, without threshold and head; None after reporting that it asks nothing."""
    options = _options(context, question)
    if isinstance(question, dialect.NoulQuestion) and question.instructions is None and not options:
        if not context.is_cut(question.at()):
            hint = "add instructions, or say in criteria what yes and no mean"
            context.error(question.at(), "a noul question needs something to ask", hint, key=True)
        return None
    return Question(type=QuestionType(question.type), instructions=question.instructions, options=options)


def _options(context: Context, question: dialect.Question) -> tuple[Option, ...]:
    match question:
        case dialect.NoulQuestion(criteria=criteria):
            sides = (("true", criteria.true), ("false", criteria.false)) if criteria else ()
            return tuple(Option(key, text) for key, text in sides if text is not None)
        case dialect.ScoreQuestion(levels=levels):
            _unique(context, levels, [question.at_item("levels", index) for index in range(len(levels))], "level")
            return tuple(Option(str(index), text) for index, text in enumerate(levels))
        case dialect.ChoiceQuestion(choices=texts):
            what = "choice"
        case _:
            texts, what = question.labels, "label"
    _unique(context, [text.key for text in texts], [text.at("key") for text in texts], what)
    return tuple(Option(text.key, text.description) for text in texts)


def _unique(context: Context, keys: Sequence[str], paths: Sequence[tuple[str | int, ...]], what: str) -> None:
    seen: set[str] = set()
    for key, path in zip(keys, paths, strict=True):
        if key in seen:
            context.error(path, f"duplicate {what} {context.shown(key, path)}")
        seen.add(key)


def answers(can: Capabilities, kind: QuestionType) -> bool:
    """Whether a model can be asked a free question of a type. A set may be put together from yes/no questions."""
    return kind in can.question_types or (kind is QuestionType.SET and QuestionType.NOUL in can.question_types)


def labels_of(question: Question, can: Capabilities | None) -> tuple[str, ...] | None:
    """The labels that an answer can hold, of a model's own preset or of a text; None when nobody knows them."""
    own = question.preset is not None and (can is None or question.preset in can.presets)
    if own and can is not None:
        return can.preset_labels.get(question.preset or "")
    return None if own and not question.options else tuple(option.key for option in question.options)


def _head(head: str | None) -> SpanHead | None:
    return SpanHead(head) if head is not None else None
