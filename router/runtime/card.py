"""The card of a decision artifact as frozen records. `card_reader` makes them from `decision.json`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from router.questions import Capabilities, QuestionType


@dataclass(frozen=True, slots=True)
class Limits:
    """What fits. Lengths are in tokens; `graph_tokens` counts the special tokens that frame a row."""

    graph_tokens: int
    max_input_tokens: int
    validated_input_tokens: int | None
    max_options: int
    max_labels: int
    max_questions: int


@dataclass(frozen=True, slots=True)
class Reading:
    """How a state longer than the graph is read.

    `long` is `window` (windows of `window_tokens` that share `overlap` tokens), `truncate` (the beginning only) or
    `reject`. `state_once` says that one pass over a state answers every question about it.
    """

    state_once: bool
    long: str
    window_tokens: int
    overlap: int
    pool: Mapping[QuestionType, str]


@dataclass(frozen=True, slots=True)
class Tokens:
    """Ids that frame a row, and texts that user text must never spell. `cls` and `sep` None: rows are not framed so."""

    pad: int
    cls: int | None
    sep: int | None
    forbidden: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Tensor:
    """An input or output of a graph: a number in `shape` is fixed, a string is free.

    `type` may name several that will do (`tensor(float)|tensor(float16)`). An `optional` input need not be there.
    """

    name: str
    type: str
    shape: tuple[int | str, ...]
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Graph:
    """One ONNX file and the tensors it must have."""

    name: str
    file: str
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]


@dataclass(frozen=True, slots=True)
class Preset:
    """A question that the model defines: where its logits are and what they are called.

    `raw` are the head's own labels in head order (for `span` without the outside class, which is class 0), `mapped` the
    label of the answer that each becomes, None when it is dropped. Raw labels of one mapped label add up. `labels` are
    the distinct labels an answer can hold, empty for `noul`. `reads` names the part of a structured state it is about.
    """

    name: str
    type: QuestionType
    head: str
    slice: tuple[int, int] | None
    raw: tuple[str, ...]
    mapped: tuple[str | None, ...]
    labels: tuple[str, ...]
    temperature: float
    threshold: float | None
    reads: str
    pair: tuple[str, str] | None


@dataclass(frozen=True, slots=True)
class Affine:
    """P(yes) = sigmoid(a * (similarity - b)); `threshold` is what `set` and `span` select by.

    `contrast` is how much a described `false` side of a noul counts against the other side.
    """

    a: float
    b: float
    threshold: float
    contrast: float


@dataclass(frozen=True, slots=True)
class CustomQuestions:
    """How questions in the operator's own words are answered from embeddings. None: that type is not answered.

    `choice` and `score` are softmax temperatures over similarities; `span_states` names the per-token output.
    """

    embedding: str
    choice: float | None
    score: float | None
    noul: Affine | None
    set: Affine | None
    span: Affine | None
    span_states: str | None


@dataclass(frozen=True, slots=True)
class Card:
    """A whole card. `released` is a date; `golden` cases are kept as written, to be compared with answers at load."""

    name: str
    version: str
    released: str
    licence: str
    quality: str
    adapter: str
    question_types: frozenset[QuestionType]
    modalities: tuple[str, ...]
    limits: Limits
    reading: Reading
    tokens: Tokens
    graphs: Mapping[str, Graph]
    presets: Mapping[str, Preset]
    custom: CustomQuestions | None
    temperature: Mapping[QuestionType, float]
    thresholds: Mapping[str, float]
    option_template: str
    precision: str
    golden: tuple[Mapping[str, Any], ...]

    def capabilities(self) -> Capabilities:
        """What the model can be asked. Pair presets are left out: this form of the runtime does not ask them."""
        asked = {name: preset for name, preset in self.presets.items() if preset.pair is None}
        return Capabilities(
            question_types=self.question_types,
            presets={name: preset.type for name, preset in asked.items()},
            preset_labels={name: preset.labels for name, preset in asked.items() if preset.labels},
            max_input_tokens=self.limits.max_input_tokens,
            validated_input_tokens=self.limits.validated_input_tokens,
            max_options=self.limits.max_options,
            max_labels=self.limits.max_labels,
        )
