"""Answers and readings as JSON and back, for records that are decided again. Numbers and configured names only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from router.config.guards import GuardRule
from router.deciding.guarded import GuardResult
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
from router.signals.guards import read_guard
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


def guard_record(result: GuardResult, verdict: str) -> dict[str, Any]:
    """What a guard came to. `verdict` stands for all that its rule makes of answers (`facts.verdict_id`)."""
    hazard = answer_record(result.hazard) if result.hazard is not None else None
    coverage = str(result.coverage) if result.coverage is not None else None
    reading = {**reading_record(result.reading), "by_policy": result.reading.by_policy}
    return {
        "guard": answer_record(result.answer),
        "hazard": hazard,
        "coverage": coverage,
        "bytes": result.coverage.of_bytes if result.coverage is not None else 0,
        "verdicts": {verdict: reading},
    }


def recorded_guard(rule: GuardRule, record: Mapping[str, Any], verdict: str) -> Reading | None:
    """The reading of a guard again, which need not be the one that was recorded: what was read in full can be judged
    anew. None where the record does not say. Raises ValueError, KeyError or TypeError for what is none."""
    kept = record["verdicts"].get(verdict)
    if kept is not None:
        known = replace(recorded_reading(kept), type=rule.question.type, by_policy=kept["by_policy"])
        return None if known.reason is UnknownReason.NOT_ASKED else known
    if record["coverage"] != "full":
        return None
    hazard = recorded_answer(record["hazard"]) if record["hazard"] is not None else None
    return read_guard(rule.at(record.get("bytes", 0)), recorded_answer(record["guard"]), hazard)


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
