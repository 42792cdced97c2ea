"""Whether a model's answers depend on what they are batched with, measured on the model itself.

Activations that are quantised by the range of a whole batch make an answer depend on its neighbours; then neither a
cache nor a calibration can be trusted (DESIGN "The decision artifact", rule 8).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from router.questions import (
    Answer,
    ChoiceAnswer,
    NoulAnswer,
    Option,
    Question,
    QuestionType,
    ScoreAnswer,
    SetAnswer,
    SimilarityAnswer,
    SpanAnswer,
)

from .asking import Adapter, Answered, Asked, State
from .card import Card

TOLERANCE = 0.001
"""Probabilities that differ by less are one answer: sums in another order differ by about a millionth."""

_SENTENCE = "Please explain in plain words why the invoice of Marta Nowak from Berlin was charged twice in March. "


@dataclass(frozen=True, slots=True)
class Independence:
    """The largest difference of a probability between rows alone and in a batch, over so many answers."""

    difference: float
    answers: int

    @property
    def numerics(self) -> str:
        """The word for it in a card."""
        return "batch_independent" if self.difference <= TOLERANCE else "batch_dependent"


def measure(adapter: Adapter) -> Independence:
    """Ask about texts of several lengths, each row alone and all rows in one batch."""
    asked = sample_questions(adapter.card)
    plans = [adapter.plan(state, asked) for state in _states(adapter.card)]
    rows = [row for plan in plans for row in plan.rows]
    together = adapter.run(rows)
    difference, count, first = 0.0, 0, 0
    for plan in plans:
        last = first + len(plan.rows)
        alone = adapter.answer(plan, [adapter.run([row])[0] for row in plan.rows])
        batched = adapter.answer(plan, together[first:last])
        first = last
        for one, other in zip(alone, batched, strict=True):
            if isinstance(one, Answered) and isinstance(other, Answered):
                difference = max(difference, _difference(_numbers(one.answer), _numbers(other.answer)))
                count += 1
            elif type(one) is not type(other):
                difference, count = 1.0, count + 1
    return Independence(difference, count)


def sample_questions(card: Card) -> list[Asked]:
    """One question for each preset of one text, one of each free type, and a comparison where that is all there is."""
    presets = [Question(preset.type, preset=preset.name) for preset in card.presets.values() if preset.pair is None]
    options = (Option("billing", "payments and invoices"), Option("technical", "crashes and errors"))
    levels = (Option("0", "calm"), Option("1", "annoyed"), Option("2", "furious"))
    free = {
        QuestionType.NOUL: Question(QuestionType.NOUL, "Is this about an invoice?"),
        QuestionType.CHOICE: Question(QuestionType.CHOICE, "Which team should answer?", options),
        QuestionType.SCORE: Question(QuestionType.SCORE, "How upset is the customer?", levels),
        QuestionType.SET: Question(QuestionType.SET, "Which topics come up?", options),
        QuestionType.SPAN: Question(QuestionType.SPAN, "Where is a name?", (Option("person"), Option("city"))),
    }
    found = [*presets, *(free[kind] for kind in free if kind in card.question_types)]
    if not found and card.embeds:
        texts = (Option("0", "an invoice that is wrong"), Option("1", "a holiday in Italy"))
        found = [Question(QuestionType.SIMILARITY, options=texts)]
    return [Asked(question) for question in found]


def _states(card: Card) -> Iterator[State]:
    """Texts of a few words up to about one row."""
    for words in (2, 12, card.limits.graph_tokens // 8, card.limits.graph_tokens // 2):
        yield " ".join((_SENTENCE * (words // 12 + 1)).split()[: max(2, min(words, 1024))])


def _difference(one: Sequence[float], other: Sequence[float]) -> float:
    """The largest; spans of which one side has more are as different as can be."""
    if len(one) != len(other):
        return 1.0
    return max((abs(a - b) for a, b in zip(one, other, strict=True)), default=0.0)


def _numbers(answer: Answer) -> list[float]:
    if isinstance(answer, NoulAnswer):
        return [answer.probability]
    if isinstance(answer, ChoiceAnswer | SetAnswer):
        return list(answer.probabilities.values())
    if isinstance(answer, ScoreAnswer):
        return list(answer.probabilities)
    if isinstance(answer, SpanAnswer):
        return [answer.word_probability, *(span.probability for span in answer.spans)]
    if isinstance(answer, SimilarityAnswer):
        return list(answer.similarities)
    return []
