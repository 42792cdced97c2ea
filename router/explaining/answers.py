"""Answers and readings as JSON and back, for records that are decided again. Numbers and configured names only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from router.explaining.preview import answer_json
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
from router.signals.reading import Reading

_TYPES = {
    NoulAnswer: QuestionType.NOUL,
    ChoiceAnswer: QuestionType.CHOICE,
    ScoreAnswer: QuestionType.SCORE,
    SetAnswer: QuestionType.SET,
    SpanAnswer: QuestionType.SPAN,
    SimilarityAnswer: QuestionType.SIMILARITY,
}


def answer_record(answer: Answer) -> dict[str, Any]:
    """An answer as it is recorded."""
    if isinstance(answer, Unknown):
        return {"unknown": answer.reason}
    return {_TYPES[type(answer)].value: answer_json(answer)}


def recorded_answer(record: Mapping[str, Any]) -> Answer:
    """The answer again. Raises ValueError, KeyError or TypeError for what is none."""
    ((kind, value),) = record.items()
    match kind:
        case "unknown":
            answer: Answer = Unknown(UnknownReason(value))
        case QuestionType.NOUL:
            answer = NoulAnswer(**value)
        case QuestionType.CHOICE:
            answer = ChoiceAnswer(**value)
        case QuestionType.SCORE:
            answer = ScoreAnswer(value["score"], tuple(value["probabilities"]), value["confidence"])
        case QuestionType.SET:
            answer = SetAnswer(frozenset(value["selected"]), value["probabilities"], value["composed"])
        case QuestionType.SPAN:
            answer = SpanAnswer(tuple(Span(**span) for span in value["spans"]), value["word_probability"])
        case QuestionType.SIMILARITY:
            answer = SimilarityAnswer(tuple(value["similarities"]))
        case _:
            raise ValueError("not an answer")
    return answer


def reading_record(reading: Reading) -> dict[str, Any]:
    """What a rule that the router computes by itself came to."""
    return {
        "matched": reading.matched,
        "confidence": reading.confidence,
        "values": dict(reading.values),
        "labels": dict(reading.labels),
        "reason": reading.reason,
    }


def recorded_reading(record: Mapping[str, Any]) -> Reading:
    """The reading again. Raises ValueError or KeyError for what is none."""
    reason = record["reason"]
    return Reading(
        None,
        record["matched"],
        record["confidence"],
        record["values"],
        record["labels"],
        reason=None if reason is None else UnknownReason(reason),
    )
