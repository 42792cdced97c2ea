"""Typed answers to the JSON of a System One response."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from router.questions import ChoiceAnswer, NoulAnswer, ScoreAnswer, SetAnswer, SimilarityAnswer, SpanAnswer

from .asking import Answered, Failure, FailureCode
from .body import Posed
from .personal.finding import MODEL

Results = Mapping[str, Answered | Failure]


def sound(result: Answered | Failure) -> Answered | Failure:
    """The result, or a failure when a number in it is not one: JSON has no NaN, and clients must never see it."""
    if isinstance(result, Failure) or all(map(math.isfinite, _numbers(result.answer))):
        return result
    return Failure(FailureCode.INVALID_MODEL_OUTPUT, "the model's output is not a number")


def _numbers(answer: Any) -> Iterable[float]:
    match answer:
        case NoulAnswer(probability):
            found: Iterable[float] = (probability,)
        case ChoiceAnswer():
            found = (answer.confidence, *answer.probabilities.values())
        case ScoreAnswer():
            found = (answer.score, answer.confidence, *answer.probabilities)
        case SetAnswer():
            found = answer.probabilities.values()
        case SpanAnswer():
            found = (answer.word_probability, *(span.probability for span in answer.spans))
        case SimilarityAnswer():
            found = answer.similarities
        case _:
            found = ()
    return found


def render_answers(questions: Mapping[str, Posed], results: Results) -> dict[str, Any]:
    """The `answers` object: one answer a question, and one yes/no answer a label of a set."""
    return render_block(questions, results)["answers"]  # type: ignore[no-any-return]


def render_block(questions: Mapping[str, Posed], results: Results, *, sources: bool = False) -> dict[str, Any]:
    """`answers` of one state, with `sets`, `spans` and `thresholds` where there are any.

    `sources` adds to each span what found it, where that is known.
    """
    answers: dict[str, Any] = {}
    sets: dict[str, Any] = {}
    spans: dict[str, Any] = {}
    thresholds: dict[str, float] = {}
    for name, posed in questions.items():
        result = results[name]
        if isinstance(result, Failure):
            kind = posed.asked.question.type.value
            answers[name] = {"type": kind, "error": result.code.value, "message": result.message}
            continue
        if result.threshold is not None:
            thresholds[name] = result.threshold
        coverage = _coverage(posed, result)
        answer = result.answer
        if isinstance(answer, SetAnswer):
            selected = [key for key in answer.probabilities if key in answer.selected]
            sets[name] = {"selected": selected, "probabilities": dict(answer.probabilities), **coverage}
            for key, p in answer.probabilities.items():
                answers[f"{name}.{key}"] = {"type": "noul", "noul": p, **coverage}
        elif isinstance(answer, SpanAnswer):
            spans[name] = [_span(span, result.text or "") for span in answer.spans]
            if sources and result.sources is not None:
                told = zip(spans[name], map(_source, result.sources), strict=True)
                spans[name] = [span | source for span, source in told]
            answers[name] = {"type": "noul", "noul": answer.word_probability, **coverage}
        else:
            answers[name] = {**_plain(answer, posed), **coverage}
    block = {"answers": answers, "sets": sets, "spans": spans, "thresholds": thresholds}
    return {key: value for key, value in block.items() if value or key == "answers"}


def _plain(answer: Any, posed: Posed) -> dict[str, Any]:
    if isinstance(answer, NoulAnswer):
        return {"type": "noul", "noul": answer.probability}
    if isinstance(answer, ChoiceAnswer):
        return {
            "type": "choice",
            "choice": answer.choice,
            "confidence": answer.confidence,
            "probabilities": dict(answer.probabilities),
        }
    if isinstance(answer, SimilarityAnswer):
        return {"type": "similarity", "similarities": list(answer.similarities)}
    if isinstance(answer, ScoreAnswer):
        levels = posed.legend or tuple(str(index) for index in range(len(answer.probabilities)))
        return {
            "type": "score",
            "score": answer.score,
            "confidence": answer.confidence,
            "legend": {str(index): level for index, level in enumerate(levels)},
            "probabilities": {str(index): p for index, p in enumerate(answer.probabilities)},
        }
    raise TypeError(type(answer).__name__)


def _source(source: str) -> dict[str, str]:
    return {"source": MODEL} if source == MODEL else {"source": "rule", "rule": source}


def _span(span: Any, text: str) -> dict[str, Any]:
    return {
        "label": span.label,
        "start": span.start,
        "end": span.end,
        "text": text[span.start : span.end],
        "probability": span.probability,
    }


def _coverage(posed: Posed, result: Answered) -> dict[str, str]:
    """`complete` where it was asked for; `partial` always when something was left unread."""
    if not result.complete:
        return {"input_coverage": "partial"}
    return {"input_coverage": "complete"} if posed.asked.full else {}
