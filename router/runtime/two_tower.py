"""Adapters `two_tower` and `classifier`: one pass over a state answers every preset and every free question about it.

The encoder gives a unit vector per text (`custom_questions.embedding`), logits of the preset heads, and optionally
logits or states per token. Free questions compare the state's vector with the vectors of option texts, which are
computed once and kept; a classifier has heads only. A state longer than the graph is read in windows and pooled per
type, as the card says.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from router.questions import Answer, NoulAnswer, Question, QuestionType, SetAnswer, SpanAnswer

from .artifact import Artifact
from .asking import Answered, Asked, Failure, FailureCode, State
from .card import Affine, Card, CustomQuestions, Preset
from .engine import Engine
from .heads import head_spans, preset_answer
from .pairs import Pairs, pair_texts
from .personal.reading import Personal, overruled, read_personal, together
from .posing import LATE, NOT_FINITE, StateTexts, reads_once, refusal, text_for, unread
from .rows import Floats, Raw, Row, RowPlan, finite
from .scoring import Doubles, choice_answer, score_answer, sigmoid, similarity_answer, softmax
from .spans import WindowScores, decode, word_probability
from .texts import TextCache, noul_near, question_texts
from .tokens import Encoded, Tokenizer, windows

_NO_TEXTS: Floats = np.empty((0, 0), np.float32)


Encode = Callable[[str, int], Encoded]


@dataclass(slots=True)
class View:
    """One text being read: its tokens, the windows they are cut into, and the rows from `row` on that hold them.

    `personal` is what rules say of it, where a question wants that.
    """

    text: str
    encoded: Encoded
    cuts: list[tuple[int, int]]
    complete: bool
    outputs: set[str]
    row: int = 0
    personal: Personal | None = None


@dataclass(frozen=True, slots=True)
class Item:
    """One question of a plan: what it reads (two texts for a pair preset), or why it cannot be answered."""

    asked: Asked
    views: tuple[View, ...]
    preset: Preset | None
    texts: tuple[str, ...]
    failure: Failure | None


@dataclass(frozen=True, slots=True)
class Private:
    """What `plan` keeps for `answer`. `vectors` are the known texts; `rows` tells which row holds each new one."""

    items: list[Item]
    vectors: dict[str, Floats]
    rows: dict[str, int]


class TwoTower:
    """The adapter over one artifact. Keeps the contract of `asking.Adapter`."""

    def __init__(self, artifact: Artifact, engine: Engine, *, shared_context: bool = False) -> None:
        """Load the tokenizer and open the pair graphs. Raises ArtifactError.

        `shared_context` changes nothing here: a state is read once for all questions as it is.
        """
        self.card: Card = artifact.card
        self.tokenizer = Tokenizer(artifact)
        self._engine = engine
        self._custom: CustomQuestions | None = artifact.card.custom
        self._span_states = (artifact.card.custom and artifact.card.custom.span_states) or ""
        self.texts = self._texts = TextCache()
        self._states = StateTexts(self.tokenizer, kept=shared_context and not artifact.card.reading.state_once)
        self._pairs = Pairs(artifact.card, engine)
        spans = (preset for preset in self.card.presets.values() if preset.type is QuestionType.SPAN)
        self._where = next((preset for preset in spans if preset.rules is not None), None)

    def run(self, rows: Sequence[Row]) -> list[Raw]:
        """Compute one batch."""
        return self._engine.run(rows)

    # -- plan ----------------------------------------------------------------------------------------------------------

    def plan(self, state: State, asked: Sequence[Asked]) -> RowPlan:
        """Rows of every text that the questions read, and of every option text not seen before."""
        views: dict[tuple[str, bool], View] = {}
        placed = any(one.question.type is QuestionType.SPAN or self._ruled(one.question) for one in asked)
        encode = partial(self._states.call().encode, placed=placed)
        items = [self._item(state, one, views, encode) for one in asked]
        rows: list[Row] = []
        for view in (view for view in views.values() if view.outputs):
            view.row = len(rows)
            wanted = tuple(sorted(view.outputs))
            frame = self.tokenizer.frame
            rows += [Row(frame(view.encoded.ids[start:end]), wanted) for start, end in view.cuts]
        tokens = sum(row.tokens for row in rows)
        vectors: dict[str, Floats] = {}
        places: dict[str, int] = {}
        for text in dict.fromkeys(text for item in items for text in item.texts):
            known = self._texts.get(text)
            if known is not None:
                vectors[text] = known.vector
                tokens += known.tokens
                continue
            places[text] = len(rows)
            rows.append(self._text_row(text))
            tokens += rows[-1].tokens
        return RowPlan(rows, tokens, Private(items, vectors, places))

    def _text_row(self, text: str) -> Row:
        assert self._custom is not None  # noqa: S101  only free questions have texts
        room = self.card.limits.graph_tokens - self.tokenizer.framing
        return Row(self.tokenizer.frame(self.tokenizer.encode(text, room).ids), (self._custom.embedding,))

    def _item(self, state: State, asked: Asked, views: dict[tuple[str, bool], View], encode: Encode) -> Item:
        question = asked.question
        preset = self.card.presets.get(question.preset) if question.preset is not None else None
        failure = refusal(self.card, question, preset)
        if failure is not None:
            return Item(asked, (), preset, (), failure)
        once = reads_once(self.card, asked)
        found: tuple[str, ...] | Failure
        if preset is not None and preset.pair is not None:
            found, once = pair_texts(state, preset.pair, asked.over), True
        else:
            text = text_for(state, asked, preset)
            found = text if isinstance(text, Failure) else (text,)
        if isinstance(found, Failure):
            return Item(asked, (), preset, (), found)
        for text in found:
            if (text, once) not in views:
                views[text, once] = self._view(text, once, encode)
        read = tuple(views[text, once] for text in found)
        if failure := unread(self.card, asked, all(view.complete for view in read)):
            return Item(asked, (), preset, (), failure)
        for view in read:
            view.outputs |= self._outputs(question.type, preset)
            if preset is not None and preset.rules is not None and view.personal is None:
                view.personal = read_personal(view.text, _read_to(view))
        compared = () if preset else question_texts(question, self.card.option_template)
        return Item(asked, read, preset, compared, None)

    def _ruled(self, question: Question) -> bool:
        preset = self.card.presets.get(question.preset or "")
        return preset is not None and preset.rules is not None

    def _view(self, text: str, once: bool, encode: Encode) -> View:
        reading, limits = self.card.reading, self.card.limits
        room = limits.graph_tokens - self.tokenizer.framing
        encoded = encode(text, room if once else max(room, limits.max_input_tokens))
        cuts = windows(len(encoded), room, reading.window_tokens, reading.overlap)
        return View(text, encoded, cuts, encoded.complete, set())

    def _outputs(self, kind: QuestionType, preset: Preset | None) -> set[str]:
        if preset is not None and preset.pair is None:
            where = self._where if preset.rules is not None else None
            return {preset.head} if where is None else {preset.head, where.head}
        assert self._custom is not None  # noqa: S101  the card is checked: free types have their rule
        return {self._span_states if kind is QuestionType.SPAN else self._custom.embedding}

    # -- answer --------------------------------------------------------------------------------------------------------

    def answer(self, plan: RowPlan, raw: Sequence[Raw]) -> list[Answered | Failure]:
        """Answers in the order of the questions. An output that is not finite fails its question, not the request."""
        private: Private = plan.private
        for text, place in private.rows.items():
            if not raw[place]:
                continue
            assert self._custom is not None  # noqa: S101  only free questions have texts
            vector = raw[place][self._custom.embedding]
            private.vectors[text] = vector
            self._texts.put(text, vector, plan.rows[place].tokens)
        vectors = private.vectors
        return [LATE if _late(item, vectors, raw) else self._answered(item, vectors, raw) for item in private.items]

    def _answered(self, item: Item, vectors: dict[str, Floats], raw: Sequence[Raw]) -> Answered | Failure:
        if item.failure is not None or not item.views:
            return item.failure or Failure(FailureCode.UNAVAILABLE, "was not read")
        view, question = item.views[0], item.asked.question
        outputs = raw[view.row : view.row + len(view.cuts)]
        read = [raw[place] for view in item.views for place in range(view.row, view.row + len(view.cuts))]
        texts = np.stack([vectors[text] for text in item.texts]) if item.texts else _NO_TEXTS
        names = self._outputs(question.type, item.preset)
        if not all(map(finite, [*(row[name] for row in read for name in names), texts])):
            return NOT_FINITE
        complete = all(view.complete for view in item.views)
        tokens = len(view.encoded)
        threshold = self._threshold(question, item.preset, tokens)
        if question.type is QuestionType.SPAN:
            found, sources = self._span(view, item, outputs, texts, threshold or 0.0)
            return Answered(found, complete, threshold, view.text, sources)
        if item.preset is not None and item.preset.pair is not None:
            return Answered(self._pair(item.preset, item.views, raw), complete)
        if item.preset is not None:
            told = preset_answer(item.preset, outputs, threshold or 0.0, tokens)
            if isinstance(told, NoulAnswer) and view.personal is not None and item.preset.rules is not None:
                told = self._present(view, view.personal, told, outputs)
            return Answered(told, complete, threshold)
        return Answered(self._free(question, outputs, texts, threshold or 0.0), complete, threshold)

    def _pair(self, preset: Preset, views: Sequence[View], raw: Sequence[Raw]) -> NoulAnswer:
        assert self._custom is not None  # noqa: S101  the card is checked: pairs compare embeddings
        first, second = (raw[view.row][self._custom.embedding] for view in views)
        return self._pairs.answer(preset, first, second)

    def _threshold(self, question: Question, preset: Preset | None, tokens: int) -> float | None:
        kind = question.type
        if kind not in (QuestionType.SET, QuestionType.SPAN):
            return None
        if question.threshold is not None:
            return question.threshold
        rule: Affine | None = getattr(self._custom, kind.value, None) if preset is None else None
        return self.card.threshold(kind, preset, rule.threshold if rule is not None else 0.5, tokens)

    def _free(self, question: Question, outputs: Sequence[Raw], texts: Floats, threshold: float) -> Answer:
        """A free choice, score, noul, set or similarity (of the nearest window) from similarities [windows, texts]."""
        custom = self._custom
        assert custom is not None  # noqa: S101  refused in plan otherwise
        state = np.stack([row[custom.embedding] for row in outputs]).astype(np.float64)
        near: Doubles = state @ texts.astype(np.float64).T
        if question.type is QuestionType.SIMILARITY:
            return similarity_answer(near.max(axis=0))
        if question.type in (QuestionType.CHOICE, QuestionType.SCORE):
            scale = custom.choice if question.type is QuestionType.CHOICE else custom.score
            logits = near.mean(axis=0) / (scale or 1.0) / self.card.scale(question.type, len(question.options))
            even = softmax(logits)
            if question.type is QuestionType.SCORE:
                return score_answer(list(even))
            return choice_answer([option.key for option in question.options], list(even))
        if question.type is QuestionType.SET:
            labels = self._affine(custom.set, near, QuestionType.SET).max(axis=0)
            values = {option.key: float(p) for option, p in zip(question.options, labels, strict=True)}
            return SetAnswer(frozenset(key for key, p in values.items() if p >= threshold), values)
        return self._noul(question, near)

    def _noul(self, question: Question, near: Doubles) -> NoulAnswer:
        rule = self._custom.noul if self._custom is not None else None
        yes, turned = noul_near(question, near, rule.contrast if rule is not None else 0.0)
        probability = float(self._affine(rule, yes, QuestionType.NOUL).max())
        return NoulAnswer(1.0 - probability if turned else probability)

    def _affine(self, rule: Affine | None, near: Doubles, kind: QuestionType) -> Doubles:
        assert rule is not None  # noqa: S101  refused in plan otherwise
        return sigmoid(rule.a * (near - rule.b) / self.card.temperature.get(kind, 1.0))

    def _present(self, view: View, personal: Personal, told: NoulAnswer, outputs: Sequence[Raw]) -> NoulAnswer:
        """Whether there is personal data: certain where a rule found some, else no more than the model sees in any word
        outside of identifiers that are nobody's."""
        if personal.findings:
            return NoulAnswer(1.0)
        if self._where is None:
            return told
        scores = head_spans(self._where, self.tokenizer.leading, view.cuts, outputs)
        word = word_probability(overruled(personal, view.encoded.offsets, scores), self._where.mapped)
        return NoulAnswer(min(told.probability, word))

    def _span(
        self, view: View, item: Item, outputs: Sequence[Raw], texts: Floats, threshold: float
    ) -> tuple[SpanAnswer, tuple[str, ...] | None]:
        """Spans, and what each is from where a preset has rules."""
        labels: list[str | None]
        preset, lead = item.preset, self.tokenizer.leading
        personal = view.personal if preset is not None and preset.rules is not None else None
        if preset is not None:
            labels = list(preset.mapped)
            scores = head_spans(preset, lead, view.cuts, outputs)
        else:
            labels = [option.key for option in item.asked.question.options]
            scores = []
            for (start, end), row in zip(view.cuts, outputs, strict=True):
                states = row[self._span_states][lead : lead + end - start].astype(np.float64)
                near = states @ texts.astype(np.float64).T
                rule = self._custom.span if self._custom is not None else None
                scores.append(WindowScores(start, self._affine(rule, near, QuestionType.SPAN), None))
        offsets = view.encoded.offsets
        if personal is not None:
            scores = overruled(personal, offsets, scores)
        whole = preset is not None and preset.whole_words
        spans = decode(view.text, offsets, scores, labels, threshold, whole_words=whole)
        word = word_probability(scores, labels)
        if personal is None:
            return SpanAnswer(spans, word), None
        spans, sources = together(personal, view.text, spans)
        return SpanAnswer(spans, 1.0 if personal.findings else word), sources


def _late(item: Item, vectors: dict[str, Floats], raw: Sequence[Raw]) -> bool:
    """Whether a row that the question needs was not computed in time."""
    read = [row for view in item.views for row in raw[view.row : view.row + len(view.cuts)]]
    return not all(read) or not all(text in vectors for text in item.texts)


def _read_to(view: View) -> int:
    """How many code points of its text the windows read."""
    if view.complete:
        return len(view.text)
    return view.encoded.offsets[-1][1] if len(view.encoded.offsets) else 0
