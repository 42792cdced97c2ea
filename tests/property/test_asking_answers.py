"""Whatever a server sends: nothing raises, and what is believed keeps the promises of `router.questions`."""

import math
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from router.asking.errors import BadResponse
from router.asking.parse import read_answer, read_answers
from router.config.plan import StateKind
from router.questions import (
    Answer,
    ChoiceAnswer,
    NoulAnswer,
    Question,
    QuestionType,
    ScoreAnswer,
    SetAnswer,
    SpanAnswer,
    Unknown,
)
from tests.unit.asking.asking_builders import (
    NO_SET,
    asked,
    capabilities,
    choice,
    deployment,
    label_set,
    noul,
    only_call,
    rule,
    score,
    span,
    stage,
)

TEXT = "abc 😀 def"
QUESTIONS: list[Question] = [
    noul(),
    choice("a", "b", "c"),
    score("0", "1", "2"),
    label_set("a", "b"),
    span("a", "b"),
    Question(QuestionType.CHOICE, preset="p"),
    Question(QuestionType.SCORE, preset="p"),
]
ENVELOPE_KEYS = ["answers", "sets", "spans", "states", "q0", "q1", "s1"]
ANSWER_KEYS = ["type", "noul", "choice", "score", "confidence", "probabilities", "selected", "error"]
SPAN_KEYS = ["label", "start", "end", "text", "probability"]
KEYS = st.sampled_from([*ENVELOPE_KEYS, *ANSWER_KEYS, *SPAN_KEYS, "a", "b", "c", "0", "1", "2"])
NUMBERS = st.integers(-2, 12) | st.floats() | st.sampled_from([0.0, 0.25, 0.5, 1.0])
SCALARS = st.none() | st.booleans() | NUMBERS | KEYS
ANY_JSON = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=6), max_leaves=20
)
PROBABILITY = st.floats(0, 1)


@st.composite
def distributions(draw: st.DrawFn, keys: list[str]) -> dict[str, float]:
    """Probabilities that sum to 1, as they are or rounded to two decimals as some servers do."""
    weights = [draw(st.floats(0.01, 1)) for _ in keys]
    digits = draw(st.sampled_from([2, 15]))
    return {key: round(weight / sum(weights), digits) for key, weight in zip(keys, weights, strict=True)}


@st.composite
def fitting(draw: st.DrawFn, question: Question) -> dict[str, Any]:
    """An envelope with an answer that fits `question`."""
    keys = [option.key for option in question.options] or ["0", "1"]
    answer: dict[str, Any] = {"type": question.type.value, "confidence": draw(PROBABILITY)}
    if question.type is QuestionType.SET:
        found = {
            "selected": draw(st.lists(st.sampled_from(keys))),
            "probabilities": {k: draw(PROBABILITY) for k in keys},
        }
        return {"answers": {}, "sets": {"q0": found}}
    if question.type is QuestionType.SPAN:
        return {"answers": {}, "spans": {"q0": draw(st.lists(_spans(keys), max_size=3))}}
    if question.type is QuestionType.NOUL:
        return {"answers": {"q0": {**answer, "noul": draw(PROBABILITY)}}}
    probabilities = draw(distributions(keys))
    answer["probabilities"] = probabilities
    answer["choice"] = max(keys, key=lambda key: probabilities[key])
    answer["score"] = sum(i * p for i, p in enumerate(probabilities.values()))
    return {"answers": {"q0": answer}}


@st.composite
def _spans(draw: st.DrawFn, keys: list[str]) -> dict[str, Any]:
    start = draw(st.integers(0, len(TEXT) - 1))
    end = draw(st.integers(start + 1, len(TEXT)))
    return {"label": draw(st.sampled_from(keys)), "start": start, "end": end, "probability": draw(PROBABILITY)}


