"""What adapters share that write a question around the state, one row a question and window.

A state is tokenised once for all questions that read it; each question's windows are as long as its own words leave.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from router.questions import Question

from .artifact import Artifact
from .asking import Answered, Asked, Failure, FailureCode, State
from .card import Card
from .engine import Engine
from .posing import LATE, NOT_FINITE, CallTexts, StateTexts, reads_once, refusal, text_for, unread
from .rows import Ids, Raw, Row, RowPlan
from .scoring import Doubles
from .tokens import Tokenizer, windows

_CACHED_PROMPTS = 2048
_LONGEST_CACHED = 4096
_LEAST_ROOM = 4
NO_ROOM = Failure(FailureCode.INVALID_QUESTION, "the question leaves no room for a state in a row of this model")


@dataclass(frozen=True, slots=True)
class Prompt:
    """A question as tokens `before` and `after` the state, with the further inputs and sizes of its rows."""

    before: Ids
    after: Ids
    extra: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict)
    sizes: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Item:
    """One question of a plan: the rows that hold its windows, or why it cannot be answered."""

    asked: Asked
    rows: range
    complete: bool
    failure: Failure | None = None


class Prompted(ABC):
    """An adapter that needs only say how a question is written and how its logits are read."""

    OUTPUT: ClassVar = "logits"

    def __init__(self, artifact: Artifact, engine: Engine, *, shared_context: bool = False) -> None:
        """Load the tokenizer. `shared_context` keeps the tokens of states across calls. Raises ArtifactError."""
        self.card: Card = artifact.card
        self.tokenizer = Tokenizer(artifact)
        self._engine = engine
        self._states = StateTexts(self.tokenizer, kept=shared_context)
        self._cached = lru_cache(_CACHED_PROMPTS)(self.prompt)

    @abstractmethod
    def prompt(self, question: Question) -> Prompt | Failure:
        """The question as tokens; the same for every state."""

    @abstractmethod
    def read(self, question: Question, logits: Doubles) -> Answered:
        """The answer from logits [windows, options]; `complete` is set by the caller."""

    def plan(self, state: State, asked: Sequence[Asked]) -> RowPlan:
        """One row a question and window."""
        texts = self._states.call()
        rows: list[Row] = []
        items = [self._item(state, one, texts, rows) for one in asked]
        return RowPlan(rows, sum(row.tokens for row in rows), items)

    def run(self, rows: Sequence[Row]) -> list[Raw]:
        """Compute one batch."""
        return self._engine.run(rows)

    def answer(self, plan: RowPlan, raw: Sequence[Raw]) -> list[Answered | Failure]:
        """Answers in the order of the questions. An output that is not finite fails its question, not the request."""
        items: list[Item] = plan.private
        return [self._answered(item, raw) for item in items]

    def _item(self, state: State, asked: Asked, texts: CallTexts, rows: list[Row]) -> Item:
        def failed(failure: Failure) -> Item:
            return Item(asked, range(0), False, failure)

        if failure := refusal(self.card, asked.question, None):
            return failed(failure)
        text = text_for(state, asked, None)
        if isinstance(text, Failure):
            return failed(text)
        written = (self._cached if _length(asked.question) <= _LONGEST_CACHED else self.prompt)(asked.question)
        if isinstance(written, Failure):
            return failed(written)
        reading, limits = self.card.reading, self.card.limits
        room = limits.graph_tokens - len(written.before) - len(written.after)
        if room < _LEAST_ROOM:
            return failed(NO_ROOM)
        encoded = texts.encode(text, limits.max_input_tokens if reading.long == "window" else limits.graph_tokens)
        once = reads_once(self.card, asked)
        cuts = windows(len(encoded), room, reading.window_tokens, min(reading.overlap, room - 1))
        if once:
            cuts = [(0, min(room, len(encoded)))]
        complete = encoded.complete and cuts[-1][1] == len(encoded)
        if failure := unread(self.card, asked, complete):
            return failed(failure)
        first = len(rows)
        for start, end in cuts:
            ids = np.concatenate([written.before, encoded.ids[start:end], written.after])
            rows.append(Row(ids, (self.OUTPUT,), written.extra, written.sizes))
        return Item(asked, range(first, len(rows)), complete)

    def _answered(self, item: Item, raw: Sequence[Raw]) -> Answered | Failure:
        if item.failure is not None:
            return item.failure
        if not all(raw[place] for place in item.rows):
            return LATE
        logits = np.stack([raw[place][self.OUTPUT] for place in item.rows]).astype(np.float64)
        if not np.isfinite(logits).all():
            return NOT_FINITE
        found = self.read(item.asked.question, logits)
        return Answered(found.answer, item.complete, found.threshold, found.text)


def _length(question: Question) -> int:
    options = sum(len(option.key) + len(option.description or "") for option in question.options)
    return len(question.instructions or "") + options
