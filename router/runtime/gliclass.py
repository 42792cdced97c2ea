"""Adapter `gliclass`: labels in the row beside the text, a marker before each, one logit a label.

    [CLS] <<LABEL>> label <<LABEL>> label <<SEP>> text [SEP]         or the text first

A set takes each label's sigmoid, a choice the softmax over all of them. Instructions are not read: labels must speak
for themselves. Markers are set by id: no text can spell one.
"""

from __future__ import annotations

import numpy as np

from router.questions import NoulAnswer, Question, QuestionType, SetAnswer

from .artifact import Artifact
from .asking import Answered, Failure
from .card import Gliclass as Settings
from .engine import Engine
from .errors import ArtifactError
from .prompted import Prompt, Prompted
from .rows import Ids
from .scoring import Doubles, choice_answer, sigmoid, softmax
from .texts import noul_texts, render


class Gliclass(Prompted):
    """The adapter over one artifact. Keeps the contract of `asking.Adapter`."""

    def __init__(self, artifact: Artifact, engine: Engine, *, shared_context: bool = False) -> None:
        """Raises ArtifactError when the tokenizer lacks a marker."""
        super().__init__(artifact, engine, shared_context=shared_context)
        if not isinstance(artifact.card.settings, Settings):
            raise ArtifactError(artifact.card.name, "its card has no gliclass section")
        self._settings = artifact.card.settings
        self.tokenizer.require("gliclass.label", self._settings.label)
        self.tokenizer.require("gliclass.separator", self._settings.separator)

    def prompt(self, question: Question) -> Prompt | Failure:
        """The labels before or after the text."""
        settings, tokens = self._settings, self.card.tokens
        texts = [render(option, self.card.option_template) for option in question.options]
        if question.type is QuestionType.NOUL:
            texts = list(noul_texts(question)[:1])
        labels: list[Ids] = []
        for text in texts:
            labels += [np.array([settings.label]), self.tokenizer.encode(text, settings.label_tokens).ids]
        labels.append(np.array([settings.separator]))
        first = [] if tokens.cls is None else [np.array([tokens.cls])]
        last = [] if tokens.sep is None else [np.array([tokens.sep])]
        before, after = (first + labels, last) if settings.prompt_first else (first, labels + last)
        return Prompt(_joined(before), _joined(after), {}, {"labels": len(texts)})

    def read(self, question: Question, logits: Doubles) -> Answered:
        """Of several windows the highest probability of a label counts, and the mean of the logits of a choice."""
        scaled = logits / self.card.scale(question.type, logits.shape[1])
        keys = [option.key for option in question.options]
        if question.type is QuestionType.CHOICE:
            return Answered(choice_answer(keys, list(softmax(scaled.mean(axis=0)))), True)
        values = sigmoid(scaled).max(axis=0)
        if question.type is QuestionType.NOUL:
            return Answered(NoulAnswer(float(values[0])), True)
        threshold = question.threshold if question.threshold is not None else self.card.threshold(question.type, None)
        probabilities = {key: float(p) for key, p in zip(keys, values, strict=True)}
        selected = frozenset(key for key, p in probabilities.items() if p >= threshold)
        return Answered(SetAnswer(selected, probabilities), True, threshold)


def _joined(parts: list[Ids]) -> Ids:
    return np.concatenate([*parts, np.array([], np.int64)]).astype(np.int64)
