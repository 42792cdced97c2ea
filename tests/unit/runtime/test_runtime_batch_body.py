from __future__ import annotations

from typing import Any

import pytest

from router.runtime.batch_body import read_batch
from router.runtime.body import BadBody, Unsupported

NOUL = {"type": "noul", "instructions": "Is it?"}
BATCH: dict[str, Any] = {
    "states": [{"id": "b", "state": "x"}, {"id": "a", "state": {"request": "y"}}],
    "questions": {"q": NOUL},
}


def places(data: Any, most: int = 1024) -> list[tuple[str | int, ...]]:
    with pytest.raises(BadBody) as caught:
        read_batch(data, most)
    return [problem.loc for problem in caught.value.problems]


def test_states_keep_their_order_and_share_the_questions() -> None:
    body = read_batch(BATCH | {"model": "m", "options": {"deadline_ms": 5}, "trace": 1}, 1024).body
    assert list(body.states) == ["b", "a"]
    assert body.main is None
    assert (body.model, body.deadline_ms, body.ignored) == ("m", 5, ("trace",))


@pytest.mark.parametrize(
    ("change", "loc"),
    [
        ({"states": []}, ("body", "states")),
        ({"states": {}}, ("body", "states")),
        ({"states": ["x"]}, ("body", "states", 0)),
        ({"states": [{"id": "a", "state": "x"}, {"id": "a", "state": "y"}]}, ("body", "states", 1, "id")),
        ({"states": [{"id": " ", "state": "x"}]}, ("body", "states", 0, "id")),
        ({"states": [{"id": "a" * 129, "state": "x"}]}, ("body", "states", 0, "id")),
        ({"states": [{"id": 1, "state": "x"}]}, ("body", "states", 0, "id")),
        ({"states": [{"id": "a"}]}, ("body", "states", 0, "state")),
        ({"states": [{"id": "a", "state": "x", "more": 1}]}, ("body", "states", 0, "more")),
        ({"questions": {}}, ("body", "questions")),
        ({"questions": {"q": {"type": "noul"}}}, ("body", "questions", "q", "instructions")),
    ],
)
def test_a_bad_batch_is_refused_with_the_place(change: dict[str, Any], loc: tuple[str | int, ...]) -> None:
    assert loc in places(BATCH | change)


def test_states_times_questions_are_bounded() -> None:
    states = [{"id": str(index), "state": "x"} for index in range(512)]
    questions = {str(index): NOUL for index in range(3)}
    assert read_batch({"states": states, "questions": dict(list(questions.items())[:2])}, 1024)
    assert places({"states": states, "questions": questions}, 10_000) == [("body", "questions")]
    assert places({"states": states, "questions": {"q": NOUL}}, 511) == [("body", "questions")]
    many = [{"id": str(index), "state": "x"} for index in range(1025)]
    assert places({"states": many, "questions": {"q": NOUL}}) == [("body", "states")]


def test_media_are_named_as_what_is_lacking() -> None:
    with pytest.raises(Unsupported):
        read_batch(BATCH | {"images": ["x"]}, 1024)


def test_what_is_missing_is_told_together() -> None:
    assert set(places({})) == {("body", "states"), ("body", "questions")}
    assert places([]) == [("body",)]
