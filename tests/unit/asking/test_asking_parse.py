from typing import Any

import orjson
import pytest

from router.asking.errors import BadResponse
from router.asking.parse import compose_set, read_answer, read_answers
from router.asking.plan import Composition
from router.config.plan import StateKind
from router.questions import (
    Answer,
    ChoiceAnswer,
    NoulAnswer,
    Option,
    Question,
    QuestionType,
    ScoreAnswer,
    SetAnswer,
    SimilarityAnswer,
    Span,
    SpanAnswer,
    Unknown,
    UnknownReason,
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

INVALID = Unknown(UnknownReason.INVALID_ANSWER)
TEXT = "ab 😀 cd"


def read(question: Question, answer: Any = None, **beside: Any) -> Answer:
    envelope = {"answers": {} if answer is None else {"q0": answer}} | {k: {"q0": v} for k, v in beside.items()}
    return read_answer(envelope, asked(question), TEXT)


def test_noul() -> None:
    assert read(noul(), {"type": "noul", "noul": 0.7}) == NoulAnswer(0.7)
    assert read(noul(), {"type": "noul", "noul": 1, "confidence": None}) == NoulAnswer(1.0)
    assert read(noul(), {"type": "noul", "noul": 1.0000001}) == NoulAnswer(1.0)  # float noise


@pytest.mark.parametrize(
    "answer",
    [
        None,
        [],
        "yes",
        {},
        {"noul": 0.7},
        {"type": "choice", "noul": 0.7},
        {"type": "noul"},
        {"type": "noul", "noul": None},
        {"type": "noul", "noul": True},
        {"type": "noul", "noul": "0.7"},
        {"type": "noul", "noul": 1.01},
        {"type": "noul", "noul": -0.01},
        {"type": "noul", "noul": float("nan")},
        {"type": "noul", "noul": float("inf")},
    ],
)
def test_a_noul_that_does_not_fit_is_unknown(answer: Any) -> None:
    assert read(noul(), answer) == INVALID


def chosen(**changes: Any) -> dict[str, Any]:
    return {"type": "choice", "choice": "a", "probabilities": {"a": 0.8, "b": 0.2}, "confidence": 0.6} | changes


def test_choice() -> None:
    assert read(choice("b", "a"), chosen()) == ChoiceAnswer("a", {"b": 0.2, "a": 0.8}, 0.6)


def test_a_server_that_rounds_to_two_decimals_is_believed() -> None:
    thirds = chosen(probabilities={"a": 0.33, "b": 0.33, "c": 0.33})
    assert isinstance(read(choice("a", "b", "c"), thirds), ChoiceAnswer)


@pytest.mark.parametrize(
    "changes",
    [
        {"choice": "c"},
        {"choice": None},
        {"choice": "b"},  # not the most probable one
        {"probabilities": {"a": 1.0}},
        {"probabilities": {"a": 0.8, "b": 0.1, "c": 0.1}},
        {"probabilities": {"a": 0.8, "b": 0.3}},
        {"probabilities": {"a": 0.8, "b": 0.1}},
        {"probabilities": {"a": 1.2, "b": -0.2}},
        {"probabilities": [0.8, 0.2]},
        {"confidence": None},
        {"confidence": 1.5},
    ],
)
def test_a_choice_that_does_not_fit_is_unknown(changes: dict[str, Any]) -> None:
    assert read(choice("a", "b"), chosen(**changes)) == INVALID


def scored(**changes: Any) -> dict[str, Any]:
    probabilities = {"2": 0.7, "0": 0.1, "1": 0.2}
    return {"type": "score", "score": 1.6, "probabilities": probabilities, "confidence": 0.5} | changes


def test_score() -> None:
    assert read(score("l", "m", "h"), scored()) == ScoreAnswer(1.6, (0.1, 0.2, 0.7), 0.5)


@pytest.mark.parametrize(
    "changes",
    [
        {"score": 0.4},  # not the expectation of its own distribution
        {"score": None},
        {"score": 2.5},
        {"probabilities": {"0": 0.5, "1": 0.5}},
        {"probabilities": {"a": 0.1, "b": 0.2, "c": 0.7}},
        {"probabilities": {"0": 0.1, "1": 0.2, "2": 0.6}},
        {"confidence": "high"},
    ],
)
def test_a_score_that_does_not_fit_is_unknown(changes: dict[str, Any]) -> None:
    assert read(score("l", "m", "h"), scored(**changes)) == INVALID


def test_a_set_stands_beside_the_answers() -> None:
    found = {"selected": ["x"], "probabilities": {"y": 0.4, "x": 0.9}}
    expected = SetAnswer(frozenset({"x"}), {"x": 0.9, "y": 0.4})
    assert read(label_set("x", "y"), sets=found) == expected
    assert read(label_set("x", "y"), {"type": "set", **found}) == expected


@pytest.mark.parametrize(
    "found",
    [
        {"selected": ["z"], "probabilities": {"x": 0.9, "y": 0.4}},
        {"selected": "x", "probabilities": {"x": 0.9, "y": 0.4}},
        {"selected": [["x"]], "probabilities": {"x": 0.9, "y": 0.4}},
        {"selected": [], "probabilities": {"x": 0.9}},
        {"selected": [], "probabilities": {"x": 0.9, "y": 4}},
        {"probabilities": {"x": 0.9, "y": 0.4}},
        [],
    ],
)
def test_a_set_that_does_not_fit_is_unknown(found: Any) -> None:
    assert read(label_set("x", "y"), sets=found) == INVALID


def at(start: Any, end: Any, label: Any = "id", probability: Any = 0.9, **more: Any) -> dict[str, Any]:
    return {"label": label, "start": start, "end": end, "probability": probability, **more}


def test_spans_count_code_points() -> None:
    found = [at(3, 4, text="😀"), at(5, 7, text="cd", probability=0.6)]
    assert read(span("id"), {"type": "noul", "noul": 0.95}, spans=found) == SpanAnswer(
        (Span("id", 3, 4, 0.9), Span("id", 5, 7, 0.6)), 0.95
    )


def test_the_best_span_stands_in_for_a_word_probability_that_was_not_told() -> None:
    assert read(span("id"), spans=[at(0, 2)]) == SpanAnswer((Span("id", 0, 2, 0.9),), 0.9)
    assert read(span("id"), spans=[]) == SpanAnswer((), 0.0)


@pytest.mark.parametrize(
    "item",
    [
        at(0, 2, label="other"),
        at(0, 2, label=None),
        at(2, 2),
        at(2, 1),
        at(-1, 2),
        at(0, len(TEXT) + 1),
        at(0.0, 2),
        at(True, 2),
        at(0, 2, probability=1.5),
        at(0, 2, probability=None),
        at(5, 7, text="d"),  # bytes, where code points are meant
        "id",
        None,
    ],
)
def test_one_bad_span_makes_the_answer_unknown(item: Any) -> None:
    assert read(span("id"), spans=[at(0, 1), item]) == INVALID


@pytest.mark.parametrize("found", [None, {}, "none"])
def test_spans_must_be_there(found: Any) -> None:
    assert read(span("id"), {"type": "noul", "noul": 0.1}, spans=found) == INVALID


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("deadline_exceeded", UnknownReason.TIMEOUT),
        ("max_length_exceeded", UnknownReason.INPUT_LIMIT),
        ("scan_budget_exceeded", UnknownReason.INPUT_LIMIT),
        ("unavailable", UnknownReason.UNAVAILABLE),
        ("overloaded", UnknownReason.OVERLOADED),
        ("invalid_question", UnknownReason.INVALID_ANSWER),
        ("something_new", UnknownReason.INVALID_ANSWER),
        (["?"], UnknownReason.INVALID_ANSWER),
    ],
)
@pytest.mark.parametrize("question", [noul(), choice("a", "b"), label_set("x"), span("id")])
def test_a_question_that_failed_alone_says_why(question: Question, code: Any, reason: UnknownReason) -> None:
    assert read(question, {"type": question.type.value, "error": code, "message": "no"}) == Unknown(reason)


