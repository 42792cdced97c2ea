"""Typed questions that decision models answer, and their typed answers.

A leaf of the package: every layer may import it and it imports nothing of ours. Records are frozen and slotted because
they cross the hot path on every request. Nothing here ever holds request text.

Sources: the "Decision signal" document (question types, what each can be read as) and `System One` (answer shapes).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final


class QuestionType(StrEnum):
    """The kinds of question a text model can be asked: the five that decide something, and how alike texts are."""

    NOUL = "noul"
    CHOICE = "choice"
    SCORE = "score"
    SET = "set"
    SPAN = "span"
    SIMILARITY = "similarity"


DECIDING: Final = (
    QuestionType.NOUL,
    QuestionType.CHOICE,
    QuestionType.SCORE,
    QuestionType.SET,
    QuestionType.SPAN,
)
"""The kinds of question of decision models, which cards and operators name. Similarity is what an encoder gives."""


class SpanHead(StrEnum):
    """Which span detector answers, for models that have two."""

    ROUTER = "router"
    BROAD = "broad"


class UnknownReason(StrEnum):
    """Why a question has no answer. A closed set, because it becomes a metric label."""

    TIMEOUT = "timeout"
    UNAVAILABLE = "unavailable"
    OVERLOADED = "overloaded"
    INPUT_LIMIT = "input_limit"
    INVALID_ANSWER = "invalid_answer"
    NO_TEXT = "no_text"
    NOT_ASKED = "not_asked"


@dataclass(frozen=True, slots=True)
class Option:
    """One option of a choice, label of a set or span, level of a score, or side (`true`/`false`) of a noul.

    For a score, `key` is the level's index as text ("0", "1", ...) and `description` the level's text; so it is for a
    similarity and the texts that a state is compared with.
    """

    key: str
    description: str | None = None


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked about a state. Equal questions about one state share one answer.

    `instructions` may be absent only when `preset` names a question that the model defines.
    `threshold` (0..1) replaces the model's own threshold for `set` and `span`; `head` is for `span` only.
    """

    type: QuestionType
    instructions: str | None = None
    options: tuple[Option, ...] = ()
    preset: str | None = None
    threshold: float | None = None
    head: SpanHead | None = None


@dataclass(frozen=True, slots=True)
class NoulAnswer:
    """P(yes), 0..1."""

    probability: float


@dataclass(frozen=True, slots=True)
class ChoiceAnswer:
    """The chosen option with every option's probability (they sum to 1) and the model's published confidence, 0..1."""

    choice: str
    probabilities: Mapping[str, float]
    confidence: float


@dataclass(frozen=True, slots=True)
class ScoreAnswer:
    """The expected level (0 .. levels-1) with every level's probability."""

    score: float
    probabilities: tuple[float, ...]
    confidence: float


@dataclass(frozen=True, slots=True)
class SetAnswer:
    """Labels that the model selected, and every label's probability (independent, they need not sum to 1).

    `composed` marks a set put together from one noul per label because the model has no native set (`composed_noul`).
    """

    selected: frozenset[str]
    probabilities: Mapping[str, float]
    composed: bool = False


@dataclass(frozen=True, slots=True)
class Span:
    """Where a label occurs: code points of the state, `end` exclusive."""

    label: str
    start: int
    end: int
    probability: float


@dataclass(frozen=True, slots=True)
class SpanAnswer:
    """Spans that the model found, and the highest probability of any word for any label."""

    spans: tuple[Span, ...]
    word_probability: float


@dataclass(frozen=True, slots=True)
class SimilarityAnswer:
    """How alike a text is to each of the texts that it was compared with: cosines, -1 to 1, in their order."""

    similarities: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Unknown:
    """No answer: it came too late, failed or was refused. Never the same as "no"."""

    reason: UnknownReason


Answer = NoulAnswer | ChoiceAnswer | ScoreAnswer | SetAnswer | SpanAnswer | SimilarityAnswer | Unknown


@dataclass(frozen=True, slots=True)
class Predicate:
    """Bounds on a number, all of which must hold. NaN and infinities never meet a predicate."""

    gt: float | None = None
    gte: float | None = None
    lt: float | None = None
    lte: float | None = None

    def holds(self, value: float) -> bool:
        """Whether a finite `value` is inside every bound."""
        if not math.isfinite(value):
            return False
        return (
            (self.gt is None or value > self.gt)
            and (self.gte is None or value >= self.gte)
            and (self.lt is None or value < self.lt)
            and (self.lte is None or value <= self.lte)
        )


Levels = tuple[tuple[int, float], ...]
"""Thresholds by the length of an input: up to so much of it, shortest first. What is longer has the last."""


def level_at(levels: Levels, length: int) -> float | None:
    """The threshold for an input of a length; None where there are none."""
    return next((level for most, level in levels if length <= most), levels[-1][1]) if levels else None


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a decision model can be asked, as its card says.

    `question_types` are those it answers for free questions (the operator's own words); `presets` maps a preset name to
    the type, and `preset_labels` to the labels that its answer can hold. `preset_thresholds` are the calibrated ones.
    `preset_parts` names the parts of a structured state that a preset is about: `user`, `answer`, or the two texts that
    it compares. `similarity` says that it tells how alike texts are. Lengths are in tokens. `sha256` identifies the
    model's files where they are at hand.

    `preset_levels` are thresholds by the input's length: up to so many tokens, shortest first. `weak_types` are those
    of `question_types`, and `weak_presets` those presets, that the model's makers call weak: nothing should rest on
    them alone.
    """

    question_types: frozenset[QuestionType]
    presets: Mapping[str, QuestionType] = field(default_factory=dict)
    preset_labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    max_input_tokens: int | None = None
    validated_input_tokens: int | None = None
    max_options: int = 255
    max_labels: int = 255
    preset_thresholds: Mapping[str, float] = field(default_factory=dict)
    preset_parts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    modalities: tuple[str, ...] = ("text",)
    similarity: bool = False
    licence: str | None = None
    sha256: str | None = None
    preset_levels: Mapping[str, Levels] = field(default_factory=dict)
    weak_types: frozenset[QuestionType] = frozenset()
    weak_presets: frozenset[str] = frozenset()

    @property
    def readable_tokens(self) -> int | None:
        """The length to size views by: validated where the card says so, else the maximum."""
        return self.validated_input_tokens or self.max_input_tokens
