from __future__ import annotations

import time
from typing import Any

import pytest

from router.config.plan import StateKind
from router.wire.neutral import LlmRequest, ToolText, Turn, build
from router.wire.request import state_text
from router.wire.state import EARLIER_BYTES
from router.wire.surface import Format
from router.wire.text import own_words

REMINDER = "<system-reminder>remember this</system-reminder>"


def request(*turns: tuple[Any, str], system: str = "", tools: tuple[ToolText, ...] = ()) -> LlmRequest:
    return build(Format.CHAT, "m", False, system, [Turn(role, text) for role, text in turns], tools)


def user_state(*turns: tuple[Any, str]) -> str:
    return state_text(request(*turns), StateKind.USER)


def conversation(*turns: tuple[Any, str]) -> str:
    return state_text(request(*turns), StateKind.CONVERSATION)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("plain", "plain"),
        (f"{REMINDER}mine", "mine"),
        (f" a {REMINDER} b {REMINDER}\n", "a  b"),
        (REMINDER * 3, ""),
        ("<system-reminder>open for ever", "<system-reminder>open for ever"),
        (f"{REMINDER} x <system-reminder> y", "x <system-reminder> y"),
        ("</system-reminder> x", "</system-reminder> x"),
        ("<system-reminder>two\nlines</system-reminder>z", "z"),
    ],
)
def test_own_words_are_what_stands_outside_reminders(text: str, words: str) -> None:
    assert own_words(text) == words


def test_many_open_reminders_take_no_time() -> None:
    started = time.perf_counter()
    own_words("<system-reminder>" * 200_000)
    own_words(REMINDER * 100_000)
    assert time.perf_counter() - started < 2


def test_the_user_state_is_the_last_turn_with_own_words() -> None:
    assert user_state(("user", "first"), ("assistant", "a"), ("user", " second ")) == "second"
    assert user_state(("user", "first"), ("assistant", "a"), ("user", REMINDER)) == "first"
    assert user_state(("user", "first"), ("assistant", "a"), ("user", "")) == "first"
    assert user_state(("user", f"{REMINDER}\nfirst"), ("assistant", "a"), ("tool", "r")) == "first"
    assert user_state(("user", "first"), ("assistant", "prefill")) == "first"


def test_without_own_words_the_last_reminder_is_read() -> None:
    other = "<system-reminder>older</system-reminder>"
    assert user_state(("user", other), ("assistant", "a"), ("user", REMINDER), ("user", " ")) == REMINDER


def test_nothing_to_read_is_an_empty_state() -> None:
    assert user_state() == ""
    assert user_state(("user", "  "), ("assistant", "a"), ("system", "s")) == ""
    for kind in StateKind:
        assert state_text(request(("user", " ")), kind) == ""


def test_a_conversation_is_the_turns_before_under_their_roles() -> None:
    assert conversation(("user", "only")) == "User: only"
    assert (
        conversation(
            ("system", "hidden"),
            ("user", f"{REMINDER}q1"),
            ("assistant", "a1"),
            ("tool", "r"),
            ("user", "q2"),
            ("tool", "x"),
        )
        == "User: q1\n\nAssistant: a1\n\nUser: q2"
    )


def test_a_conversation_goes_back_six_turns() -> None:
    turns = [("user" if place % 2 == 0 else "assistant", f"t{place}") for place in range(11)]
    text = conversation(*turns)
    assert text.startswith("User: t4\n\nAssistant: t5")
    assert text.endswith("Assistant: t9\n\nUser: t10")


def test_empty_turns_do_not_count_among_the_six() -> None:
    assert conversation(("user", "far"), *[("assistant", " ")] * 9, ("user", "now")) == "User: far\n\nUser: now"


@pytest.mark.parametrize("letter", ["x", "é", "😀"])
def test_the_earlier_part_is_bounded_and_keeps_its_end(letter: str) -> None:
    text = conversation(("user", "lost"), ("assistant", "start" + letter * EARLIER_BYTES + "end"), ("user", "now"))
    earlier = text.removesuffix("\n\nUser: now")
    assert earlier.startswith(f"Assistant: {letter}")
    assert earlier.endswith("end")
    assert EARLIER_BYTES - 3 <= len(earlier.removeprefix("Assistant: ").encode()) <= EARLIER_BYTES


def test_the_current_turn_is_whole_however_long() -> None:
    assert conversation(("user", "x" * 100_000)) == "User: " + "x" * 100_000


def test_the_system_state() -> None:
    assert (
        state_text(request(("system", "B"), ("user", "u"), ("system", "C"), system="A"), StateKind.SYSTEM)
        == "A\n\nB\n\nC"
    )


def test_the_tools_state_is_what_is_offered_and_what_came_back_last() -> None:
    asked = request(
        ("user", "q"),
        ("assistant", "f"),
        ("tool", "old"),
        ("assistant", "g"),
        ("tool", "new 1"),
        ("tool", "new 2"),
        tools=(ToolText("f", "does f"), ToolText("g", "")),
    )
    assert state_text(asked, StateKind.TOOLS) == "f: does f\ng\n\nnew 1\n\nnew 2"
    assert state_text(request(("user", "q")), StateKind.TOOLS) == ""
