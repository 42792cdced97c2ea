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
PROBABILITY = st.floats(-0.1, 1.1) | st.sampled_from([0.0, 0.2, 0.3, 0.5, 1.0])
BY_LABEL = st.dictionaries(st.sampled_from("abc012"), PROBABILITY, max_size=3)
NEARLY = st.fixed_dictionaries(
    {"type": st.sampled_from(["noul", "choice", "score"])},
    optional={
        "noul": PROBABILITY,
        "choice": st.sampled_from("abc"),
        "score": st.floats(-1, 3),
        "probabilities": BY_LABEL | st.just({"a": 0.5, "b": 0.3, "c": 0.2}) | st.just({"0": 0.5, "1": 0.3, "2": 0.2}),
        "confidence": PROBABILITY,
        "selected": st.lists(st.sampled_from("abc")),
        "spans": st.lists(
            st.fixed_dictionaries(
                {"label": st.sampled_from("abc"), "start": st.integers(-1, 9), "end": st.integers(0, 11)}
                | {"probability": PROBABILITY}
            ),
            max_size=3,
        ),
    },
)


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
@settings(max_examples=60, deadline=None)
@given(envelope=st.dictionaries(KEYS, ANY_JSON, max_size=4), answer=NEARLY | ANY_JSON)
def test_any_answer_is_believed_only_when_it_fits(question: Question, envelope: dict[str, Any], answer: Any) -> None:
    known = capabilities(presets={"p": question.type})
    for found in (envelope, {**envelope, "answers": {"q0": answer}}):
        check(read_answer(found, asked(question, known), TEXT), question)
    beside = {"answers": {}, "sets": {"q0": answer}, "spans": {"q0": answer}}
    check(read_answer(beside, asked(question, known), TEXT), question)


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
