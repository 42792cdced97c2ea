"""The states that set the current turn against what came before."""

from __future__ import annotations

import pytest

from router.config.plan import StateKind
from router.wire.request import opens, state_text
from tests.support.signals import chat

ANSWER = {"role": "assistant", "content": "It is 42."}


def test_feedback_is_about_the_answer_before_the_current_turn() -> None:
    asked = chat("what?", {"role": "assistant", "content": "Hm."}, "and?", ANSWER, "wrong!")
    assert state_text(asked, StateKind.FEEDBACK) == "Assistant: It is 42.\n\nUser: wrong!"


def test_relation_reads_up_to_two_earlier_user_turns() -> None:
    asked = chat("one", "two", ANSWER, "three", "four")
    assert state_text(asked, StateKind.RELATION) == "User: two\n\nUser: three\n\nUser: four"


@pytest.mark.parametrize("kind", [StateKind.FEEDBACK, StateKind.RELATION])
def test_a_first_turn_opens_and_is_not_asked_about(kind: StateKind) -> None:
    assert state_text(chat("hello"), kind) == ""
    assert opens(chat("hello"), kind)
    assert not opens(chat("hello", ANSWER, "more"), kind)


def test_nothing_opens_without_a_current_turn() -> None:
    assert not opens(chat({"role": "user", "content": None}), StateKind.RELATION)
    assert not opens(chat("hello"), StateKind.USER)


def test_a_long_answer_gives_its_end() -> None:
    asked = chat("x", {"role": "assistant", "content": "é" * 20_000 + "END"}, "ok")
    text = state_text(asked, StateKind.FEEDBACK)
    assert text.endswith("END\n\nUser: ok")
    assert len(text.encode()) < 17_000
