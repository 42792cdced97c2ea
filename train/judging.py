"""An artifact that answers questions about texts, the way the runtime serves it. Also how two versions are compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from router.config.presets import public_presets
from router.questions import ChoiceAnswer, NoulAnswer, Question, SetAnswer, SpanAnswer
from router.runtime.adapters import adapter_for
from router.runtime.artifact import Artifact, open_artifact
from router.runtime.asking import Answered, Asked
from router.runtime.body import read_questions
from router.runtime.engine import Engine
from router.runtime.heads import head_probabilities
from router.runtime.render import render_answers
from router.runtime.rows import Raw, Row
from router.runtime.two_tower import TwoTower
from train.examples import NOUL, PII, Example
from train.layout import DIALOGUE, PAIR_PARTS, PAIRS, read_text

_KEPT: Final = 20_000
"""Rows, of a few KB each."""

PUBLISHED: Final = {"PERSON": "PERSON", "ADDRESS": "STREET_ADDRESS", "DATE_OF_BIRTH": "DATE_TIME"}
"""What spans of training data are called in answers."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """What an artifact says of an example: probabilities by label, and spans found.

    `tokens` is the length of the text in tokens of the artifact.
    """

    probabilities: dict[str, float]
    spans: tuple[tuple[int, int, str], ...] = ()
    tokens: int = 0

    @property
    def best(self) -> str:
        """The most probable label."""
        return max(self.probabilities, key=self.probabilities.__getitem__)


class Judge:
    """One artifact. Computed rows are kept for a while: several tasks read the same texts."""

    def __init__(self, artifact: Artifact) -> None:
        self.card = artifact.card
        self.artifact = artifact
        adapter = adapter_for(artifact, Engine(artifact, "cpu"))
        if not isinstance(adapter, TwoTower):
            raise TypeError(f"{artifact.card.name}: only artifacts of the adapter two_tower are compared")
        self.adapter = adapter
        self._kept: dict[tuple[bytes, tuple[str, ...]], Raw] = {}

    def run(self, rows: Sequence[Row]) -> list[Raw]:
        """Outputs of rows, row by row."""
        found = []
        if len(self._kept) > _KEPT:
            self._kept.clear()
        for row in rows:
            key = (row.ids.tobytes(), row.outputs)
            if key not in self._kept:
                (self._kept[key],) = self.adapter.run([row])
            found.append(self._kept[key])
        return found

    def answers(self, state: Any, questions: dict[str, Any]) -> dict[str, Any]:
        """Answers in the form of golden cases."""
        posed = read_questions(questions)
        plan = self.adapter.plan(state, [each.asked for each in posed.values()])
        results = self.adapter.answer(plan, self.run(plan.rows))
        return render_answers(posed, dict(zip(posed, results, strict=True)))

    def judge(self, example: Example, *, raw: bool = False) -> Judgement | None:
        """What is said of an example; with `raw` in the head's own labels, before a card renames them."""
        question = self.question(example.task)
        if question is None:
            return None
        plan = self.adapter.plan(_state(example), [Asked(question)])
        outputs = self.run(plan.rows)
        (told,) = self.adapter.answer(plan, outputs)
        tokens = max((len(view.encoded) for item in plan.private.items for view in item.views), default=0)
        preset = self.card.presets.get(example.task)
        if raw and preset is not None and preset.pair is None:
            shares = head_probabilities(preset, outputs, tokens)
            return Judgement(dict(zip(preset.raw, shares, strict=True)), (), tokens)
        return _judgement(told, tokens)

    def question(self, task: str) -> Question | None:
        """The question that a task is asked by: the artifact's preset, else its public text, else None."""
        preset = self.card.presets.get(task)
        if preset is not None:
            return Question(preset.type, preset=task)
        public = public_presets().get(task)
        if public is None or public.type not in self.card.question_types:
            return None
        return Question(public.type, public.instructions, public.options)

    def threshold(self, task: str, tokens: int) -> float:
        """From where a yes counts in a text of so many tokens."""
        preset = self.card.presets.get(task)
        own = preset.threshold_at(tokens) if preset is not None else None
        return 0.5 if own is None else own


def _judgement(told: object, tokens: int) -> Judgement | None:
    """An answer as probabilities by label; None for a question that was not answered."""
    match told:
        case Answered(answer=NoulAnswer(probability=p)):
            return Judgement(dict(zip(NOUL, (1 - p, p), strict=True)), (), tokens)
        case Answered(answer=ChoiceAnswer(probabilities=values) | SetAnswer(probabilities=values)):
            return Judgement(dict(values), (), tokens)
        case Answered(answer=SpanAnswer(spans=spans, word_probability=word)):
            found = tuple((span.start, span.end, span.label) for span in spans)
            return Judgement({"true": word}, found, tokens)
    return None


def open_judge(folder: Path) -> Judge:
    """An artifact directory. Raises ArtifactError."""
    return Judge(open_artifact(str(folder)))


def _state(example: Example) -> Any:
    if example.task in PAIRS:
        first, second = PAIR_PARTS[example.task]
        return {first: example.previous, second: example.text}
    if example.task in DIALOGUE:
        return read_text(example)
    return example.text


def gold(example: Example) -> tuple[tuple[int, int, str], ...]:
    """The spans of an example as an answer would name them."""
    if example.task != PII:
        return ()
    return tuple((start, end, PUBLISHED.get(kind, kind)) for start, end, kind in example.spans)
