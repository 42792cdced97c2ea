"""What a rule's answer means to routing: a number per option or label, and whether the rule matched.

Every question type is read by one function, so that conditions, projections and traces agree about what "matched" and
"the value" are. An answer that contradicts its own question (a probability outside 0..1, a chosen option that was never
offered, an answer of another type) is read as unknown rather than guessed at.

Sources: "Decision signal" (table of question types), `rulings.md` (Unknown answers).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from enum import StrEnum
from types import MappingProxyType

import msgspec

from router.config.plan import QuestionRule
from router.questions import (
    Answer,
    ChoiceAnswer,
    NoulAnswer,
    Predicate,
    Question,
    QuestionType,
    ScoreAnswer,
    SetAnswer,
    SimilarityAnswer,
    Span,
    SpanAnswer,
    Unknown,
    UnknownReason,
)

YES = Predicate(gte=0.5)
"""What makes an answer of yes or no a match, where the rule does not say."""
_NOTHING: Mapping[str, float] = MappingProxyType({})

# A softmax in single precision may miss 0 or 1 by a few units in the last place. That much is pulled back, not refused.
_SLACK = 1e-6


class Measure(StrEnum):
    """What the confidence of a rule's match measures. Different measures are never compared."""

    PROBABILITY = "probability"
    SIMILARITY = "similarity"
    """How alike a text is to others: a cosine, which is no probability."""
    SHARE = "share"
    """How many of an event's criteria were found."""


class Reading(msgspec.Struct, frozen=True):
    """What one rule says about a request, as conditions and projections see it.

    `type` is that of the question, None for a rule that the router computes by itself.
    `matched` is the rule's own result, None when it is unknown (then `reason` says why and everything else is empty).
    `confidence` is that of the match, 0..1; None when nothing matched and for a score, whose level is no probability.
    `values` holds the bare value under "" and one value per option or label; `labels` the options or labels that match
    by the rule, each with its confidence; `label` the option that a choice chose. `by_policy` marks a result that a
    guard's policy stands for: nothing was measured, and a match counts for every label and as the value 1.
    """

    type: QuestionType | None
    matched: bool | None
    confidence: float | None = None
    values: Mapping[str, float] = _NOTHING
    labels: Mapping[str, float] = _NOTHING
    label: str | None = None
    reason: UnknownReason | None = None
    by_policy: bool = False

    def value(self, label: str | None) -> float | None:
        """The bare value, or that of one option or label; None when unknown. A label that no span has is 0."""
        if self.by_policy:
            return float(bool(self.matched))
        found = self.values.get(label or "")
        if found is None and self.matched is not None and self.type is QuestionType.SPAN:
            return 0.0
        return found

    def matches(self, label: str | None) -> bool | None:
        """Whether the rule, or the rule for one option or label, matched; None when unknown."""
        if label is None or self.matched is None or self.by_policy:
            return self.matched
        if label in self.labels:
            return True
        # A set speaks only for the labels in its answer; a choice excludes all others, and no span means not found.
        return None if self.type is QuestionType.SET and label not in self.values else False

    def sureness(self, label: str | None) -> float | None:
        """The confidence of a match, or of the match of one option or label; None where nothing measured it."""
        return self.confidence if label is None or self.by_policy else self.labels[label]


def read(rule: QuestionRule, answer: Answer) -> Reading:
    """Read one answer by its rule's predicate. Never raises: what cannot be read is unknown (`invalid_answer`)."""
    kind = rule.question.type
    match answer:
        case Unknown(reason):
            return Reading(kind, None, reason=reason)
        case NoulAnswer(probability) if kind is QuestionType.NOUL:
            reading = _read_noul(probability, rule.predicate or YES)
        case ChoiceAnswer() if kind is QuestionType.CHOICE:
            reading = _read_choice(answer, rule.predicate, rule.labels)
        case ScoreAnswer() if kind is QuestionType.SCORE:
            reading = _read_score(answer, rule)
        case SetAnswer() if kind is QuestionType.SET:
            reading = _read_set(answer, rule.predicate)
        case SpanAnswer() if kind is QuestionType.SPAN:
            reading = _read_span(answer, rule)
        case SimilarityAnswer(similarities) if kind is QuestionType.SIMILARITY:
            reading = _read_similarity(similarities, rule)
        case _:
            reading = None
    return reading or Reading(kind, None, reason=UnknownReason.INVALID_ANSWER)


def read_all(rules: Iterable[QuestionRule], answers: Mapping[str, Answer]) -> dict[str, Reading]:
    """Readings by rule name, in the order of `rules`; a rule without an answer is unknown (`not_asked`)."""
    readings: dict[str, Reading] = {}
    for rule in rules:
        answer = answers.get(rule.name)
        if answer is None:
            readings[rule.name] = Reading(rule.question.type, None, reason=UnknownReason.NOT_ASKED)
        else:
            readings[rule.name] = read(rule, answer)
    return readings


