from __future__ import annotations

import json
from typing import Any

import orjson
import pytest

from router.questions import Option, QuestionType, SpanHead
from router.runtime.body import BadBody, Unsupported, read_body, read_questions
from router.runtime.encoding import BadEncoding, TooLarge, UnknownEncoding, decode
from router.runtime.json_text import MOST_VALUES, parse_json

NOUL = {"type": "noul", "instructions": "Is it?"}
ASKED = {"state": "x", "questions": {"q": NOUL}}
CHOICE = {"type": "choice", "instructions": "Which?", "criteria": {"a": None, "b": "the second"}}


def problems(data: Any) -> list[tuple[tuple[str | int, ...], str]]:
    with pytest.raises(BadBody) as caught:
        read_body(data)
    return [(problem.loc, problem.type) for problem in caught.value.problems]


def question_problem(question: Any) -> tuple[str | int, ...]:
    (first, *_) = problems({"state": "SECRET", "questions": {"q": question}})
    assert first[0][:3] == ("body", "questions", "q")
    return first[0][3:]


def test_the_smallest_body() -> None:
    body = read_body({"state": "x", "questions": {"q": NOUL}})
    assert body.main is not None
    assert body.main.questions["q"].asked.question.type is QuestionType.NOUL
    assert (body.model, body.deadline_ms, body.return_meta, body.states) == (None, None, False, {})


def test_all_of_a_body() -> None:
    body = read_body(
        {
            "model": "m",
            "state": {"request": "x"},
            "questions": {"c": CHOICE},
            "states": {"other": {"state": ["y"], "questions": {"q": NOUL}}},
            "options": {"deadline_ms": 250, "return_meta": True},
        }
    )
    assert [len(block.questions) for block in body.blocks] == [1, 1]
    assert (body.deadline_ms, body.return_meta) == (250, True)


def test_named_states_may_stand_alone() -> None:
    assert read_body({"states": {"a": {"state": "x", "questions": {"q": NOUL}}}}).main is None


@pytest.mark.parametrize(
    ("listed", "criteria"),
    [
        ({"choices": [{"key": "a"}, {"key": "b", "description": "B"}]}, {"criteria": {"a": None, "b": "B"}}),
        ({"choices": [{"key": "a"}, {"key": "b", "description": {"x": 1}}]}, {"criteria": {"a": " ", "b": {"x": 1}}}),
    ],
)
def test_lists_and_criteria_are_two_spellings(listed: dict[str, Any], criteria: dict[str, Any]) -> None:
    base = {"type": "choice", "instructions": "Which?"}
    asked = [read_questions({"q": base | form})["q"].asked for form in (listed, criteria)]
    assert asked[0] == asked[1]


def test_span_fields() -> None:
    question = {"type": "span", "instructions": "Where?", "labels": [{"key": "l"}], "threshold": 0, "head": "broad"}
    asked = read_questions({"q": question | {"over": "answer"}})["q"].asked
    assert asked.question.options == (Option("l"),)
    assert (asked.question.threshold, asked.question.head, asked.over) == (0.0, SpanHead.BROAD, ("answer",))


def test_structured_instructions_become_json() -> None:
    asked = read_questions({"q": {"type": "noul", "instructions": {"ask": ["é"]}}})["q"].asked
    assert asked.question.instructions == '{"ask":["é"]}'


@pytest.mark.parametrize(
    ("data", "loc"),
    [
        ([], ("body",)),
        ({}, ("body", "state")),
        ({"state": "x"}, ("body", "questions")),
        ({"state": None, "questions": {"q": NOUL}}, ("body", "state")),
        ({"state": 3, "questions": {"q": NOUL}}, ("body", "state")),
        ({"state": "x", "questions": {}}, ("body", "questions")),
        ({"state": "x", "questions": [NOUL]}, ("body", "questions")),
        ({"state": "x", "questions": {" ": NOUL}}, ("body", "questions", " ")),
        (ASKED | {"model": ""}, ("body", "model")),
        (ASKED | {"options": []}, ("body", "options")),
        (ASKED | {"options": {"deadline_ms": 0}}, ("body", "options", "deadline_ms")),
        (
            {"state": "x", "questions": {"q": NOUL}, "options": {"deadline_ms": True}},
            ("body", "options", "deadline_ms"),
        ),
        (ASKED | {"options": {"return_meta": 1}}, ("body", "options", "return_meta")),
        (ASKED | {"options": {"profile": "p"}}, ("body", "options", "profile")),
        (ASKED | {"states": {}}, ("body", "states")),
        ({"states": {"a": {"state": "x"}}}, ("body", "states", "a", "questions")),
        ({"states": {"a": {"state": "x", "questions": {"q": NOUL}, "extra": 1}}}, ("body", "states", "a", "extra")),
    ],
)
def test_a_bad_body_is_refused_with_the_place(data: Any, loc: tuple[str, ...]) -> None:
    assert loc in [place for place, _ in problems(data)]


