"""Weighted sums, bands, and what stays known when an input is not."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal

import pytest

from router.config.plan import QuestionRule, StateKind
from router.config.projections import BandMapping, Output, Score, ScoreInput
from router.deciding.bands import contains, first_regions, region
from router.deciding.kleene import ScoreKind, Truth
from router.deciding.projections import Projected, Projections, Range
from router.questions import (
    Answer,
    ChoiceAnswer,
    NoulAnswer,
    Option,
    Predicate,
    Question,
    QuestionType,
    ScoreAnswer,
    SetAnswer,
)
from router.signals.reading import read_all
from router.signals.traits import trait_of


def rule(name: str, kind: QuestionType, *keys: str, predicate: Predicate | None = None) -> QuestionRule:
    question = Question(kind, "?", tuple(Option(key) for key in keys))
    return QuestionRule(name, "d", question, StateKind.USER, predicate, 1000)


RULES = (
    rule("difficulty", QuestionType.SCORE, "0", "1", "2", "3", predicate=Predicate(gte=2)),
    rule("needs", QuestionType.SET, "deliberation", "tools"),
    rule("urgent", QuestionType.NOUL),
    rule("kind", QuestionType.CHOICE, "code", "chat"),
)
DIFFICULTY: dict[str, Answer] = {"difficulty": ScoreAnswer(1.5, (0.25, 0.25, 0.25, 0.25), 0.25)}
NEEDS: dict[str, Answer] = {"needs": SetAnswer(frozenset({"deliberation"}), {"deliberation": 0.8, "tools": 0.1})}


def term(name: str, weight: float, source: str = "raw", **more: Any) -> ScoreInput:
    fields: dict[str, Any] = {"family": "systemone", "key": None, "match": 1.0, "miss": 0.0} | more
    return ScoreInput(name=name, weight=weight, source=source, **fields)  # type: ignore[arg-type]


def bands(
    source: str,
    *outputs: tuple[str, Predicate],
    method: Literal["threshold_bands", "multi_emit"] = "threshold_bands",
    slope: float = 12.0,
) -> BandMapping:
    return BandMapping(f"{source}_map", source, method, slope, tuple(Output(*pair) for pair in outputs))


def project(scores: list[Score], mappings: list[BandMapping], answers: Mapping[str, Answer]) -> Projected:
    rules = {one.name: trait_of(one) for one in RULES}
    return Projections(scores, mappings, rules).evaluate(read_all(RULES, answers))


EFFORT = Score("effort", (term("difficulty", 0.3), term("needs", 0.4, key="deliberation")))
EFFORT_HIGH = bands("effort", ("effort_high", Predicate(gte=0.9)))


def test_the_documents_effort_example() -> None:
    projected = project([EFFORT], [EFFORT_HIGH], DIFFICULTY | NEEDS)
    effort = projected.scores["effort"]
    assert effort.known
    assert effort.low == pytest.approx(0.77)
    assert projected.outputs["effort_high"].truth is Truth.FALSE


def test_a_single_answer_can_settle_a_band() -> None:
    # 0.3 x difficulty + 0.4 x unknown: between 0.9 and 1.3 for an expert question, whatever the set would have said.
    expert = {"difficulty": ScoreAnswer(3.0, (0.0, 0.0, 0.0, 1.0), 1.0)}
    projected = project([EFFORT], [EFFORT_HIGH], expert)
    assert not projected.scores["effort"].known
    verdict = projected.outputs["effort_high"]
    assert verdict.truth is Truth.TRUE
    assert verdict.kind is None
    assert verdict.confidence == pytest.approx(0.5, abs=1e-6)
    # ... and for a trivial one between 0 and 0.4: surely not.
    trivial = {"difficulty": ScoreAnswer(0.0, (1.0, 0.0, 0.0, 0.0), 1.0)}
    assert project([EFFORT], [EFFORT_HIGH], trivial).outputs["effort_high"].truth is Truth.FALSE
    # In between nobody knows: 0.45 .. 0.85 misses 0.9, 0.6 .. 1.0 straddles it.
    assert project([EFFORT], [EFFORT_HIGH], DIFFICULTY).outputs["effort_high"].truth is Truth.FALSE
    middling = {"difficulty": ScoreAnswer(2.0, (0.0, 0.0, 1.0, 0.0), 1.0)}
    assert project([EFFORT], [EFFORT_HIGH], middling).outputs["effort_high"].truth is Truth.UNKNOWN


def test_an_unknown_score_question_ranges_over_its_levels() -> None:
    assert project([EFFORT], [], NEEDS).scores["effort"] == Range(0.32, 1.22)


def test_sources() -> None:
    answers: dict[str, Answer] = {
        **NEEDS,
        **DIFFICULTY,
        "urgent": NoulAnswer(0.7),
        "kind": ChoiceAnswer("code", {"code": 0.9, "chat": 0.1}, 0.9),
    }
    cases: list[tuple[ScoreInput, float]] = [
        (term("urgent", 2.0), 1.4),
        (term("urgent", 1.0, "confidence"), 0.7),
        (term("urgent", 1.0, "binary", match=5.0, miss=-1.0), 5.0),
        (term("difficulty", 1.0, "confidence"), 0.0),
        (term("difficulty", 1.0, "binary", match=5.0, miss=-1.0), -1.0),
        (term("kind", 1.0), 0.9),
        (term("kind", 1.0, key="chat"), 0.1),
        (term("kind", 1.0, "binary", key="chat"), 0.0),
        (term("kind", 1.0, "confidence", key="code"), 0.9),
        (term("needs", 1.0), 0.8),
        (term("needs", 1.0, "binary", key="tools"), 0.0),
    ]
    for item, expected in cases:
        assert project([Score("s", (item,))], [], answers).scores["s"] == Range(expected, expected), item


def test_a_matched_score_question_counts_as_fully_sure() -> None:
    answers = {"difficulty": ScoreAnswer(2.5, (0.0, 0.0, 0.5, 0.5), 0.5)}
    score = Score("s", (term("difficulty", 1.0, "confidence"),))
    assert project([score], [], answers).scores["s"] == Range(1.0, 1.0)


def test_unknown_inputs_span_their_range_by_source_and_sign() -> None:
    cases: list[tuple[ScoreInput, Range]] = [
        (term("urgent", 1.0), Range(0.0, 1.0)),
        (term("urgent", -2.0), Range(-2.0, 0.0)),
        (term("urgent", 1.0, "confidence"), Range(0.0, 1.0)),
        (term("urgent", 1.0, "binary", match=-3.0, miss=2.0), Range(-3.0, 2.0)),
        (term("difficulty", 1.0), Range(0.0, 3.0)),
        (term("urgent", 0.0), Range(0.0, 0.0)),
        (term("kind", 0.5, key="code"), Range(0.0, 0.5)),
    ]
    for item, expected in cases:
        assert project([Score("s", (item,))], [], {}).scores["s"] == expected, item


def test_scores_chain_through_scores_and_confidences() -> None:
    first = Score("first", (term("urgent", 1.0),))
    band = bands("first", ("hot", Predicate(gte=0.5)))
    second = Score(
        "second",
        (
            term("first", -1.0, "score", family="projection"),
            term("hot", 1.0, "confidence", family="projection"),
        ),
    )
    known = project([first, second], [band], {"urgent": NoulAnswer(0.75)})
    sigmoid = 1 / (1 + math.exp(-12 * 0.25))
    assert known.outputs["hot"].confidence == pytest.approx(sigmoid)
    assert known.scores["second"].low == pytest.approx(sigmoid - 0.75, abs=1e-9)
    assert project([second, first], [band], {}).scores["second"] == Range(-1.0, 1.0)
    cold = project([first, second], [band], {"urgent": NoulAnswer(0.25)})
    assert cold.scores["second"] == Range(-0.25, -0.25)


@pytest.mark.parametrize(
    ("value", "expected"),
    [(0.2, "low"), (0.3, "middle"), (0.69, "middle"), (0.7, "high"), (1.0, "high")],
)
def test_threshold_bands_emit_the_first_that_holds(value: float, expected: str) -> None:
    score = Score("s", (term("urgent", 1.0),))
    mapping = bands("s", ("high", Predicate(gte=0.7)), ("middle", Predicate(gte=0.3)), ("low", Predicate()), slope=1.0)
    outputs = project([score], [mapping], {"urgent": NoulAnswer(value)}).outputs
    assert [name for name, verdict in outputs.items() if verdict.truth is Truth.TRUE] == [expected]
    assert outputs[expected].kind is ScoreKind.DISTANCE


def test_multi_emit_emits_all_that_hold() -> None:
    score = Score("s", (term("urgent", 1.0),))
    mapping = bands(
        "s",
        ("some", Predicate(gte=0.3)),
        ("much", Predicate(gte=0.7)),
        ("little", Predicate(lt=0.3)),
        method="multi_emit",
    )
    outputs = project([score], [mapping], {"urgent": NoulAnswer(0.8)}).outputs
    assert [verdict.truth.value for verdict in outputs.values()] == ["true", "true", "false"]


def test_confidence_is_the_distance_to_the_nearest_bound() -> None:
    score = Score("s", (term("urgent", 1.0),))
    mapping = bands("s", ("within", Predicate(gte=0.2, lt=0.6)), ("rest", Predicate()), slope=10.0)
    inside = project([score], [mapping], {"urgent": NoulAnswer(0.5)}).outputs["within"]
    assert inside.confidence == pytest.approx(1 / (1 + math.exp(-1.0)))
    free = project([score], [mapping], {"urgent": NoulAnswer(0.9)}).outputs["rest"]
    assert free.confidence == pytest.approx(1 / (1 + math.exp(-10.0)))


def test_an_output_hidden_by_an_earlier_one_is_never_first() -> None:
    score = Score("s", (term("urgent", 1.0),))
    mapping = bands("s", ("wide", Predicate(gte=0.3)), ("hidden", Predicate(gte=0.5)), ("all", Predicate()))
    outputs = project([score], [mapping], {}).outputs
    assert [outputs[name].truth.value for name in ("wide", "hidden", "all")] == ["unknown", "false", "unknown"]


def test_an_unbounded_output_is_known_even_when_its_score_is_not() -> None:
    score = Score("s", (term("urgent", 1.0),))
    assert project([score], [bands("s", ("always", Predicate()))], {}).outputs["always"].truth is Truth.TRUE


def test_regions() -> None:
    assert region(Predicate(gt=1.0, lt=1.0)) == ()
    assert region(Predicate(gt=5.0, lt=3.0)) == ()
    point = region(Predicate(gte=1.0, lte=1.0))
    assert contains(point, 1.0, 1.0) is Truth.TRUE
    assert contains(point, 0.0, 2.0) is Truth.UNKNOWN
    assert contains(point, 1.5, 2.0) is Truth.FALSE
    assert contains(region(Predicate()), math.inf, math.inf) is Truth.FALSE
    middle, outside = first_regions([Predicate(gte=1.0, lte=2.0), Predicate()])
    assert contains(middle, 1.0, 2.0) is Truth.TRUE
    assert contains(outside, 1.0, 2.0) is Truth.FALSE
    assert contains(outside, 0.0, 0.9) is Truth.TRUE
    assert contains(outside, 0.0, 3.0) is Truth.UNKNOWN


def test_a_circle_and_a_dangling_name_are_refused() -> None:
    one = Score("one", (term("two", 1.0, "score", family="projection"),))
    two = Score("two", (term("one", 1.0, "score", family="projection"),))
    with pytest.raises(ValueError, match=r"circle.*'one', 'two'"):
        Projections([one, two], [], {})
    with pytest.raises(ValueError, match="'nobody', which the recipe does not ask"):
        Projections([Score("s", (term("nobody", 1.0),))], [], {})
    with pytest.raises(ValueError, match="cannot read value_source 'score'"):
        Projections([Score("s", (term("urgent", 1.0, "score"),))], [], {one.name: trait_of(one) for one in RULES})