def spoil(value: Any, path: list[int], junk: Any) -> Any:
    """`value` with the leaf or branch that `path` leads to replaced by `junk`."""
    if not path or not isinstance(value, dict | list) or not value:
        return junk
    keys = list(value) if isinstance(value, dict) else list(range(len(value)))
    key = keys[path[0] % len(keys)]
    changed = value.copy()
    changed[key] = spoil(value[key], path[1:], junk)
    return changed


def check(answer: Answer, question: Question) -> None:
    labels = {option.key for option in question.options}
    match answer:
        case Unknown():
            return
        case NoulAnswer(p):
            assert question.type is QuestionType.NOUL
            assert 0 <= p <= 1
        case ChoiceAnswer(chosen, probabilities, confidence):
            assert question.type is QuestionType.CHOICE
            assert chosen in probabilities
            assert not labels or probabilities.keys() == labels
            _distribution(list(probabilities.values()), confidence)
        case ScoreAnswer(value, by_level, confidence):
            assert question.type is QuestionType.SCORE
            assert not labels or len(by_level) == len(labels)
            assert 0 <= value <= len(by_level) - 1
            _distribution(list(by_level), confidence)
        case SetAnswer(selected, probabilities, composed):
            assert question.type is QuestionType.SET
            assert probabilities.keys() == labels >= selected
            assert not composed
            assert all(0 <= p <= 1 for p in probabilities.values())
        case SpanAnswer(spans, word):
            assert question.type is QuestionType.SPAN
            assert 0 <= word <= 1
            assert all(0 <= s.start < s.end <= len(TEXT) and s.label in labels for s in spans)
            assert all(0 <= s.probability <= 1 for s in spans)


def _distribution(probabilities: list[float], confidence: float) -> None:
    assert all(0 <= p <= 1 for p in probabilities)
    assert 0 <= confidence <= 1
    assert math.isclose(sum(probabilities), 1, abs_tol=0.051)


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda q: f"{q.type}-{q.preset}")
@settings(max_examples=50, deadline=None)
@given(data=st.data())
def test_what_fits_is_believed_and_what_was_spoiled_only_where_it_still_fits(
    question: Question, data: st.DataObject
) -> None:
    question_asked = asked(question, capabilities(presets={"p": question.type}))
    envelope = data.draw(fitting(question))
    answer = read_answer(envelope, question_asked, TEXT)
    assert not isinstance(answer, Unknown)
    check(answer, question)
    path = data.draw(st.lists(st.integers(0, 9), min_size=1, max_size=5))
    spoiled = spoil(envelope, path, data.draw(SCALARS | ANY_JSON))
    check(read_answer(spoiled, question_asked, TEXT), question)


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda q: f"{q.type}-{q.preset}")
@settings(max_examples=30, deadline=None)
@given(envelope=st.dictionaries(KEYS, ANY_JSON, max_size=4), answer=ANY_JSON)
def test_any_junk_is_unknown_or_fits(question: Question, envelope: dict[str, Any], answer: Any) -> None:
    question_asked = asked(question, capabilities(presets={"p": question.type}))
    placed = {"answers": {"q0": answer}, "sets": {"q0": answer}, "spans": {"q0": answer}}
    for found in (envelope, envelope | placed):
        check(read_answer(found, question_asked, TEXT), question)


STAGE = stage(
    *(rule(f"r{i}", question) for i, question in enumerate(QUESTIONS)),
    rule("other", noul(), state=StateKind.SYSTEM),
    rule("composed", label_set("a", "b")),
    on=[deployment(capabilities=capabilities(NO_SET))],
)
CALL = only_call(STAGE, user=TEXT, system="else")


@settings(max_examples=100, deadline=None)
@given(body=st.binary(max_size=60) | ANY_JSON.map(lambda value: orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS)))
def test_any_body_answers_every_rule_or_is_a_bad_response(body: bytes) -> None:
    try:
        answers = read_answers(body, CALL)
    except BadResponse:
        return
    assert answers.keys() == {consumer.rule for consumer, _ in CALL.readers}
