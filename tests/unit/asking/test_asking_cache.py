from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from router.asking.answer_cache import CAPACITY, AnswerCache, capacity_from, question_digest, text_digest
from router.questions import NoulAnswer, Unknown, UnknownReason
from tests.unit.asking.asking_builders import asked, choice, noul

YES, NO = NoulAnswer(0.9), NoulAnswer(0.1)


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_the_answer_unused_for_longest_makes_room() -> None:
    cache = AnswerCache(2)
    cache.put(b"a", YES, 0)
    cache.put(b"b", NO, 0)
    assert cache.get(b"a") == YES
    cache.put(b"c", NO, 0)
    assert (cache.get(b"a"), cache.get(b"b"), len(cache)) == (YES, None, 2)


def test_an_unknown_answer_is_never_kept() -> None:
    cache = AnswerCache()
    cache.put(b"a", Unknown(UnknownReason.TIMEOUT), 0)
    assert cache.get(b"a") is None


def test_zero_keeps_nothing() -> None:
    cache = AnswerCache(0)
    cache.put(b"a", YES, 0)
    assert (cache.get(b"a"), len(cache)) == (None, 0)


def test_answers_of_others_models_grow_too_old() -> None:
    clock = Clock()
    cache = AnswerCache(ttl_s=600, clock=clock)
    cache.put(b"a", YES, 0)
    clock.now += 599.9
    assert cache.get(b"a") == YES  # being used does not make it younger
    clock.now += 0.1
    assert (cache.get(b"a"), len(cache)) == (None, 0)


def test_what_was_asked_before_everything_was_dropped_is_not_kept() -> None:
    cache = AnswerCache()
    epoch = cache.epoch
    cache.put(b"a", YES, epoch)
    cache.clear()
    cache.put(b"b", YES, epoch)
    assert len(cache) == 0
    cache.put(b"b", YES, cache.epoch)
    assert cache.get(b"b") == YES


def test_another_model_in_the_same_place_drops_everything() -> None:
    cache = AnswerCache()
    assert cache.answered_by("m 1") is False
    cache.put(b"a", YES, cache.epoch)
    assert cache.answered_by("m 1") is False
    assert cache.get(b"a") == YES
    assert cache.answered_by("m 2") is True
    assert cache.get(b"a") is None


@pytest.mark.parametrize(("text", "expected"), [(None, CAPACITY), ("", CAPACITY), ("0", 0), (" 17 ", 17)])
def test_the_size_is_read_from_the_environment(text: str | None, expected: int) -> None:
    assert capacity_from({} if text is None else {"VLLM_SRUN_RESULT_CACHE": text}) == expected


@pytest.mark.parametrize("text", ["-1", "many", "1e3", "99999999999", "٣"])
def test_a_size_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="VLLM_SRUN_RESULT_CACHE must be a number"):
        capacity_from({"VLLM_SRUN_RESULT_CACHE": text})


@settings(max_examples=100)
@given(st.text(), st.text())
def test_texts_share_a_key_only_when_they_are_the_same(one: str, other: str) -> None:
    assert (text_digest(one) == text_digest(other)) == (one == other)


def test_any_text_has_a_key_and_the_key_does_not_hold_it() -> None:
    assert len(text_digest("\ud800 lone")) == 16
    assert text_digest("secret") != question_digest(b"secret")


def test_a_question_is_known_by_what_it_asks_and_not_by_its_id() -> None:
    assert asked(noul("A?")).digest == asked(noul("A?")).digest
    assert len({asked(q).digest for q in (noul("A?"), noul("B?"), choice("x", "y"), choice("y", "x"))}) == 4