@pytest.mark.parametrize(
    ("question", "loc"),
    [
        (None, ()),
        ({"instructions": "x"}, ("type",)),
        ({"type": "box", "instructions": "x"}, ("type",)),
        ({"type": ["noul"], "instructions": "x"}, ("type",)),
        (NOUL | {"extra": 1}, ("extra",)),
        ({"type": "noul"}, ("instructions",)),
        ({"type": "noul", "instructions": "  "}, ("instructions",)),
        ({"type": "noul", "instructions": 3}, ("instructions",)),
        (NOUL | {"criteria": {"maybe": "x"}}, ("criteria", 0)),
        (NOUL | {"criteria": ["x"]}, ("criteria",)),
        (NOUL | {"labels": [{"key": "a"}]}, ("labels",)),
        (NOUL | {"threshold": 0.5}, ("threshold",)),
        (NOUL | {"head": "router"}, ("head",)),
        (NOUL | {"preset": 3}, ("preset",)),
        (NOUL | {"over": []}, ("over",)),
        (NOUL | {"over": 3}, ("over",)),
        (NOUL | {"require_full_input": "yes"}, ("require_full_input",)),
        (NOUL | {"overflow": "drop"}, ("overflow",)),
        (NOUL | {"require_full_input": True, "overflow": "truncate"}, ("overflow",)),
        ({"type": "choice", "instructions": "x"}, ("criteria",)),
        (CHOICE | {"criteria": {"a": None}}, ("criteria",)),
        (CHOICE | {"criteria": {str(i): None for i in range(256)}}, ("criteria",)),
        (CHOICE | {"criteria": {"a": 1, "b": None}}, ("criteria", 0)),
        (CHOICE | {"criteria": {"a": None, " ": None}}, ("criteria", 1)),
        (CHOICE | {"choices": [{"key": "a"}, {"key": "b"}]}, ("choices",)),
        (CHOICE | {"preset": "domains"}, ("preset",)),
        ({"type": "choice", "instructions": "x", "choices": [{"key": "a"}, {"key": "a"}]}, ("choices",)),
        ({"type": "choice", "instructions": "x", "choices": [{"key": "a"}, {"key": "b", "x": 1}]}, ("choices", 1)),
        ({"type": "score", "instructions": "x", "criteria": {"0": "low", "1": "high"}}, ("criteria",)),
        ({"type": "score", "instructions": "x", "criteria": ["low"]}, ("criteria",)),
        ({"type": "score", "instructions": "x", "criteria": ["low"] * 11}, ("criteria",)),
        ({"type": "score", "instructions": "x", "criteria": ["low", None]}, ("criteria", 1)),
        ({"type": "set", "instructions": "x", "labels": []}, ("labels",)),
        ({"type": "set", "instructions": "x", "labels": [{"key": "a"}], "threshold": 1.1}, ("threshold",)),
        ({"type": "span", "instructions": "x", "labels": [{"key": "a"}], "head": "wide"}, ("head",)),
        ({"type": "span", "instructions": "x", "labels": [{"key": "a"}], "over": ["a", "b"]}, ("over",)),
    ],
)
def test_a_bad_question_is_refused_with_the_place(question: Any, loc: tuple[str | int, ...]) -> None:
    assert question_problem(question) == loc


def test_fields_of_the_body_that_nobody_knows_are_passed_over_and_named() -> None:
    assert read_body(ASKED | {"seed": 1, "x_trace": "t"}).ignored == ("seed", "x_trace")


@pytest.mark.parametrize(
    ("media", "needs"),
    [
        ({"images": []}, ("image",)),
        ({"assets": {"a": {}}, "videos": ["v"], "images": ["i"]}, ("image", "video")),
        ({"audio": ["a"]}, ("audio",)),
    ],
)
def test_what_a_text_model_cannot_read_is_named(media: dict[str, Any], needs: tuple[str, ...]) -> None:
    with pytest.raises(Unsupported) as caught:
        read_body(ASKED | media)
    assert caught.value.needs == needs
    assert read_body(ASKED | dict.fromkeys(media)).ignored == ()


