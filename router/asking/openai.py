"""The dialect of OpenAI's Decisions API: `noul` is a predicate there, and questions and answers are lists.

Questions are named by their ids. An answer is put back into System One's form and then judged like any other, so both
dialects are believed on the same terms. Sources: `systemone_protocol.md` 5 (OpenAI Decisions, mapping).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from router.questions import Option, Question, QuestionType

_NAMES = {QuestionType.NOUL: "predicate", QuestionType.CHOICE: "choice", QuestionType.SCORE: "score"}


def render(question_id: str, question: Question) -> dict[str, Any]:
    """The JSON object of one question. Raises ValueError for a type that the dialect lacks."""
    if question.type not in _NAMES:
        raise ValueError(f"the dialect of /v1/decisions has no {question.type} questions")
    body: dict[str, Any] = {"type": _NAMES[question.type], "name": question_id}
    if question.type is QuestionType.NOUL:
        body["instructions"] = _predicate(question)
        return body
    body["instructions"] = question.instructions or "Judge the input."
    if question.type is QuestionType.CHOICE:
        body["choices"] = [_choice(option) for option in question.options]
    else:
        body["levels"] = [{"label": level_label(option)} for option in question.options]
    return body


def level_label(level: Option) -> str:
    """What a score's level is called: its text, or its number where it has none."""
    return level.key if level.description is None else level.description


def envelope(document: Mapping[str, Any], ids: Sequence[str]) -> dict[str, Any]:
    """The response's answers by question id, in System One's form; what does not fit its place is left out."""
    listed = document.get("answers")
    if not isinstance(listed, list) or len(listed) != len(ids):
        return {}
    answers: dict[str, Any] = {}
    for question_id, answer in zip(ids, listed, strict=True):
        # The API answers in the order of the questions; a name that says otherwise means that something is mixed up.
        if isinstance(answer, dict) and answer.get("name") in (None, question_id):
            converted = _convert(answer)
            if converted is not None:
                answers[question_id] = converted
    return {"answers": answers}


def _predicate(question: Question) -> str:
    """The instructions with what yes and no mean folded in, because a predicate has no criteria."""
    sides = [
        f"{word}: {option.description}"
        for key, word in (("true", "True means"), ("false", "False means"))
        for option in question.options
        if option.key == key and option.description is not None
    ]
    return "\n".join([*([question.instructions] if question.instructions else []), *sides])


def _choice(option: Option) -> dict[str, str]:
    return (
        {"value": option.key}
        if option.description is None
        else {"value": option.key, "description": option.description}
    )


def _convert(answer: Mapping[str, Any]) -> dict[str, Any] | None:
    kind = answer.get("type")
    if kind == "predicate":
        return {"type": "noul", "noul": answer.get("probability")}
    if kind == "choice":
        return {**_distribution(answer), "type": "choice", "choice": answer.get("choice")}
    if kind == "score":
        return {**_distribution(answer), "type": "score", "score": answer.get("score")}
    # "refusal" among them: the model would not answer this one.
    return None


def _distribution(answer: Mapping[str, Any]) -> dict[str, Any]:
    """Probabilities by value; None when two entries share a value or one has none, which no answer may."""
    entries = answer.get("probabilities")
    found: dict[str, Any] | None = {}
    for entry in entries if isinstance(entries, list) else ():
        value = entry.get("value") if isinstance(entry, dict) else None
        key = str(value) if isinstance(value, str) or type(value) is int else None
        if found is None or key is None or key in found:
            found = None
            break
        found[key] = entry.get("probability")
    return {"probabilities": found, "confidence": answer.get("confidence")}
