"""Adapter `gliner`: spans of any labels. Labels stand before the words of the text, a marker before each.

    [CLS] <<ENT>> label <<ENT>> label <<SEP>> word word word [SEP]

In span mode the graph scores every range of up to `max_width` words, in token mode every word as start, end and inside.
Ranges that reach the threshold are taken from the most probable down, those that overlap a taken one are left.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from router.questions import Option, Question, QuestionType, Span, SpanAnswer

from .artifact import Artifact
from .asking import Answered, Asked, Failure, State
from .card import Card
from .card import Gliner as Settings
from .engine import Engine
from .errors import ArtifactError
from .posing import LATE, NOT_FINITE, reads_once, refusal, text_for, unread
from .prompted import NO_ROOM
from .rows import Ids, Raw, Row, RowPlan
from .scoring import Doubles, sigmoid
from .texts import render
from .tokens import Tokenizer, Words

_WORD = re.compile(r"\w+(?:[-_]\w+)*|\S")
_SHARED_WORDS = 24
_KEPT_TEXTS = 64
_LONGEST_KEPT = 65_536
_WORD_TOKENS = 32
"""Longer words are cut: a blob of base64 is one word."""


@dataclass(frozen=True, slots=True)
class View:
    """A text as words: where each is in the text, and its tokens."""

    text: str
    places: Sequence[tuple[int, int]]
    words: Words
    complete: bool


@dataclass(frozen=True, slots=True)
class Item:
    """One question of a plan: the windows (ranges of words) and the rows that hold them, or why it has none."""

    asked: Asked
    view: View | None
    cuts: Sequence[tuple[int, int]]
    first: int
    complete: bool
    failure: Failure | None = None


class Gliner:
    """The adapter over one artifact. Keeps the contract of `asking.Adapter`."""

    OUTPUT = "logits"

    def __init__(self, artifact: Artifact, engine: Engine, *, shared_context: bool = False) -> None:
        """Raises ArtifactError when the tokenizer lacks a marker. Words are tokenised once a call in any case."""
        self.card: Card = artifact.card
        self.tokenizer = Tokenizer(artifact)
        self._engine = engine
        if not isinstance(artifact.card.settings, Settings):
            raise ArtifactError(artifact.card.name, "its card has no gliner section")
        self._settings = artifact.card.settings
        self.tokenizer.require("gliner.entity", self._settings.entity)
        self.tokenizer.require("gliner.separator", self._settings.separator)
        self._kept = lru_cache(_KEPT_TEXTS)(self._words) if shared_context else None
        self._first = self._settings.mode == "token" and self._scores_stand_first()

    def _scores_stand_first(self) -> bool:
        """Whether a token-mode graph gives [3, batch, words, labels] instead of [batch, words, labels, 3].

        Exports differ and often name no sides, so one row is asked. Raises ArtifactError when it is neither.
        """
        before, after = self._frame(Question(QuestionType.SPAN, options=(Option("name"),)))
        shape = self._engine.shape(self._row(self._words("two words"), (0, 2), before, after, 1), self.OUTPUT)
        if shape == (3, 1, 2, 1):
            self._engine.lay_out(self.OUTPUT, (3, "batch", "words", "labels"))
            return True
        if shape != (1, 2, 1, 3):
            raise ArtifactError(self.card.graphs["encoder"].file, f"gives scores of shape {shape} for two words")
        return False

    # -- plan ----------------------------------------------------------------------------------------------------------

    def plan(self, state: State, asked: Sequence[Asked]) -> RowPlan:
        """One row a question and window."""
        views: dict[str, View] = {}
        rows: list[Row] = []
        items = [self._item(state, one, views, rows) for one in asked]
        return RowPlan(rows, sum(row.tokens for row in rows), items)

    def run(self, rows: Sequence[Row]) -> list[Raw]:
        """Compute one batch."""
        return self._engine.run(rows)

    def _item(self, state: State, asked: Asked, views: dict[str, View], rows: list[Row]) -> Item:
        def failed(failure: Failure) -> Item:
            return Item(asked, None, (), 0, False, failure)

        if failure := refusal(self.card, asked.question, None):
            return failed(failure)
        text = text_for(state, asked, None)
        if isinstance(text, Failure):
            return failed(text)
        if text not in views:
            views[text] = self._view(text)
        view = views[text]
        before, after = self._frame(asked.question)
        room = self.card.limits.graph_tokens - len(before) - len(after)
        if room < _WORD_TOKENS:
            return failed(NO_ROOM)
        cuts = self._cuts(view.words.starts, room)
        if reads_once(self.card, asked):
            cuts = cuts[:1]
        complete = view.complete and cuts[-1][1] == len(view.places)
        if failure := unread(self.card, asked, complete):
            return failed(failure)
        first = len(rows)
        rows += [self._row(view, cut, before, after, len(asked.question.options)) for cut in cuts]
        return Item(asked, view, cuts, first, complete)

    def _view(self, text: str) -> View:
        kept = self._kept is not None and len(text) <= _LONGEST_KEPT
        return self._kept(text) if kept and self._kept is not None else self._words(text)

    def _words(self, text: str) -> View:
        most = self.card.limits.max_input_tokens
        clipped = text[: most * 16]
        places = [match.span() for match in _WORD.finditer(self.tokenizer.neutral(clipped))]
        words = self.tokenizer.words([clipped[start:end] for start, end in places[:most]], _WORD_TOKENS)
        fits = int(np.searchsorted(words.starts, most, side="right")) - 1
        complete = len(clipped) == len(text) and fits == len(places)
        return View(text, places[:fits], Words(words.ids, words.starts[: fits + 1]), complete)

    def _frame(self, question: Question) -> tuple[Ids, Ids]:
        tokens, settings = self.card.tokens, self._settings
        parts: list[Ids] = [] if tokens.cls is None else [np.array([tokens.cls])]
        for option in question.options:
            label = self.tokenizer.encode(self._label(option), settings.label_tokens).ids
            parts += [np.array([settings.entity]), label]
        parts.append(np.array([settings.separator]))
        return np.concatenate(parts), np.array([] if tokens.sep is None else [tokens.sep], np.int64)

    def _label(self, option: Option) -> str:
        """A label in plain words: its description, else its key without underscores."""
        plain = option.key if any(c.islower() for c in option.key) else option.key.lower()
        return render(option, self.card.option_template) if option.description else plain.replace("_", " ")

    def _cuts(self, starts: Ids, room: int) -> list[tuple[int, int]]:
        """Windows of words that fit `room` tokens and `max_words`, sharing some words; all of the text is in one."""
        count, cuts, first = len(starts) - 1, list[tuple[int, int]](), 0
        while True:
            last = int(np.searchsorted(starts, starts[first] + room, side="right")) - 1
            last = min(max(last, first + 1), first + self._settings.max_words, count)
            cuts.append((first, last))
            if last >= count:
                return cuts
            first = max(first + 1, last - min(_SHARED_WORDS, (last - first) // 4))

    def _row(self, view: View, cut: tuple[int, int], before: Ids, after: Ids, labels: int) -> Row:
        first, last = cut
        starts = view.words.starts[first : last + 1]
        ids = np.concatenate([before, view.words.ids[starts[0] : starts[-1]], after])
        mask = np.zeros(len(ids), np.int64)
        count = last - first
        mask[len(before) + starts[:-1] - starts[0]] = np.arange(1, count + 1)
        extra: dict[str, npt.NDArray[Any]] = {"words_mask": mask, "text_lengths": np.array([count], np.int64)}
        sizes = {"words": count, "labels": labels}
        if self._settings.mode == "span":
            width = self._settings.max_width
            begin = np.repeat(np.arange(count), width)
            end = begin + np.tile(np.arange(width), count)
            extra["span_idx"] = np.stack([begin, end], axis=1)
            extra["span_mask"] = end < count
        return Row(ids.astype(np.int64), (self.OUTPUT,), extra, sizes)

    # -- answer --------------------------------------------------------------------------------------------------------

    def answer(self, plan: RowPlan, raw: Sequence[Raw]) -> list[Answered | Failure]:
        """Answers in the order of the questions."""
        items: list[Item] = plan.private
        return [self._answered(item, raw) for item in items]

    def _answered(self, item: Item, raw: Sequence[Raw]) -> Answered | Failure:
        question, view = item.asked.question, item.view
        if item.failure is not None or view is None:
            return item.failure or NOT_FINITE
        if not all(raw[item.first : item.first + len(item.cuts)]):
            return LATE
        threshold = question.threshold
        if threshold is None:
            threshold = self.card.threshold(question.type, None)
        ranges: list[tuple[float, int, int, int]] = []
        highest = 0.0
        for offset, (first, last) in enumerate(item.cuts):
            logits = raw[item.first + offset][self.OUTPUT].astype(np.float64)
            logits = np.moveaxis(logits, 0, -1) if self._first else logits
            if not np.isfinite(logits).all():
                return NOT_FINITE
            scores = sigmoid(logits / self.card.scale(question.type, len(question.options)))
            read = _span_ranges if self._settings.mode == "span" else _token_ranges
            found, top = read(scores[: last - first], threshold)
            highest = max(highest, top)
            ranges += [(score, first + start, first + end, label) for score, start, end, label in found]
        spans = _apart(ranges)
        keys = [option.key for option in question.options]
        placed = (Span(keys[k], view.places[start][0], view.places[end][1], score) for score, start, end, k in spans)
        answer = SpanAnswer(tuple(sorted(placed, key=lambda span: span.start)), highest)
        return Answered(answer, item.complete, threshold, view.text)


Range = tuple[float, int, int, int]
"""Score, first word, last word, label."""


def _span_ranges(scores: Doubles, threshold: float) -> tuple[list[Range], float]:
    """Ranges of [words, width, labels]; those that reach past the last word are not real."""
    words, width, _ = scores.shape
    real = np.arange(words)[:, None] + np.arange(width)[None, :] < words
    scores = np.where(real[:, :, None], scores, 0.0)
    found = [
        (float(scores[start, wide, label]), int(start), int(start + wide), int(label))
        for start, wide, label in np.argwhere((scores >= threshold) & real[:, :, None])
    ]
    return found, float(scores.max(initial=0.0))


def _token_ranges(scores: Doubles, threshold: float) -> tuple[list[Range], float]:
    """Ranges of [words, labels, (start, end, inside)]: from a start to an end with every word between inside."""
    found: list[Range] = []
    for start, label in np.argwhere(scores[:, :, 0] >= threshold):
        inside = scores[start:, label, 2]
        outside = np.flatnonzero(inside < threshold)
        reach = int(outside[0]) if len(outside) else len(inside)
        for length in np.flatnonzero(scores[start : start + reach, label, 1] >= threshold):
            score = float(inside[: length + 1].mean())
            found.append((score, int(start), int(start + length), int(label)))
    return found, float(scores[:, :, 2].max(initial=0.0))


def _apart(ranges: Sequence[Range]) -> list[Range]:
    """The most probable ranges that do not overlap; of equal ones the longer, then the earlier."""
    taken: list[Range] = []
    used: set[int] = set()
    for found in sorted(set(ranges), key=lambda r: (-r[0], r[1] - r[2], r[1], r[3])):
        words = range(found[1], found[2] + 1)
        if used.isdisjoint(words):
            taken.append(found)
            used.update(words)
    return taken