def test_a_preset_with_unknown_labels_takes_the_labels_it_gets() -> None:
    known = capabilities(presets={"p": QuestionType.CHOICE})
    envelope = {"answers": {"q0": chosen()}}
    answer = read_answer(envelope, asked(Question(QuestionType.CHOICE, preset="p"), known), TEXT)
    assert answer == ChoiceAnswer("a", {"a": 0.8, "b": 0.2}, 0.6)


def test_one_bad_answer_does_not_touch_the_others_and_states_are_read_apart() -> None:
    plan = stage(rule("a", noul("A?")), rule("b", noul("B?")), rule("c", noul("A?"), state=StateKind.SYSTEM))
    call = only_call(plan, user="u", system="s")
    body = {
        "answers": {"q0": {"type": "noul", "noul": 0.1}, "q1": {"type": "noul", "noul": "?"}},
        "states": {"s1": {"answers": {"q0": {"type": "noul", "noul": 0.2}}}},
    }
    assert read_answers(orjson.dumps(body), call) == {"a": NoulAnswer(0.1), "b": INVALID, "c": NoulAnswer(0.2)}
    assert read_answers(b"{}", call) == {"a": INVALID, "b": INVALID, "c": INVALID}


@pytest.mark.parametrize("body", [b"", b"[]", b"null", b"<html>", b'{"answers":NaN}', b"\xff"])
def test_a_response_that_is_no_object_is_bad(body: bytes) -> None:
    with pytest.raises(BadResponse):
        read_answers(body, only_call(stage(rule("a", noul()))))


def test_a_composed_set_is_put_together_and_marked() -> None:
    plan = stage(rule("r", label_set("x", "y", "z")), on=[deployment(capabilities=capabilities(NO_SET))])
    nouls = {f"q{i}": {"type": "noul", "noul": p} for i, p in enumerate((0.5, 0.49, 0.9))}
    assert read_answers(orjson.dumps({"answers": nouls}), only_call(plan)) == {
        "r": SetAnswer(frozenset({"x", "z"}), {"x": 0.5, "y": 0.49, "z": 0.9}, composed=True)
    }


def test_a_label_without_an_answer_leaves_the_set_unknown() -> None:
    late = Unknown(UnknownReason.TIMEOUT)
    assert compose_set(Composition(("x", "y"), 0.5), [NoulAnswer(0.9), late]) == late


ALIKE = Question(QuestionType.SIMILARITY, options=(Option("0", "a"), Option("1", "b")))


def test_similarity() -> None:
    assert read(ALIKE, {"type": "similarity", "similarities": [0.25, -1]}) == SimilarityAnswer((0.25, -1.0))


@pytest.mark.parametrize(
    "answer",
    [
        {"type": "noul", "noul": 0.5},
        {"type": "similarity"},
        {"type": "similarity", "similarities": {"0": 0.5, "1": 0.5}},
        {"type": "similarity", "similarities": [0.5]},
        {"type": "similarity", "similarities": [0.5, 0.5, 0.5]},
        {"type": "similarity", "similarities": [0.5, "0.5"]},
        {"type": "similarity", "similarities": [0.5, True]},
        {"type": "similarity", "similarities": [0.5, 1.1]},
    ],
)
def test_a_similarity_that_does_not_fit_is_unknown(answer: Any) -> None:
    assert read(ALIKE, answer) == INVALID
