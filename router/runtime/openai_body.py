"""The OpenAI form of `POST /v1/decisions`: `input` with a list of questions, answered in the order of the list.

An input of several messages is read as one text, its parts apart by a blank line. What a question's `name` is does not
reach the model, and names need not differ. A question that the model cannot answer is a `refusal`.

Source: protocol, "OpenAI Decisions API".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from router.questions import ChoiceAnswer, NoulAnswer, Option, Question, QuestionType, ScoreAnswer

from .asking import Answered, Asked, Failure
from .body import (
    BadBody,
    Block,
    Body,
    Loc,
    Posed,
    Problem,
    check_size,
    ignored_fields,
    read_model,
    read_object,
    read_options,
    refuse_media,
)
from .model import Outcome
from .openai_text import input_text, parts_text

MOST_QUESTIONS = 400
_TOP = frozenset(
    {"model", "input", "questions", "options", "prompt_cache_key", "prompt_cache_options", "safety_identifier"}
)
_COMMON = frozenset({"type", "instructions", "name"})


def is_openai_form(data: Any) -> bool:
    """Whether a body of `/v1/decisions` is OpenAI's: the list of questions and `input` tell it from System One."""
    return (
        isinstance(data, dict)
        and "state" not in data
        and "states" not in data
        and ("input" in data or isinstance(data.get("questions"), list))
    )


@dataclass(frozen=True, slots=True)
class Form:
    """How one question's answer is written: the client's `name`, and its values or labels in order."""

    name: str | None
    values: tuple[str | bool, ...] = ()


@dataclass(frozen=True, slots=True)
class Decisions:
    """A request that has been read; question ids of its body are positions."""

    body: Body
    forms: tuple[Form, ...]
    names_failures: bool = False

    def content(self, model: str, outcomes: Sequence[Outcome]) -> dict[str, Any]:
        """`answers` in the order of the questions, and the tokens with their details."""
        (outcome,) = outcomes
        results = (outcome.results[str(index)] for index in range(len(self.forms)))
        answers = [
            {"name": form.name, **_answer(form, result)} for form, result in zip(self.forms, results, strict=True)
        ]
        tokens = outcome.input_tokens
        counted = {
            "input_tokens": tokens,
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens": 0,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": tokens,
        }
        return {"model": model, "answers": answers, "usage": counted}

    def place(self, block: int, question: str) -> Loc:
        """By position in the list."""
        return ("body", "questions", int(question))


def _answer(form: Form, result: Answered | Failure) -> dict[str, Any]:
    answer = None if isinstance(result, Failure) else result.answer
    if isinstance(answer, NoulAnswer):
        return {"type": "predicate", "probability": answer.probability}
    if isinstance(answer, ChoiceAnswer):
        by_key = {_key(value): value for value in form.values}
        return {
            "type": "choice",
            "choice": by_key[answer.choice],
            "confidence": answer.confidence,
            "probabilities": [{"value": by_key[key], "probability": p} for key, p in answer.probabilities.items()],
        }
    if isinstance(answer, ScoreAnswer):
        levels = zip(form.values, answer.probabilities, strict=True)
        return {
            "type": "score",
            "score": answer.score,
            "confidence": answer.confidence,
            "probabilities": [{"value": i, "label": label, "probability": p} for i, (label, p) in enumerate(levels)],
        }
    return {"type": "refusal"}


def read_decisions(data: Any, max_questions: int) -> Decisions:
    """A request from parsed JSON. Raises BadBody with every problem found, or Unsupported for images."""
    problems: list[Problem] = []
    fields = read_object(data)
    model = read_model(fields, problems)
    text, images = input_text(fields, problems)
    posed, forms = _questions(fields, problems)
    deadline, meta = read_options(fields, problems)
    body = Body(model, Block(text, posed), {}, deadline, meta, ignored_fields(fields, _TOP))
    check_size(body, max_questions, problems)
    if problems:
        raise BadBody(problems)
    refuse_media(fields | {"images": True} if images else fields)
    return Decisions(body, tuple(forms))


