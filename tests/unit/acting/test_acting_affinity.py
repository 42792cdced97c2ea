"""What conversations keep their model by, and for how long."""

from __future__ import annotations

from router.acting.affinity import Affinity, conversation
from router.acting.target import Contest
from router.config.candidates import ModelRef
from router.config.plan import Decision, Node, Operator
from router.wire.neutral import LlmRequest, Turn
from router.wire.surface import Format

REFS = (ModelRef("a"), ModelRef("b"))


def contest(decision: str = "d", recipe: str = "r") -> Contest:
    rule = Decision(decision, 0, 0, Node(Operator.AND, ()), "no_match", REFS, 0)
    return Contest(rule, REFS, {"recipe": recipe})


def said(*texts: str, format: Format = Format.CHAT) -> LlmRequest:
    return LlmRequest(format, "m", False, "", tuple(Turn("user", text) for text in texts), ())


def test_the_first_words_of_the_user_tell_conversations_apart() -> None:
    key = conversation(contest(), {}, said("hello"))
    assert key is not None
    assert key == conversation(contest(), {}, said("hello", "and then?"))
    assert key == conversation(contest(), {}, said("<system-reminder>today</system-reminder>", "hello"))
    others = [
        conversation(contest(), {}, said("Hello")),
        conversation(contest("e"), {}, said("hello")),
        conversation(contest(recipe="s"), {}, said("hello")),
        conversation(contest(), {}, said("hello", format=Format.MESSAGES)),
        conversation(contest(), {"x-session-id": "hello"}, said("hello")),
        conversation(contest(), {"x-conversation-id": "hello"}, said("hello")),
    ]
    assert len({key, *others}) == 1 + len(others)
    assert conversation(contest(), {}, said("", " ")) is None


def test_a_session_header_goes_before_words() -> None:
    headers = {"x-claude-code-session-id": "1"}
    assert conversation(contest(), headers, said("a")) == conversation(contest(), headers, said("b"))
    assert conversation(contest(), {"x-session-id": ""}, said("a")) == conversation(contest(), {}, said("a"))


def test_a_model_is_kept_for_its_time_from_the_last_turn() -> None:
    now = [0.0]
    affinity = Affinity(lambda: now[0], kept_s=10)
    affinity.keep(b"k", "b")
    now[0] = 9.0
    assert affinity.of(b"k", REFS) == ModelRef("b")
    affinity.keep(b"k", "b")
    now[0] = 18.0
    assert affinity.of(b"k", REFS) == ModelRef("b")
    now[0] = 19.0
    assert affinity.of(b"k", REFS) is None
    assert len(affinity) == 0


def test_a_model_that_is_no_candidate_any_more_is_not_taken() -> None:
    affinity = Affinity(lambda: 0.0)
    affinity.keep(b"k", "gone")
    assert affinity.of(b"k", REFS) is None
    assert affinity.of(b"unknown", REFS) is None


def test_the_longest_silent_conversation_is_forgotten_first() -> None:
    affinity = Affinity(lambda: 0.0, most=2)
    for key in (b"1", b"2", b"1", b"3"):
        affinity.keep(key, "a")
    assert [affinity.of(key, REFS) is not None for key in (b"1", b"2", b"3")] == [True, False, True]
    assert len(affinity) == 2
