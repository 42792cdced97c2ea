"""Questions as System One JSON: the base dialect that every server of the protocol reads.

`criteria` is used for every type because it is the one form that all servers share; `choices`, `levels` and `labels`
are a dialect of some. Sources: `System One` requests; "Decision signal" (set on a model without it, threshold, head).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from router.questions import Capabilities, Option, Question, QuestionType


def as_asked(question: Question, capabilities: Capabilities | None) -> Question:
    """The form of `question` that a model with these capabilities is asked.

    A model that defines the preset is asked by the preset's name alone. One that does not, or that nobody knows, is
    asked the preset's public text where the question carries it. What a type does not read is dropped, so that it keeps
    no two questions apart.
    """
    if question.type not in (QuestionType.SET, QuestionType.SPAN) and question.threshold is not None:
        question = replace(question, threshold=None)
    if question.type is not QuestionType.SPAN and question.head is not None:
        question = replace(question, head=None)
    if question.preset is None:
        return question
    known = capabilities is not None and question.preset in capabilities.presets
    if known or question.instructions is None:
        return replace(question, instructions=None, options=())
    return replace(question, preset=None)


def must_compose(question: Question, capabilities: Capabilities | None) -> bool:
    """Whether this (already `as_asked`) set is put together from nouls, because the model has no native set."""
    return (
        question.type is QuestionType.SET
        and question.preset is None
        and capabilities is not None
        and QuestionType.SET not in capabilities.question_types
    )


def noul_for_label(question: Question, label: Option) -> Question:
    """The yes/no question that stands for one label of a set."""
    what = f'"{label.key}"' if label.description is None else f'"{label.key}" ({label.description})'
    if question.instructions is None:
        return Question(QuestionType.NOUL, instructions=f"Does {what} apply?")
    return Question(QuestionType.NOUL, instructions=f"{question.instructions} Is {what} one of them?")


def render(question: Question) -> dict[str, Any]:
    """The JSON object of one question."""
    body: dict[str, Any] = {"type": question.type.value}
    if question.preset is not None:
        body["preset"] = question.preset
    if question.instructions is not None:
        body["instructions"] = question.instructions
    if question.type is QuestionType.SIMILARITY:
        body["candidates"] = [option.description for option in question.options]
    elif question.options:
        body["criteria"] = _criteria(question)
    if question.threshold is not None:
        body["threshold"] = question.threshold
    if question.head is not None:
        body["head"] = question.head.value
    return body


def _criteria(question: Question) -> dict[str, str | None] | list[str]:
    if question.type is QuestionType.SCORE:
        return [level.description if level.description is not None else level.key for level in question.options]
    return {option.key: option.description for option in question.options}