def highest_level(question: Question) -> float:
    """The top of a score's scale, whose lowest level is 0; infinite when only the model knows the levels (a preset)."""
    return float(len(question.options) - 1) if question.options else math.inf


def _read_noul(probability: float, predicate: Predicate) -> Reading | None:
    yes = bounded(probability, 1.0)
    if yes is None:
        return None
    matched = predicate.holds(yes)
    return Reading(QuestionType.NOUL, matched, yes if matched else None, {"": yes})


def _read_choice(answer: ChoiceAnswer, predicate: Predicate | None, labels: frozenset[str] | None) -> Reading | None:
    probabilities = _all_bounded(answer.probabilities)
    if probabilities is None or answer.choice not in probabilities:
        return None
    chosen = probabilities[answer.choice]
    sure = predicate is None or predicate.holds(chosen)
    matched = sure and (labels is None or answer.choice in labels)
    return Reading(
        QuestionType.CHOICE,
        matched,
        chosen if matched else None,
        {**probabilities, "": chosen},
        {answer.choice: chosen} if sure else _NOTHING,
        answer.choice,
    )


def _read_score(answer: ScoreAnswer, rule: QuestionRule) -> Reading | None:
    level = bounded(answer.score, highest_level(rule.question))
    # The loader insists on a predicate: without one there is no saying which level would match.
    if level is None or rule.predicate is None:
        return None
    return Reading(QuestionType.SCORE, rule.predicate.holds(level), None, {"": level})


def _read_set(answer: SetAnswer, predicate: Predicate | None) -> Reading | None:
    probabilities = _all_bounded(answer.probabilities)
    if probabilities is None or not answer.selected <= probabilities.keys():
        return None
    if predicate is None:
        labels = {label: probabilities[label] for label in probabilities if label in answer.selected}
    else:
        labels = {label: value for label, value in probabilities.items() if predicate.holds(value)}
    values = {**probabilities, "": max(probabilities.values())}
    return Reading(QuestionType.SET, bool(labels), max(labels.values(), default=None), values, labels)


def _read_span(answer: SpanAnswer, rule: QuestionRule) -> Reading | None:
    word = bounded(answer.word_probability, 1.0)
    if word is None:
        return None
    best: dict[str, float] = {option.key: 0.0 for option in rule.question.options}
    labels: dict[str, float] = {}
    for span in answer.spans:
        probability = bounded(span.probability, 1.0)
        if probability is None:
            return None
        _raise_to(best, span, probability)
        if rule.predicate is None or rule.predicate.holds(probability):
            _raise_to(labels, span, probability)
    best[""] = word
    return Reading(QuestionType.SPAN, bool(labels), max(labels.values(), default=None), best, labels)


def _read_similarity(similarities: tuple[float, ...], rule: QuestionRule) -> Reading | None:
    """One number of several cosines, by the rule's `aggregation`. One below 0 counts as 0: not alike at all."""
    if len(similarities) != len(rule.question.options) or rule.predicate is None:
        return None
    alike = [bounded(max(value, 0.0), 1.0) for value in similarities]
    known = [value for value in alike if value is not None]
    if len(known) != len(alike):
        return None
    value = sum(known) / len(known) if rule.aggregation == "mean" else max(known)
    holds = rule.predicate.holds
    matched = any(map(holds, known)) if rule.aggregation == "any" else holds(value)
    return Reading(QuestionType.SIMILARITY, matched, value if matched else None, {"": value})


def _raise_to(best: dict[str, float], span: Span, probability: float) -> None:
    if probability >= best.get(span.label, 0.0):
        best[span.label] = probability


def bounded(value: float, top: float) -> float | None:
    """A number pulled inside 0..`top` where it misses by a rounding; None when it is no such number."""
    if 0.0 <= value <= top and value != math.inf:
        return value
    if -_SLACK <= value <= top + _SLACK and value != math.inf:
        return min(max(value, 0.0), top)
    return None


def _all_bounded(values: Mapping[str, float]) -> Mapping[str, float] | None:
    """The probabilities, pulled inside 0..1; None when there are none or one is not a probability."""
    if not values or not math.isfinite(sum(values.values())):
        return None
    low, high = min(values.values()), max(values.values())
    if low >= 0.0 and high <= 1.0:
        return values
    if low < -_SLACK or high > 1.0 + _SLACK:
        return None
    return {key: min(max(value, 0.0), 1.0) for key, value in values.items()}
