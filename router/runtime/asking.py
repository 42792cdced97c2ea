"""What one request asks of an adapter, and what an adapter answers: the contract that every adapter keeps.

An adapter turns a state and questions into rows (`plan`), has rows computed (`run`), and reads answers from the outputs
(`answer`). `plan` and `answer` may run in any thread; `run` only in the scheduler's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

from router.questions import Answer, Question

from .card import Card
from .rows import Raw, Row, RowPlan

State = str | dict[str, Any] | list[Any]


class FailureCode(StrEnum):
    """Why one question of a request has no answer (System One, failed question inside a 200)."""

    INVALID_QUESTION = "invalid_question"
    INVALID_INPUT = "invalid_input"
    MAX_LENGTH_EXCEEDED = "max_length_exceeded"
    INVALID_MODEL_OUTPUT = "invalid_model_output"
    DEADLINE_EXCEEDED = "deadline_exceeded"
    UNAVAILABLE = "unavailable"


@dataclass(frozen=True, slots=True)
class Asked:
    """A question with how its input is to be read.

    `over` names fields of a structured state (empty: the part the question is about by its nature). `full` refuses to
    answer from a cut text; `truncate` reads only what fits the graph once.
    """

    question: Question
    over: tuple[str, ...] = ()
    full: bool = False
    truncate: bool = False


@dataclass(frozen=True, slots=True)
class Failure:
    """One question could not be answered. `message` holds no request text."""

    code: FailureCode
    message: str


@dataclass(frozen=True, slots=True)
class Answered:
    """An answer with what was applied: `threshold` for set and span, `text` that span offsets count in.

    `complete` says that every token of the text was read. `sources` says of each span which rule found it, or that the
    model did, where a model has rules beside it.
    """

    answer: Answer
    complete: bool
    threshold: float | None = None
    text: str | None = None
    sources: tuple[str, ...] | None = None


class Adapter(Protocol):
    """How one kind of artifact is asked."""

    card: Card

    def plan(self, state: State, asked: Sequence[Asked]) -> RowPlan:
        """Rows that answer these questions about this state; never raises for what a client wrote."""
        ...

    def run(self, rows: Sequence[Row]) -> list[Raw]:
        """Compute one batch."""
        ...

    def answer(self, plan: RowPlan, raw: Sequence[Raw]) -> list[Answered | Failure]:
        """One answer for each question of the plan, in order, from the outputs of its rows.

        A row that the deadline has kept from being computed has no outputs: the questions that need it fail, no other.
        """
        ...
