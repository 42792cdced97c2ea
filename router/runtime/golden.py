"""Golden cases: an artifact is served only if it still gives the answers that its card promises.

A case compares heads (probabilities of raw labels), spans of the span preset (raw labels), or whole answers to
questions in System One form, each within the case's tolerance.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from router.questions import Question, QuestionType, SpanAnswer

from .asking import Adapter, Answered, Asked
from .body import BadBody, read_questions
from .card import Preset
from .card_reader import CARD_FILE
from .errors import ArtifactError
from .heads import head_probabilities
from .render import render_answers
from .rows import Raw, RowPlan


def check_golden(adapter: Adapter) -> None:
    """Run the golden cases. Raises ArtifactError naming the first case that differs, and how."""
    for drift in drifts(adapter):
        raise drift


def drifts(adapter: Adapter) -> Iterator[ArtifactError]:
    """Every golden case that differs, as the error that says which and how."""
    for index, case in enumerate(adapter.card.golden):
        where = f"{CARD_FILE}: golden[{index}]"
        tolerance = float(case.get("tolerance", 0.02))
        checks: list[Callable[[], None]] = []
        if "heads" in case:
            checks.append(partial(_heads, adapter, f"{where}.heads", case, tolerance))
        if "spans" in case:
            checks.append(partial(_spans, adapter, f"{where}.spans", case["state"], case["spans"], tolerance))
        if "answers" in case:
            checks.append(partial(_answers, adapter, where, case, tolerance))
        for check in checks:
            try:
                check()
            except ArtifactError as drift:
                yield drift


def _preset(adapter: Adapter, where: str, name: str) -> Preset:
    preset = adapter.card.presets.get(name)
    if preset is None or preset.pair is not None:
        raise ArtifactError(where, "the card defines no such preset of one text")
    return preset


def _heads(adapter: Adapter, where: str, case: Mapping[str, Any], tolerance: float) -> None:
    presets = [_preset(adapter, f"{where}.{name}", name) for name in case["heads"]]
    plan = adapter.plan(case["state"], [Asked(Question(preset.type, preset=preset.name)) for preset in presets])
    outputs = _run(adapter, plan)
    frame = sum(ident is not None for ident in (adapter.card.tokens.cls, adapter.card.tokens.sep))
    for preset, expected in zip(presets, case["heads"].values(), strict=True):
        # A case of heads is of a text that one row holds, or of a card without levels: the sum is its length then.
        tokens = sum(row.tokens for row in plan.rows) - frame * len(plan.rows)
        got = head_probabilities(preset, outputs, tokens)
        if len(got) != len(expected) or any(abs(a - b) > tolerance for a, b in zip(got, expected, strict=True)):
            shown = [round(float(p), 4) for p in got]
            raise ArtifactError(f"{where}.{preset.name}", f"golden answer differs: {shown}, not {expected}")


def _spans(adapter: Adapter, where: str, state: str, expected: Sequence[Mapping[str, Any]], tolerance: float) -> None:
    presets = [p for p in adapter.card.presets.values() if p.type is QuestionType.SPAN]
    if len(presets) != 1:
        raise ArtifactError(where, "needs exactly one span preset in the card")
    preset = presets[0]
    answered = _ask(adapter, state, {"q": {"type": "span", "preset": preset.name}})["q"]
    if not isinstance(answered, Answered) or not isinstance(answered.answer, SpanAnswer):
        raise ArtifactError(where, "golden question was not answered")
    # What rules find has no raw label.
    names: dict[str, str | None] = {label: label for label in preset.labels}
    for raw, mapped in zip(preset.raw, preset.mapped, strict=True):
        if mapped is not None or raw not in names:
            names[raw] = mapped
    kept = [span for span in expected if names.get(span["label"]) is not None]
    got = answered.answer.spans
    same = len(got) == len(kept) and all(
        (a.start, a.end, a.label) == (b["start"], b["end"], names[b["label"]])
        and abs(a.probability - b["probability"]) <= tolerance
        for a, b in zip(got, kept, strict=True)
    )
    if not same:
        found = [(span.start, span.end, span.label, round(span.probability, 3)) for span in got]
        raise ArtifactError(where, f"golden answer differs: {found}")


def _answers(adapter: Adapter, where: str, case: Mapping[str, Any], tolerance: float) -> None:
    try:
        questions = read_questions(case["questions"])
    except BadBody:
        raise ArtifactError(f"{where}.questions", "are not valid questions") from None
    answered = _ask(adapter, case["state"], case["questions"])
    got = render_answers(questions, answered)
    _same(f"{where}.answers", case["answers"], {key: got.get(key) for key in case["answers"]}, tolerance)


def _ask(adapter: Adapter, state: Any, raw: Any) -> dict[str, Any]:
    questions = read_questions(raw)
    plan = adapter.plan(state, [posed.asked for posed in questions.values()])
    return dict(zip(questions, adapter.answer(plan, _run(adapter, plan)), strict=True))


def _run(adapter: Adapter, plan: RowPlan) -> list[Raw]:
    """Row by row: a golden answer must not depend on what it is batched with."""
    return [adapter.run([row])[0] for row in plan.rows]


def _same(where: str, expected: Any, got: Any, tolerance: float) -> None:
    """Compare as JSON: numbers within the tolerance, everything else exactly."""
    if isinstance(expected, dict) and isinstance(got, dict):
        for key, value in expected.items():
            _same(f"{where}.{key}", value, got.get(key), tolerance)
    elif isinstance(expected, list) and isinstance(got, list) and len(expected) == len(got):
        for index, pair in enumerate(zip(expected, got, strict=True)):
            _same(f"{where}[{index}]", *pair, tolerance)
    elif isinstance(expected, float | int) and isinstance(got, float | int) and not isinstance(expected, bool):
        if not math.isclose(expected, got, rel_tol=0, abs_tol=tolerance):
            raise ArtifactError(where, f"golden answer differs: {got}, not {expected}")
    elif expected != got:
        raise ArtifactError(where, f"golden answer differs: {got!r}, not {expected!r}")