def _questions(fields: dict[str, Any], problems: list[Problem]) -> tuple[dict[str, Posed], list[Form]]:
    raw = fields.get("questions")
    if not isinstance(raw, list) or not 1 <= len(raw) <= MOST_QUESTIONS:
        fault = "list_type" if "questions" in fields else "missing"
        problems.append(Problem(("body", "questions"), f"must be a list of 1 to {MOST_QUESTIONS} questions", fault))
        return {}, []
    posed: dict[str, Posed] = {}
    forms: list[Form] = []
    for index, item in enumerate(raw):
        loc: Loc = ("body", "questions", index)
        kind = item.get("type") if isinstance(item, dict) else None
        if not isinstance(kind, str) or kind not in _READERS:
            problems.append(Problem((*loc, "type"), f"must be one of {', '.join(_READERS)}", "literal_error"))
            continue
        name = item.get("name")
        if name is not None and not isinstance(name, str):
            problems.append(Problem((*loc, "name"), "must be text", "string_type"))
            continue
        instructions = parts_text(item.get("instructions"), (*loc, "instructions"), problems)
        question, values = _READERS[kind](item, instructions, loc, problems)
        posed[str(index)] = Posed(Asked(question))
        forms.append(Form(name, values))
    return posed, forms


Read = tuple[Question, tuple[str | bool, ...]]


def _predicate(item: dict[str, Any], instructions: str, loc: Loc, problems: list[Problem]) -> Read:
    _known(item, frozenset(), loc, problems)
    return Question(QuestionType.NOUL, instructions), ()


def _choice(item: dict[str, Any], instructions: str, loc: Loc, problems: list[Problem]) -> Read:
    _known(item, frozenset({"choices"}), loc, problems)
    listed = _objects(item, "choices", (2, 255), ("value", "description"), loc, problems)
    values: list[str | bool] = []
    options: list[Option] = []
    for index, choice in listed:
        value, place = choice.get("value"), (*loc, "choices", index)
        if not isinstance(value, str | bool) or (isinstance(value, str) and not value.strip()):
            problems.append(Problem((*place, "value"), "must be text, true or false", "string_type"))
        elif _key(value) in {option.key for option in options}:
            problems.append(Problem((*place, "value"), "reads like an earlier value", "value_error"))
        else:
            values.append(value)
            options.append(Option(_key(value), _described(choice, place, problems)))
    return Question(QuestionType.CHOICE, instructions, tuple(options)), tuple(values)


def _score(item: dict[str, Any], instructions: str, loc: Loc, problems: list[Problem]) -> Read:
    _known(item, frozenset({"levels"}), loc, problems)
    listed = _objects(item, "levels", (2, 10), ("label", "description"), loc, problems)
    labels: list[str | bool] = []
    options: list[Option] = []
    for index, level in listed:
        label, place = level.get("label"), (*loc, "levels", index)
        if not isinstance(label, str) or not label.strip():
            problems.append(Problem((*place, "label"), "must be text", "string_type"))
            continue
        described = _described(level, place, problems)
        labels.append(label)
        options.append(Option(str(index), f"{label}: {described}" if described else label))
    return Question(QuestionType.SCORE, instructions, tuple(options)), tuple(labels)


_READERS: dict[str, Callable[[dict[str, Any], str, Loc, list[Problem]], Read]] = {
    "predicate": _predicate,
    "choice": _choice,
    "score": _score,
}


def _key(value: str | bool) -> str:
    return value if isinstance(value, str) else str(value).lower()


def _known(item: dict[str, Any], own: frozenset[str], loc: Loc, problems: list[Problem]) -> None:
    for key in item.keys() - _COMMON - own:
        problems.append(Problem((*loc, key[:64]), "Extra inputs are not permitted", "extra_forbidden"))


def _objects(
    item: dict[str, Any], name: str, counts: tuple[int, int], fields: tuple[str, str], loc: Loc, problems: list[Problem]
) -> list[tuple[int, dict[str, Any]]]:
    """Entries of a list that are objects of these two fields, by their position."""
    raw = item.get(name)
    least, most = counts
    if not isinstance(raw, list) or not least <= len(raw) <= most:
        kind = "length" if isinstance(raw, list) else "list_type"
        problems.append(Problem((*loc, name), f"must be a list of {least} to {most}", kind))
        return []
    for index, entry in enumerate(raw):
        if not isinstance(entry, dict) or entry.keys() - set(fields):
            message = f"must be an object with {fields[0]} and, if you like, {fields[1]}"
            problems.append(Problem((*loc, name, index), message, "object_type"))
    return [(index, entry) for index, entry in enumerate(raw) if isinstance(entry, dict)]


def _described(entry: dict[str, Any], loc: Loc, problems: list[Problem]) -> str | None:
    value = entry.get("description")
    if value is None or isinstance(value, str):
        return value if value and value.strip() else None
    problems.append(Problem((*loc, "description"), "must be text", "string_type"))
    return None
