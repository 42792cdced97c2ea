"""What every dialect of the endpoints comes to: a body to ask, and how its answers are written back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from .body import Body, Loc, read_body
from .model import Outcome
from .render import render_block


class Inquiry(Protocol):
    """A request that has been read."""

    @property
    def body(self) -> Body:
        """What the model is asked."""
        ...

    @property
    def names_failures(self) -> bool:
        """Whether an answer of this dialect can say why one question has none."""
        ...

    def content(self, model: str, outcomes: Sequence[Outcome]) -> dict[str, Any]:
        """The response for these outcomes, one for each block of the body."""
        ...

    def place(self, block: int, question: str) -> Loc:
        """Where a question stands in the body that the client sent."""
        ...


@dataclass(frozen=True, slots=True)
class SystemOne:
    """The System One dialect: one state with its questions, and named states beside it."""

    body: Body
    names_failures: bool = True

    def content(self, model: str, outcomes: Sequence[Outcome]) -> dict[str, Any]:
        """`answers` by id, and under `states` the same for every named state."""
        left = iter(outcomes)
        content: dict[str, Any] = {"model": model, "answers": {}, "usage": usage(0)}
        if self.body.main is not None:
            outcome = next(left)
            content |= render_block(self.body.main.questions, outcome.results, sources=self.body.return_meta)
            content["usage"] = usage(outcome.input_tokens)
        if self.body.states:
            content["states"] = {
                name: {
                    "model": model,
                    **render_block(block.questions, outcome.results, sources=self.body.return_meta),
                    "usage": usage(outcome.input_tokens),
                }
                for (name, block), outcome in zip(self.body.states.items(), left, strict=True)
            }
        return content

    def place(self, block: int, question: str) -> Loc:
        """Under `questions`, or under a named state's."""
        if self.body.main is not None and block == 0:
            return ("body", "questions", question)
        name = list(self.body.states)[block - (self.body.main is not None)]
        return ("body", "states", name, "questions", question)


def read_systemone(data: Any, max_questions: int) -> SystemOne:
    """A System One request. Raises BadBody or Unsupported."""
    return SystemOne(read_body(data, max_questions))


def usage(tokens: int) -> dict[str, int]:
    """Tokens as System One counts them."""
    return {"input_tokens": tokens, "output_tokens": 0}
