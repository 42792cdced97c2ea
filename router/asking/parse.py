"""System One answers, believed only after they fit what was asked.

Anything that does not fit makes that one question unknown (`invalid_answer`), never an error of the request and never a
guess. Only a response that is no JSON object at all raises. Source: `System One` answers; tolerances are what servers
that round to two decimals need.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from router.asking import openai
from router.asking.errors import BadResponse
from router.asking.plan import Asked, Call, Composition, Consumer, part_name
from router.config.deployments import Dialect
from router.questions import (
    Answer,
    ChoiceAnswer,
    NoulAnswer,
    QuestionType,
    ScoreAnswer,
    SetAnswer,
    SimilarityAnswer,
    Span,
    SpanAnswer,
    Unknown,
    UnknownReason,
)

_INVALID = Unknown(UnknownReason.INVALID_ANSWER)
_ROUNDING = 0.005  # half of the last digit of a server that rounds to two decimals
_SUM_TOLERANCE = 1e-4
_WIDEST_SUM_TOLERANCE = 0.05
_EXPECTATION_TOLERANCE = 0.02
_OUTSIDE = 1e-6  # float noise around 0 and 1 that is clamped, not refused

_ERRORS = {
    "deadline_exceeded": UnknownReason.TIMEOUT,
    "max_length_exceeded": UnknownReason.INPUT_LIMIT,
    "scan_budget_exceeded": UnknownReason.INPUT_LIMIT,
    "unavailable": UnknownReason.UNAVAILABLE,
    "overloaded": UnknownReason.OVERLOADED,
}


class _InvalidError(Exception):
    """An answer that does not fit its question. Caught in this module."""


@dataclass(frozen=True, slots=True)
class Response:
    """The answers of a call, by part and question id, and who gave them (None: the server does not say)."""

    parts: list[dict[str, Answer]]
    identity: str | None


def read_answers(body: bytes, call: Call) -> dict[str, Answer]:
    """The answer of every rule that reads this call. Raises BadResponse when `body` is not a JSON object."""
    parts = read_response(body, call).parts
    return {consumer.rule: for_consumer(consumer, parts[index]) for consumer, index in call.readers}


def read_response(body: bytes, call: Call) -> Response:
    """The answer of every question of this call. Raises BadResponse when `body` is not a JSON object."""
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError:
        raise BadResponse("the response is not JSON") from None
    if not isinstance(document, dict):
        raise BadResponse("the response is not a JSON object")
    if call.stage.dialect is Dialect.OPENAI:
        envelopes: list[Mapping[str, Any]] = [openai.envelope(document, [asked.id for asked in call.parts[0].asked])]
    else:
        others = _object(document.get("states"))
        envelopes = [document, *(_object(others.get(part_name(i))) for i in range(1, len(call.parts)))]
    parts = [
        {asked.id: read_answer(envelope, asked, part.text) for asked in part.asked}
        for part, envelope in zip(call.parts, envelopes, strict=True)
    ]
    return Response(parts, _identity(document) if call.stage.identify else None)


def _identity(document: Mapping[str, Any]) -> str | None:
    """Name and version of the model that answered, as far as the response tells."""
    meta = _object(document.get("meta"))
    told = (document.get("model"), meta.get("model_id"), meta.get("revision"), meta.get("model_sha256"))
    words = [word for word in told if isinstance(word, str)]
    return "\n".join(words) if words else None


def for_consumer(consumer: Consumer, answers: Mapping[str, Answer]) -> Answer:
    """The answer that a rule reads, of answers by question id: one of them, or a set put together from several."""
    if consumer.composition is None:
        return answers[consumer.asked[0].id]
    return compose_set(consumer.composition, [answers[asked.id] for asked in consumer.asked])


def compose_set(composition: Composition, nouls: Sequence[Answer]) -> Answer:
    """One set from a noul per label. A label without an answer leaves the whole set unknown, for its reason."""
    probabilities: dict[str, float] = {}
    for label, answer in zip(composition.labels, nouls, strict=True):
        if isinstance(answer, Unknown):
            return answer
        if not isinstance(answer, NoulAnswer):
            return _INVALID
        probabilities[label] = answer.probability
    selected = frozenset(label for label, p in probabilities.items() if p >= composition.threshold)
    return SetAnswer(selected, probabilities, composed=True)


def read_answer(envelope: Mapping[str, Any], asked: Asked, text: str) -> Answer:
    """The answer to `asked` about `text` from the part of a response that is about this text. Never raises."""
    answer = _object(_object(envelope.get("answers")).get(asked.id))
    error = answer.get("error")
    if error is not None:
        return Unknown(_ERRORS.get(error, UnknownReason.INVALID_ANSWER)) if isinstance(error, str) else _INVALID
    try:
        if asked.type is QuestionType.SET:
            return _set(_beside(envelope, "sets", asked.id, answer), asked.labels)
        if asked.type is QuestionType.SPAN:
            return _spans(envelope, answer, asked, text)
        return _plain(answer, asked)
    except _InvalidError:
        return _INVALID


def _plain(answer: Mapping[str, Any], asked: Asked) -> Answer:
    if answer.get("type") != asked.type.value:
        raise _InvalidError
    if asked.type is QuestionType.NOUL:
        return NoulAnswer(_probability(answer.get("noul")))
    if asked.type is QuestionType.SIMILARITY:
        return _similarity(answer, asked.labels)
    return _choice(answer, asked.labels) if asked.type is QuestionType.CHOICE else _score(answer, asked.labels)


def _similarity(answer: Mapping[str, Any], candidates: tuple[str, ...] | None) -> SimilarityAnswer:
    """One cosine a candidate, in the order asked."""
    raw = answer.get("similarities")
    if not isinstance(raw, list) or candidates is None or len(raw) != len(candidates):
        raise _InvalidError
    cosines = tuple(_number(value) for value in raw)
    if not all(-1 - _OUTSIDE <= cosine <= 1 + _OUTSIDE for cosine in cosines):
        raise _InvalidError
    return SimilarityAnswer(cosines)


def _choice(answer: Mapping[str, Any], labels: tuple[str, ...] | None) -> ChoiceAnswer:
    probabilities = _distribution(answer.get("probabilities"), labels)
    chosen = answer.get("choice")
    if not isinstance(chosen, str) or chosen not in probabilities:
        raise _InvalidError
    if probabilities[chosen] < max(probabilities.values()) - 2 * _ROUNDING:
        raise _InvalidError
    return ChoiceAnswer(chosen, probabilities, _probability(answer.get("confidence")))


def _score(answer: Mapping[str, Any], labels: tuple[str, ...] | None) -> ScoreAnswer:
    raw = _object(answer.get("probabilities"))
    levels = tuple(str(i) for i in range(len(raw) if labels is None else len(labels)))
    by_level = _distribution(raw, levels)
    probabilities = tuple(by_level[level] for level in levels)
    score, top = _number(answer.get("score")), len(levels) - 1
    expected = sum(i * p for i, p in enumerate(probabilities))
    rounding = _ROUNDING * sum(range(len(levels)))
    if abs(score - expected) > _EXPECTATION_TOLERANCE + rounding:
        raise _InvalidError
    return ScoreAnswer(min(max(score, 0.0), float(top)), probabilities, _probability(answer.get("confidence")))


def _set(answer: Mapping[str, Any], labels: tuple[str, ...] | None) -> SetAnswer:
    probabilities = _probabilities(answer.get("probabilities"), labels)
    selected = answer.get("selected")
    if not isinstance(selected, list) or not all(isinstance(label, str) for label in selected):
        raise _InvalidError
    if not probabilities.keys() >= set(selected):
        raise _InvalidError
    return SetAnswer(frozenset(selected), probabilities)


def _spans(envelope: Mapping[str, Any], answer: Mapping[str, Any], asked: Asked, text: str) -> SpanAnswer:
    found = _object(envelope.get("spans")).get(asked.id, answer.get("spans"))
    if not isinstance(found, list):
        raise _InvalidError
    spans = tuple(_span(item, asked.labels, text) for item in found)
    best = max((span.probability for span in spans), default=0.0)
    word = answer.get("noul", answer.get("word_probability"))
    return SpanAnswer(spans, best if word is None else _probability(word))


def _span(item: object, labels: tuple[str, ...] | None, text: str) -> Span:
    raw = _object(item)
    label, start, end = raw.get("label"), raw.get("start"), raw.get("end")
    if not isinstance(label, str) or (labels is not None and label not in labels):
        raise _InvalidError
    if type(start) is not int or type(end) is not int or not 0 <= start < end <= len(text):
        raise _InvalidError
    quoted = raw.get("text")
    if quoted is not None and quoted != text[start:end].encode("utf-8", "replace").decode():
        raise _InvalidError  # offsets in another unit, bytes say: masking by them would miss
    return Span(label, start, end, _probability(raw.get("probability")))


def _beside(envelope: Mapping[str, Any], key: str, question_id: str, answer: Mapping[str, Any]) -> Mapping[str, Any]:
    beside = _object(envelope.get(key)).get(question_id)
    return answer if beside is None else _object(beside)


def _distribution(value: object, labels: tuple[str, ...] | None) -> dict[str, float]:
    probabilities = _probabilities(value, labels)
    tolerance = min(max(_SUM_TOLERANCE, _ROUNDING * len(probabilities)), _WIDEST_SUM_TOLERANCE)
    if abs(math.fsum(probabilities.values()) - 1) > tolerance + _OUTSIDE:
        raise _InvalidError
    return probabilities


def _probabilities(value: object, labels: tuple[str, ...] | None) -> dict[str, float]:
    """Probabilities by label, in the order asked, when the keys are exactly those asked (any, where unknown)."""
    raw = _object(value)
    if not raw or (labels is not None and raw.keys() != set(labels)):
        raise _InvalidError
    return {label: _probability(raw[label]) for label in (raw if labels is None else labels)}


def _probability(value: object) -> float:
    number = _number(value)
    if not -_OUTSIDE <= number <= 1 + _OUTSIDE:
        raise _InvalidError
    return min(max(number, 0.0), 1.0)


def _number(value: object) -> float:
    if type(value) is not float and type(value) is not int:
        raise _InvalidError
    number = float(value)
    if not math.isfinite(number):
        raise _InvalidError
    return number


def _object(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
