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
class Level:
    """What a preset was calibrated to for inputs of up to `tokens` tokens. No `threshold`: the preset's own holds."""

    tokens: int
    temperature: float
    threshold: float | None


@dataclass(frozen=True, slots=True)
class Preset:
    """A question that the model defines: where its logits are and what they are called.

    `raw` are the head's own labels in head order, `mapped` the label of the answer that each becomes, None when it is
    dropped. Raw labels of one mapped label add up. `labels` are the distinct labels an answer can hold, empty for
    `noul`, whose raw labels map to `true` and `false`. `reads` names the part of a structured state it is about.

    For `span`, `classes` says which of the raw labels each class of the head is (-1: outside) and `begins` which
    classes begin a new span; `whole_words` widens what was found to whole words. `slice` is None for `span`.

    `rules` names recognisers that answer beside the model (`personal`): their labels are among `labels`.

    `levels` are numbers by the input's length, shortest first; what is longer than the last has the last's (ruling 30:
    the length alone decides). `weak`: the model's makers say that nothing should depend on the answer alone.
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
    classes: tuple[int, ...] = ()
    begins: tuple[bool, ...] = ()
    whole_words: bool = False
    rules: str | None = None
    levels: tuple[Level, ...] = ()
    weak: bool = False

    def _level(self, tokens: int) -> Level | None:
        last = self.levels[-1] if self.levels else None
        return next((level for level in self.levels if tokens <= level.tokens), last)

    def scale(self, tokens: int) -> float:
        """The temperature for an input of so many tokens."""
        level = self._level(tokens)
        return self.temperature if level is None else level.temperature

    def threshold_at(self, tokens: int) -> float | None:
        """The calibrated threshold for an input of so many tokens; None where the card gives none."""
        level = self._level(tokens)
        return self.threshold if level is None or level.threshold is None else level.threshold


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
    weak: frozenset[QuestionType] = frozenset()


@dataclass(frozen=True, slots=True)
class MarkerRow:
    """How a question is written before the state, with a marker before each option. Budgets are in tokens.

    `question` is a template over {type} and {instructions}; `noul` are the texts of no and yes where a question has
    none of its own; `kinds` are the numbers of the question types that the graph takes.
    """

    mask: int
    head_tokens: int
    option_tokens: int
    question: str
    noul: tuple[str, str]
    kinds: Mapping[QuestionType, int]


@dataclass(frozen=True, slots=True)
class Gliclass:
    """Ids of the tokens that stand before each label and after the last, and whether labels come before the text."""

    label: int
    separator: int
    prompt_first: bool
    label_tokens: int


@dataclass(frozen=True, slots=True)
class Gliner:
    """Ids of the tokens before each label and after the last; `mode` is `span` or `token`; lengths are in words."""

    entity: int
    separator: int
    mode: str
    max_width: int
    max_words: int
    label_tokens: int


@dataclass(frozen=True, slots=True)
class Encoder:
    """How a text's vector is made of the graph's output.

    `pooling` is `mean` (of the tokens' states), `cls` (the first token's), or `none` (the graph gives one vector a
    text).
    """

    pooling: str


Settings = MarkerRow | Gliclass | Gliner | Encoder
"""What only one kind of adapter needs to know."""


@dataclass(frozen=True, slots=True)
class Card:
    """A whole card. `released` is a date; `golden` cases are kept as written, to be compared with answers at load.

    `numerics` says whether an answer depends on what it was batched with (`batch_independent`, `batch_dependent`), or
    that nobody has measured it (`unmeasured`).
    """

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
    temperature_by_options: Mapping[str, float]
    thresholds: Mapping[str, float]
    option_template: str
    precision: str
    numerics: str
    golden: tuple[Mapping[str, Any], ...]
    settings: Settings | None = None

    def scale(self, kind: QuestionType, options: int) -> float:
        """The temperature of a free question: by its number of options where the card has that, else by its type."""
        named = self.temperature_by_options.get(f"{kind.value}:{_bucket(options)}")
        return named if named is not None else self.temperature.get(kind, 1.0)

    def threshold(self, kind: QuestionType, preset: Preset | None, default: float = 0.5, tokens: int = 0) -> float:
        """What `set` and `span` select by in a text of so many tokens when the question does not say."""
        own = preset.threshold_at(tokens) if preset is not None else None
        if own is not None:
            return own
        return self.thresholds.get(f"{kind.value}:*", default)

    def _own(self, preset: Preset) -> float | None:
        """The threshold that the card gives a preset, by its name or by its type."""
        return self.thresholds.get(f"{preset.type.value}:*") if preset.threshold is None else preset.threshold

    @property
    def embeds(self) -> bool:
        """Whether the model gives a vector for any text, so that it can tell how alike texts are."""
        return self.custom is not None or isinstance(self.settings, Encoder)

    def capabilities(self, sha256: str | None = None) -> Capabilities:
        """What the model can be asked; `sha256` is the artifact's identity where it is known."""
        presets = self.presets.values()
        return Capabilities(
            question_types=self.question_types,
            presets={preset.name: preset.type for preset in presets},
            preset_labels={preset.name: preset.labels for preset in presets if preset.labels},
            max_input_tokens=self.limits.max_input_tokens,
            validated_input_tokens=self.limits.validated_input_tokens,
            max_options=self.limits.max_options,
            max_labels=self.limits.max_labels,
            preset_thresholds={preset.name: level for preset in presets if (level := self._own(preset)) is not None},
            preset_parts={preset.name: preset.pair or (preset.reads,) for preset in presets},
            modalities=self.modalities,
            similarity=self.embeds,
            licence=self.licence,
            sha256=sha256,
            preset_levels={
                preset.name: tuple((level.tokens, level.threshold) for level in preset.levels if level.threshold)
                for preset in presets
                if any(level.threshold for level in preset.levels)
            },
            weak_presets=frozenset(preset.name for preset in presets if preset.weak),
            weak_types=self.custom.weak if self.custom is not None else frozenset(),
        )


def _bucket(options: int) -> str:
    return "2" if options <= 2 else "3-5" if options <= 5 else "6-10" if options <= 10 else "11+"
