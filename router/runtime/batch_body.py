"""`POST /v1/systemone/batches`: the same questions about many states, answered in the order of the states.

Source: protocol, "Batches".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .body import (
    BadBody,
    Block,
    Body,
    Loc,
    Posed,
    Problem,
    check_size,
    ignored_fields,
    named_questions,
    read_model,
    read_object,
    read_options,
    read_state,
    refuse_media,
    unknown_fields,
)
from .inquiry import usage
from .model import Outcome
from .render import render_block

MOST_ANSWERS = 1024
"""States times questions."""
MOST_ID = 128
_TOP = frozenset({"model", "states", "questions", "options"})
_STATE = frozenset({"id", "state"})


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch that has been read; the blocks of its body are its states by id."""

    body: Body
    names_failures: bool = True

    def content(self, model: str, outcomes: Sequence[Outcome]) -> dict[str, Any]:
        """`results` in the order of the states, with the tokens of each and of all."""
        results = [
            {
                "id": name,
                **render_block(block.questions, outcome.results, sources=self.body.return_meta),
                "usage": usage(outcome.input_tokens),
            }
            for (name, block), outcome in zip(self.body.states.items(), outcomes, strict=True)
        ]
        total = sum(outcome.input_tokens for outcome in outcomes)
        return {"model": model, "count": len(results), "results": results, "usage": usage(total)}

    def place(self, block: int, question: str) -> Loc:
        """A question stands there once for all states."""
        return ("body", "questions", question)


def read_batch(data: Any, max_questions: int) -> Batch:
    """A batch from parsed JSON. Raises BadBody with every problem found, or Unsupported for images and the like."""
    problems: list[Problem] = []
    fields = read_object(data)
    model = read_model(fields, problems)
    questions: dict[str, Posed] = {}
    if "questions" in fields:
        questions = named_questions(fields["questions"], ("body", "questions"), problems)
    else:
        problems.append(Problem(("body", "questions"), "Field required", "missing"))
    states = _states(fields, questions, problems)
    deadline, meta = read_options(fields, problems)
    body = Body(model, None, states, deadline, meta, ignored_fields(fields, _TOP))
    check_size(body, min(max_questions, MOST_ANSWERS), problems)
    if problems:
        raise BadBody(problems)
    refuse_media(fields)
    return Batch(body)


def _states(fields: dict[str, Any], questions: dict[str, Posed], problems: list[Problem]) -> dict[str, Block]:
    raw = fields.get("states")
    if not isinstance(raw, list) or not 1 <= len(raw) <= MOST_ANSWERS:
        message = f"must be a list of 1 to {MOST_ANSWERS} objects with id and state"
        problems.append(Problem(("body", "states"), message, "list_type" if "states" in fields else "missing"))
        return {}
    states: dict[str, Block] = {}
    for index, item in enumerate(raw):
        loc = ("body", "states", index)
        if not isinstance(item, dict):
            problems.append(Problem(loc, "must be an object with id and state", "object_type"))
            continue
        unknown_fields(item, _STATE, loc, problems)
        name = item.get("id")
        if not isinstance(name, str) or not name.strip() or len(name) > MOST_ID:
            problems.append(Problem((*loc, "id"), f"must be text of 1 to {MOST_ID} characters", "string_type"))
            continue
        if name in states:
            problems.append(Problem((*loc, "id"), "is the id of an earlier state", "value_error"))
        states[name] = Block(read_state(item, loc, problems), questions)
    return states
