"""What every adapter does with a question before it makes rows: may it be asked, and which text is it about.

`StateTexts` tokenises each text once for all the questions that read it, whatever the adapter
(`enable_shared_context` keeps the tokens for the calls that follow, too).
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from hashlib import blake2b

from router.questions import Question, QuestionType

from .asking import Asked, Failure, FailureCode, State
from .card import Card, Preset
from .state import text_of
from .tokens import Encoded, Tokenizer

KEPT_TEXTS = 64
KEPT_TOKENS = 262_144
"""Bounds of what `enable_shared_context` keeps: about 16 MB."""


class StateTexts:
    """Tokens of states by exact text, of which a digest is kept. Safe for several threads."""

    def __init__(self, tokenizer: Tokenizer, *, kept: bool) -> None:
        """`kept` True keeps the tokens of the last texts across calls; otherwise nothing outlives its call."""
        self._tokenizer = tokenizer
        self._kept: OrderedDict[tuple[bytes, int, bool], Encoded] | None = OrderedDict() if kept else None
        self._tokens = 0
        self._lock = threading.Lock()

    def call(self) -> CallTexts:
        """The texts of one call."""
        return CallTexts(self)

    def encode(self, text: str, most: int, *, placed: bool = False) -> Encoded:
        """At most `most` tokens of a text, with their offsets when `placed`."""
        if self._kept is None:
            return self._tokenizer.encode(text, most, placed=placed)
        key = (blake2b(text.encode("utf-8", "surrogatepass"), digest_size=32).digest(), most, placed)
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        encoded = self._tokenizer.encode(text, most, placed=placed)
        with self._lock:
            if key not in self._kept and len(encoded) <= KEPT_TOKENS:
                self._kept[key] = encoded
                self._tokens += len(encoded)
            while len(self._kept) > KEPT_TEXTS or self._tokens > KEPT_TOKENS:
                self._tokens -= len(self._kept.popitem(last=False)[1])
        return encoded


class CallTexts:
    """Tokens of the states of one call: a text that several questions read is tokenised once."""

    def __init__(self, texts: StateTexts) -> None:
        self._texts = texts
        self._known: dict[tuple[str, int, bool], Encoded] = {}

    def encode(self, text: str, most: int, *, placed: bool = False) -> Encoded:
        """At most `most` tokens of a text, with their offsets when `placed`."""
        key = (text, most, placed)
        if key not in self._known:
            self._known[key] = self._texts.encode(text, most, placed=placed)
        return self._known[key]


def refusal(card: Card, question: Question, preset: Preset | None) -> Failure | None:
    """Why this model is not asked this question at all; None when it may be."""
    message = None
    limits = card.limits
    if question.type is QuestionType.SIMILARITY:
        message = None if card.embeds else "this model does not compare texts"
    elif question.preset is not None and preset is None:
        message = "this model does not define that preset"
    elif preset is not None and preset.type is not question.type:
        message = f"this preset is a {preset.type.value} question"
    elif preset is not None and question.options:
        message = "a preset brings its own options"
    elif preset is None and question.type not in card.question_types:
        message = f"this model does not answer {question.type.value} questions in free words"
    elif len(question.options) > limits.max_options and question.type is QuestionType.CHOICE:
        message = f"this model takes at most {limits.max_options} options"
    elif len(question.options) > limits.max_labels and question.type in (QuestionType.SET, QuestionType.SPAN):
        message = f"this model takes at most {limits.max_labels} labels"
    return None if message is None else Failure(FailureCode.INVALID_QUESTION, message)


def text_for(state: State, asked: Asked, preset: Preset | None) -> str | Failure:
    """The text that a question reads: `over`, else the part that it is about by its nature."""
    reads = "span" if asked.question.type is QuestionType.SPAN else preset.reads if preset else "any"
    return text_of(state, asked.over, reads)


def unread(card: Card, asked: Asked, complete: bool) -> Failure | None:
    """The refusal to answer from a text that was cut, where the question or the card forbids that."""
    if complete or not (asked.full or card.reading.long == "reject"):
        return None
    return Failure(FailureCode.MAX_LENGTH_EXCEEDED, "the text is longer than the model can read whole")


def reads_once(card: Card, asked: Asked) -> bool:
    """Whether only what fits the graph once is read, instead of windows."""
    return asked.truncate or card.reading.long != "window"


LATE = Failure(FailureCode.DEADLINE_EXCEEDED, "the deadline passed before it was read")
NOT_FINITE = Failure(FailureCode.INVALID_MODEL_OUTPUT, "the model gave a number that is not finite")
