"""Adapter `marker_row`: one row a question, with a marker before each option where its logit is read.

    [CLS] choice question: instructions [SEP] [MASK] option [MASK] option ... [SEP] state [SEP]

Options come first and are cut at a fixed length each; what is left of the head's budget goes to the instructions, and
what is left of the row to the state. Markers are set by id: no text can spell one.
"""

from __future__ import annotations

import numpy as np

from router.questions import NoulAnswer, Question, QuestionType

from .artifact import Artifact
from .asking import Answered, Failure, FailureCode
from .card import MarkerRow as Settings
from .engine import Engine
from .errors import ArtifactError
from .prompted import Prompt, Prompted
from .rows import Ids
from .scoring import Doubles, choice_answer, score_answer, softmax
from .texts import render

_TOO_MANY = Failure(FailureCode.INVALID_QUESTION, "the options do not fit the head of this model's rows")


class MarkerRow(Prompted):
    """The adapter over one artifact. Keeps the contract of `asking.Adapter`."""

    def __init__(self, artifact: Artifact, engine: Engine, *, shared_context: bool = False) -> None:
        """Raises ArtifactError when the tokenizer lacks the marker or a token that frames a row."""
        super().__init__(artifact, engine, shared_context=shared_context)
        if not isinstance(artifact.card.settings, Settings):
            raise ArtifactError(artifact.card.name, "its card has no marker_row section")
        self._settings = artifact.card.settings
        self.tokenizer.require("marker_row.mask", self._settings.mask)
        self._cls = self.tokenizer.require("tokens.cls", artifact.card.tokens.cls)
        self._sep = self.tokenizer.require("tokens.sep", artifact.card.tokens.sep)

    def prompt(self, question: Question) -> Prompt | Failure:
        """Head and tail of the rows of a question."""
        settings = self._settings
        texts = self._options(question)
        budget = settings.head_tokens - 3
        most = min(settings.option_tokens, budget // len(texts) - 1)
        if most < 1:
            return _TOO_MANY
        options = [self.tokenizer.encode(f" {text}", settings.option_tokens).ids for text in texts]
        if sum(len(option) + 1 for option in options) > budget:
            options = [option[:most] for option in options]
        left = budget - sum(len(option) + 1 for option in options)
        asked = self.tokenizer.encode(self._question(question), max(1, left)).ids[: max(0, left)]
        parts: list[Ids] = [np.array([self._cls]), asked, np.array([self._sep])]
        places, place = [], len(asked) + 2
        for option in options:
            places.append(place)
            parts += [np.array([settings.mask]), option]
            place += len(option) + 1
        parts.append(np.array([self._sep]))
        extra = {
            "marker_pos": np.array(places, np.int64),
            "marker_mask": np.ones(len(places), np.bool_),
            "qtype": np.array(settings.kinds.get(question.type, 0), np.int64),
        }
        before = np.concatenate(parts).astype(np.int64)
        return Prompt(before, np.array([self._sep], np.int64), extra, {"options": len(places)})

    def _question(self, question: Question) -> str:
        text = self._settings.question.replace("{type}", question.type.value)
        return text.replace("{instructions}", question.instructions or "")

    def _options(self, question: Question) -> list[str]:
        """Texts of options; a noul has no and yes, in this order."""
        if question.type is QuestionType.NOUL:
            sides = {option.key: option.description for option in question.options}
            no, yes = self._settings.noul
            return [sides.get("false") or no, sides.get("true") or yes]
        if question.type is QuestionType.SCORE:
            return [option.description or option.key for option in question.options]
        return [render(option, self.card.option_template) for option in question.options]

    def read(self, question: Question, logits: Doubles) -> Answered:
        """Of several windows the highest yes counts, and the mean of the logits of a choice or score."""
        scaled = logits / self.card.scale(question.type, logits.shape[1])
        if question.type is QuestionType.NOUL:
            return Answered(NoulAnswer(float(softmax(scaled)[:, 1].max())), True)
        even = softmax(scaled.mean(axis=0))
        if question.type is QuestionType.SCORE:
            return Answered(score_answer(list(even)), True)
        return Answered(choice_answer([option.key for option in question.options], list(even)), True)
