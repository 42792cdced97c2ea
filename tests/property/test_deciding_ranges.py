"""Known outputs of unknown scores hold for every way in which the unknown inputs could have been answered."""

from __future__ import annotations

from typing import Literal

from hypothesis import given, settings
from hypothesis import strategies as st

from router.config.projections import BandMapping, Output, Score, ScoreInput, ValueSource
from router.deciding.bands import contains, first_regions, region
from router.deciding.kleene import Truth
from router.deciding.projections import Projections
from router.questions import Answer, NoulAnswer, Predicate, QuestionType, ScoreAnswer, SetAnswer
from router.signals.reading import read_all
from router.signals.traits import trait_of
from tests.support.recipes import LATE, question

RULES = (
    question("yes", QuestionType.NOUL),
    question("level", QuestionType.SCORE, "0", "1", "2", predicate=Predicate(gte=1)),
    question("set", QuestionType.SET, "x", "y"),
)
BY_NAME = {rule.name: trait_of(rule) for rule in RULES}
NUMBERS = st.floats(-2, 3, allow_nan=False).map(lambda value: round(value, 2))
UNIT = st.floats(0, 1, allow_nan=False)
LIMIT = st.none() | NUMBERS
PREDICATES = st.builds(Predicate, LIMIT, LIMIT, LIMIT, LIMIT)


@st.composite
def _completions(draw: st.DrawFn) -> dict[str, Answer]:
    x, y = draw(UNIT), draw(UNIT)
    chosen = draw(st.sets(st.sampled_from("xy")))
    return {
        "yes": NoulAnswer(draw(UNIT)),
        "level": ScoreAnswer(draw(UNIT) * 2, (1.0, 0.0, 0.0), 1.0),
        "set": SetAnswer(frozenset(chosen), {"x": x, "y": y}),
    }


@st.composite
def _signal_inputs(draw: st.DrawFn) -> ScoreInput:
    name, key = draw(st.sampled_from([("yes", None), ("level", None), ("set", None), ("set", "x"), ("set", "y")]))
    sources: tuple[ValueSource, ...] = ("raw", "confidence", "binary")
    source = draw(st.sampled_from(sources))
    return ScoreInput("systemone", name, key, draw(NUMBERS), source, draw(NUMBERS), draw(NUMBERS))


@st.composite
def _projections(draw: st.DrawFn) -> Projections:
    methods: tuple[Literal["threshold_bands", "multi_emit"], ...] = ("threshold_bands", "multi_emit")
    method = st.sampled_from(methods)
    first = Score("first", tuple(draw(st.lists(_signal_inputs(), max_size=4))))
    outputs = tuple(
        Output(f"o{i}", bounds) for i, bounds in enumerate(draw(st.lists(PREDICATES, min_size=1, max_size=3)))
    )
    chained = (
        ScoreInput("projection", "first", None, draw(NUMBERS), "score", 1.0, 0.0),
        ScoreInput("projection", "o0", None, draw(NUMBERS), "confidence", 1.0, 0.0),
        draw(_signal_inputs()),
    )
    second = Score("second", chained)
    more = tuple(Output(f"p{i}", bounds) for i, bounds in enumerate(draw(st.lists(PREDICATES, min_size=1, max_size=3))))
    mappings = [
        BandMapping("m", "first", draw(method), 12.0, outputs),
        BandMapping("n", "second", draw(method), 3.0, more),
    ]
    return Projections([second, first], mappings, BY_NAME)


@settings(max_examples=400, deadline=None)
@given(_projections(), st.lists(_completions(), min_size=1, max_size=6), st.sets(st.sampled_from(sorted(BY_NAME))))
def test_completions_never_contradict(
    projections: Projections, completions: list[dict[str, Answer]], unknown: set[str]
) -> None:
    # All completions share the answers that are known; they differ in the unknown ones only.
    known: dict[str, Answer] = {name: answer for name, answer in completions[0].items() if name not in unknown}
    partial = projections.evaluate(read_all(RULES, {name: known.get(name, LATE) for name in BY_NAME}))
    for completion in completions:
        full = projections.evaluate(read_all(RULES, completion | known))
        for name, score in full.scores.items():
            assert score.known
            assert partial.scores[name].low <= score.low <= partial.scores[name].high
        for name, verdict in full.outputs.items():
            told = partial.outputs[name]
            assert told.truth in (Truth.UNKNOWN, verdict.truth)
            if told.truth is Truth.TRUE:
                assert told.confidence <= verdict.confidence
            assert verdict.truth is not Truth.UNKNOWN


@settings(max_examples=300, deadline=None)
@given(st.lists(PREDICATES, min_size=1, max_size=4), NUMBERS)
def test_regions_agree_with_predicates(bounds: list[Predicate], value: float) -> None:
    holding = [one.holds(value) for one in bounds]
    first = holding.index(True) if True in holding else None
    for index, (one, pieces) in enumerate(zip(bounds, first_regions(bounds), strict=True)):
        assert contains(region(one), value, value) is (Truth.TRUE if one.holds(value) else Truth.FALSE)
        assert contains(pieces, value, value) is (Truth.TRUE if index == first else Truth.FALSE)