def test_every_problem_is_told_at_once_and_none_repeats_text() -> None:
    with pytest.raises(BadBody) as caught:
        read_body(
            {"state": 1, "questions": {"a": {"type": "noul", "instructions": ""}, "b": CHOICE | {"zzz": "SECRET"}}}
        )
    assert len(caught.value.problems) == 3
    assert "SECRET" not in repr(caught.value.problems)


def test_a_set_must_not_make_an_id_that_is_taken() -> None:
    labels = {"type": "set", "instructions": "x", "labels": [{"key": "b"}]}
    with pytest.raises(BadBody, match="1 problems"):
        read_body({"state": "x", "questions": {"a": labels, "a.b": NOUL}})
    assert read_body({"state": "x", "questions": {"a": labels, "a.c": NOUL}})


def test_questions_of_all_states_count_together() -> None:
    data = {"state": "x", "questions": {"q": NOUL}, "states": {"a": {"state": "x", "questions": {"q": NOUL}}}}
    assert read_body(data, 2)
    with pytest.raises(BadBody):
        read_body(data, 1)


def test_options_of_all_questions_count_together() -> None:
    wide = CHOICE | {"criteria": {str(key): None for key in range(255)}}
    assert read_body({"state": "x", "questions": {str(name): wide for name in range(64)}})
    with pytest.raises(BadBody, match="1 problems"):
        read_body({"state": "x", "questions": {str(name): wide for name in range(65)}})


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"\xff\xfe",
        b'{"a": NaN}',
        b'{"a": Infinity}',
        b'{"a": 1, "a": 2}',
        b'{"x": {"a": 1, "\\u0061": 2}}',
        b'{"a": "\\ud800"}',
        b'{"a": 1} {}',
        b"[" * 100_000,
        b'{"state": ' + b"[" * 200 + b"]" * 200 + b"}",
        b'{"a": ' * 3000 + b"1" + b"}" * 3000,
        b'{"a": ' + b"9" * 5000 + b"}",
    ],
)
def test_what_is_not_json_or_not_unambiguous_is_refused(data: bytes) -> None:
    with pytest.raises(BadBody) as caught:
        parse_json(data)
    assert caught.value.malformed


@pytest.mark.parametrize("gap", [b"", b" "])
def test_a_body_of_very_many_values_is_refused_before_any_is_made(gap: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    most = b"[" + (b"{}," + gap) * (MOST_VALUES - 2) + b"{}]"
    assert len(parse_json(most)) == MOST_VALUES - 1
    monkeypatch.setattr(orjson, "loads", None)
    for many in (b"[{}," + most[1:], b"[" + most + b"]", b'{"a":' + gap + most + b"}", b"[" * 8_000_000):
        with pytest.raises(BadBody) as caught:
            parse_json(many)
        assert (caught.value.problems[0].msg, caught.value.malformed) == (f"at most {MOST_VALUES} JSON values", False)


@pytest.mark.parametrize("text", [",", '[{,"', "\\", '\\"', '\\\\",'])
def test_a_long_text_of_commas_and_brackets_is_one_value(text: str) -> None:
    body = {"state": text * 1_000_000}
    for data in (json.dumps(body).encode(), orjson.dumps(body)):
        assert parse_json(data) == body


def test_encodings() -> None:
    import gzip

    import zstandard

    plain = b'{"state": "x"}' * 100
    assert decode(plain, [], 10_000) == plain
    assert decode(gzip.compress(plain), ["gzip"], 10_000) == plain
    assert decode(zstandard.compress(plain), ["ZSTD"], 10_000) == plain
    for bomb, name in ((gzip.compress(plain), "gzip"), (zstandard.compress(plain), "zstd")):
        with pytest.raises(TooLarge):
            decode(bomb, [name], 1000)
    for unknown in (["br"], ["gzip, gzip"]):
        with pytest.raises(UnknownEncoding):
            decode(b"not compressed", unknown, 1000)
    streamed = zstandard.ZstdCompressor().compressobj()
    unsized = streamed.compress(plain) + streamed.flush()
    assert decode(unsized, ["zstd"], 10_000) == plain
    for whole, name in ((gzip.compress(plain), "gzip"), (zstandard.compress(plain), "zstd"), (unsized, "zstd")):
        for bad in (b"", b"not compressed", whole[:3], whole[: len(whole) // 2], whole[:-5], b"x" + whole[1:]):
            with pytest.raises(BadEncoding):
                decode(bad, [name], 10_000)
