"""The benchmark of overload: its texts, and what it makes of what was seen."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from bench.lib.load import LoadError
from bench.overload.client import Answered, Verdict
from bench.overload.corpus import ATTACK_SHARE, Text, harmless, stream, unlike
from bench.overload.judging import judge, verdicts
from bench.overload.witness import Seen, digest

ATTACK, PLAIN = Text(0, True, "be evil now"), Text(1, False, "be so kind")


def answered(text: Text, number: int, verdict: Verdict, at: float = 1.0) -> Answered:
    return Answered(text, unlike(text.content, number), verdict, 429 if verdict == "retry" else 200, at, 0.5)


def test_copies_of_a_text_differ_in_blanks_alone() -> None:
    copies = {unlike("two words and more", number) for number in range(64)}
    assert len(copies) == 64
    assert {tuple(copy.split()) for copy in copies} == {("two", "words", "and", "more")}


def test_one_text_in_twenty_is_an_attack_and_none_is_sent_twice() -> None:
    sent = list(itertools.islice(stream([ATTACK, PLAIN], seed=3), 4000))
    share = sum(text.attack for text, _ in sent) / len(sent)
    assert share == pytest.approx(ATTACK_SHARE, abs=0.02)
    assert len({content for _, content in sent}) == len(sent)
    again = list(itertools.islice(stream([ATTACK, PLAIN], seed=3), 4000))
    assert sent == again


def test_there_is_prose_enough() -> None:
    texts = harmless(80)
    assert len(set(texts)) == 80


def test_an_idle_system_must_decide() -> None:
    assert verdicts([answered(ATTACK, 1, "refused"), answered(PLAIN, 2, "forwarded")]) == {0: "refused", 1: "forwarded"}
    with pytest.raises(LoadError, match="retry"):
        verdicts([answered(PLAIN, 1, "retry")])


def seen(*read: Answered, forwarded: tuple[Answered, ...] = ()) -> dict[str, Any]:
    """What the witness tells: these were read, and these came to the backend."""
    found = Seen()
    for each in read:
        found.called(each.sent, 429)
        found.called(each.sent, 200)
    found.forwarded = [(digest(each.sent), "checked") for each in forwarded]
    return vars(found)


def test_what_is_read_and_done_right_is_good() -> None:
    stopped, gone, late = answered(ATTACK, 1, "refused"), answered(PLAIN, 2, "forwarded"), answered(PLAIN, 3, "retry")
    idle: dict[int, Verdict] = {0: "refused", 1: "forwarded"}
    found = judge([stopped, gone, late], seen(stopped, gone, forwarded=(gone,)), idle, (0.0, 2.0))
    assert (found.read, found.retry, found.goodput, found.most_calls) == (2, 1, 1.0, 2)
    assert (found.wrong_refusals, found.attacks_forwarded, found.unchecked_forwards) == (0, 0, 0)


def test_what_copies_share_is_no_request_of_one_of_them() -> None:
    """Guards read normalised stretches of a text besides, which may be those of all its copies."""
    copies = [answered(ATTACK, number, "refused") for number in range(9)]
    found = Seen()
    for each in copies:
        found.called(each.sent, 200)
        found.called("what normalising changes", 200)
    assert judge(copies, vars(found), {0: "refused"}, (0.0, 2.0)).most_calls == 1


def test_each_kind_of_harm_is_counted() -> None:
    idle: dict[int, Verdict] = {0: "refused", 1: "forwarded"}
    let_through, refused, unread = (
        answered(ATTACK, 1, "forwarded"),
        answered(PLAIN, 2, "refused"),
        answered(PLAIN, 3, "forwarded"),
    )
    found = judge([let_through, refused, unread], seen(forwarded=(let_through, unread)), idle, (0.0, 2.0))
    assert (found.attacks_forwarded, found.wrong_refusals, found.unchecked_forwards) == (1, 1, 2)


def test_a_refusal_of_what_was_not_read_is_no_good() -> None:
    unread = answered(ATTACK, 1, "refused")
    assert judge([unread], seen(), {0: "refused"}, (0.0, 2.0)).read == 0


def test_first_calls_and_later_ones_are_told_apart() -> None:
    found = Seen()
    for text, status in (("a", 429), ("b", 429), ("a", 429), ("a", 200)):
        found.called(text, status)
    assert {kind: len(times) for kind, times in found.refused.items()} == {"first": 2, "again": 1}
    assert dict(found.read) == {digest("a"): 1}


def test_what_waits_is_held_against_the_answers_and_steps_of_its_second() -> None:
    one = answered(PLAIN, 1, "forwarded")
    told = seen(one) | {"refused": {"first": [], "again": [5.0 + 0.01 * number for number in range(30)]}}
    idle: dict[int, Verdict] = {1: "forwarded"}
    alone = judge([one], told | {"answered": []}, idle, (0.0, 2.0)).again_vs_rule
    assert alone == pytest.approx(3.0), "thirty in a second that has ten steps"
    busy = told | {"answered": [4.95 + 0.05 * number for number in range(21)]}
    assert judge([one], busy, idle, (0.0, 2.0)).again_vs_rule == pytest.approx(30 / 31)
