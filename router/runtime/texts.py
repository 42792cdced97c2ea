"""The texts of a free question that are compared with the state, and the vectors already known for such texts."""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from dataclasses import dataclass

from router.questions import Option, Question, QuestionType

from .rows import Floats
from .scoring import Doubles

CACHED_TEXTS = 8192
_LONGEST_KEY = 4096
_PLACE = re.compile(r"\{key\}|\{description\}")


@dataclass(frozen=True, slots=True)
class KnownText:
    """The vector of a text and how many tokens reading it took."""

    vector: Floats
    tokens: int


class TextCache:
    """Vectors by exact text, least recently used out first. Safe for several threads.

    These are texts of questions, which come from configuration. Very long ones are not kept.
    """

    def __init__(self, most: int = CACHED_TEXTS) -> None:
        """Keep at most `most` texts."""
        self._most = most
        self._known: OrderedDict[str, KnownText] = OrderedDict()
        self._lock = threading.Lock()
        self.hits = 0
        self.misses = 0

    def get(self, text: str) -> KnownText | None:
        """The vector of a text, None when it is not known."""
        with self._lock:
            known = self._known.get(text)
            if known is not None:
                self._known.move_to_end(text)
                self.hits += 1
            else:
                self.misses += 1
            return known

    def put(self, text: str, vector: Floats, tokens: int) -> None:
        """Remember a text."""
        if len(text) > _LONGEST_KEY:
            return
        with self._lock:
            # A copy: the vector is a view that would keep its whole batch alive.
            self._known[text] = KnownText(vector.copy(), tokens)
            while len(self._known) > self._most:
                self._known.popitem(last=False)

    def __len__(self) -> int:
        return len(self._known)


def question_texts(question: Question, template: str) -> tuple[str, ...]:
    """What to compare with the state: options, levels, labels or candidates in order; for a noul see `noul_texts`."""
    if question.type in (QuestionType.SCORE, QuestionType.SIMILARITY):
        return tuple(option.description or option.key for option in question.options)
    if question.type is QuestionType.NOUL:
        return noul_texts(question)
    return tuple(render(option, template) for option in question.options)


def noul_texts(question: Question) -> tuple[str, ...]:
    """The yes side: instructions and what describes `true`. With `false` described, a positive and a negative follow.

    A noul of nothing but a described `false` side is that side alone: its answer is turned round.
    """
    sides = {option.key: option.description for option in question.options if option.description}
    true, false = sides.get("true"), sides.get("false")
    yes = "\n".join(text for text in (question.instructions, true) if text)
    if false is None:
        return (yes,)
    return (yes, true or yes, false) if yes else (false,)


def noul_near(question: Question, near: Doubles, contrast: float) -> tuple[Doubles, bool]:
    """Similarity [windows] of the yes side from that of `noul_texts` [windows, texts], and whether to turn it round."""
    if near.shape[1] == 3:
        return near[:, 0] + contrast * (near[:, 1] - near[:, 2]), False
    described = any(option.key == "true" and option.description for option in question.options)
    return near[:, 0], not question.instructions and not described


def render(option: Option, template: str) -> str:
    """An option as text: by the card's template, or the bare key when it has no description."""
    if not option.description:
        return option.key
    values = {"{key}": option.key, "{description}": option.description}
    return _PLACE.sub(lambda match: values[match[0]], template)
