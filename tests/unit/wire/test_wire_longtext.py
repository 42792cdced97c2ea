from __future__ import annotations

import tracemalloc
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.config.plan import StateKind
from router.wire.document import LONG_TEXT
from router.wire.guarded import SEPARATOR, guard_text
from router.wire.longtext import STRIDE, LongText, byte_length
from router.wire.neutral import Turn
from router.wire.request import LlmRequest, guard_state, read_request, state_text
from router.wire.surface import Format
from router.wire.text import join

FILLERS = ["a", "é", "\u2019", "\U0001f600", "\ud800", "ab\n", "a\u2019", "\U0001f600 words \u4f60 "]
LONG = "Words \u2019and\u2019 more \U0001f600 of them.\n" * (LONG_TEXT // 20)


@given(st.lists(st.sampled_from(FILLERS), max_size=6), st.integers(0, STRIDE), st.data())
def test_it_reads_like_the_same_str(parts: list[str], times: int, data: st.DataObject) -> None:
    pieces = [part * times for part in parts]
    text = "".join(pieces)
    long = LongText(pieces, data.draw(st.integers(0, len(text))))
    assert (len(long), str(long), bool(long)) == (len(text), text, bool(text))
    assert (long.isascii(), long.isspace(), long.bytes) == (text.isascii(), text.isspace(), byte_length(text))
    assert long == text
    assert long == LongText([text])
    assert hash(long) == hash(text)
    places = st.none() | st.integers(-3, len(text) + 3)
    for _ in range(5):
        start, end, step = data.draw(places), data.draw(places), data.draw(st.sampled_from([None, 1, 2, -1]))
        assert long[start:end:step] == text[start:end:step]
        point = data.draw(st.integers(-1, max(len(text) - 1, 0)))
        if text:
            assert long[point] == text[point]
    assert "".join(long.pieces(data.draw(st.integers(1, 9) if len(text) < 99 else st.integers(900, 9000)))) == text


@pytest.mark.parametrize("wide", ["\u00e9", "\u2019", "\U0001f600", "\ud800"])
@pytest.mark.parametrize("many", [1, 2, 20, 100])
def test_a_last_stretch_of_as_many_bytes_as_another_has_characters_is_not_taken_for_ascii(wide: str, many: int) -> None:
    """What stands at the end of such a text must not be lost to whoever reads it in pieces."""
    room = STRIDE - len(wide.encode("utf-8", "surrogatepass")) * many
    text = "a " * (3 * STRIDE // 2) + wide * many + "z" * (room - 6) + "attack"
    assert byte_length(text) % STRIDE == 0
    long = LongText([text])
    assert "".join(long.pieces(1000)) == text
    assert long[-6:] == "attack"
    assert [long[point] for point in range(len(text) - 50, len(text))] == list(text[-50:])
    assert all(long[start : start + 7] == text[start : start + 7] for start in range(2 * STRIDE, len(text), 11))
    blank = " " * (3 * STRIDE) + "\u3000" * many + " " * (STRIDE - 3 * many - 6) + "attack"
    assert not LongText([blank]).isspace()


def test_a_place_outside_is_an_error_and_its_text_is_not_shown() -> None:
    text = LongText(["secret"])
    with pytest.raises(IndexError):
        text[6]
    assert "secret" not in repr(text)
    assert text != "other!"
    assert text != 1


def test_one_of_several_that_is_long_makes_the_whole_long() -> None:
    joined = join(["a", "", LongText([LONG]), "b"])
    assert type(joined) is LongText
    assert joined == f"a\n{LONG}\nb"
    long = LongText([LONG])
    assert join([long, ""]) is long


def messages(*content: Any, role: str = "user") -> dict[str, Any]:
    return {"model": "m", "messages": [{"role": role, "content": each} for each in content]}


def read(format: Format, document: dict[str, Any]) -> LlmRequest:
    return read_request(format, orjson.dumps(document))


PARTS = [{"type": "text", "text": "first"}, {"type": "text", "text": LONG}]
ITEMS = [{"role": "user", "content": [{"type": "input_text", "text": LONG}]}]


@pytest.mark.parametrize(
    ("format", "document", "said"),
    [
        (Format.CHAT, messages(LONG), LONG),
        (Format.CHAT, messages("before", LONG, role="tool"), LONG),
        (Format.CHAT, messages(PARTS), f"first\n{LONG}"),
        (Format.MESSAGES, messages(LONG), LONG),
        (Format.MESSAGES, messages(PARTS), f"first\n{LONG}"),
        (Format.RESPONSES, {"model": "m", "input": LONG}, LONG),
        (Format.RESPONSES, {"model": "m", "input": ITEMS}, LONG),
        (Format.RESPONSES, {"model": "m", "input": [{"role": "user", "content": LONG}]}, LONG),
    ],
)
def test_what_users_and_tools_said_stays_long_until_somebody_wants_it(
    format: Format, document: dict[str, Any], said: str
) -> None:
    request = read(format, document)
    turn = request.turns[-1]
    assert type(turn.said) is LongText
    assert turn.text == said
    assert request.document == document
    assert type(guard_state(request, StateKind.FRESH)) is LongText
    assert state_text(request, StateKind.FRESH) == str(guard_state(request, StateKind.FRESH))
    assert state_text(request, StateKind.USER) in (said.strip(), "")


@pytest.mark.parametrize(
    ("format", "document"),
    [
        (Format.CHAT, messages(LONG, role="system")),
        (Format.CHAT, messages(LONG, role="assistant")),
        (Format.CHAT, messages([{"type": "image_url", "text": LONG}])),
        (Format.CHAT, messages([{"type": "text", "text": LONG, "more": 1}])),
        (Format.CHAT, {**messages("a"), "user": LONG, "metadata": {"key": [LONG]}}),
        (
            Format.CHAT,
            {"tools": [{"type": "function", "function": {"name": "f", "description": LONG}}], **messages("")},
        ),
        (Format.MESSAGES, {**messages("a"), "system": LONG}),
        (Format.MESSAGES, messages([{"type": "tool_result", "content": [{"type": "text", "text": LONG}]}])),
        (Format.RESPONSES, {"input": [{"type": "function_call_output", "output": LONG}], "instructions": LONG}),
        (Format.RESPONSES, {"input": [{"type": "web_search_call", "content": LONG, "role": "user"}]}),
    ],
)
def test_any_other_long_text_is_read_as_short_ones_are(format: Format, document: dict[str, Any]) -> None:
    request = read(format, document)
    assert not request.holds_long
    assert request.document is request.outline
    assert request.document == document
    assert all(type(turn.said) is str for turn in request.turns)


def test_many_turns_that_are_long_together_are_one_long_input_of_guards() -> None:
    words = "\u2019word " * (LONG_TEXT // 20)
    request = LlmRequest(Format.CHAT, "m", False, "", tuple(Turn("user", words) for _ in range(5)), ())
    found = guard_text(request)
    assert type(found.text) is LongText
    assert found.text == SEPARATOR.join([words] * 5)
    assert [found.text[segment.start : segment.end] == words for segment in found.segments] == [True] * 5


@pytest.mark.parametrize(
    "dumped", [lambda text: orjson.dumps(messages(text)), lambda text: b" " + orjson.dumps(messages(text))]
)
def test_reading_takes_no_more_than_its_text_once(dumped: Any) -> None:
    text = LONG * 12 + "\U0001f600"
    body = dumped(text)
    tracemalloc.start()
    request = read_request(Format.CHAT, body)
    given = guard_state(request, StateKind.FRESH)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(given) == len(text)
    assert peak < 1.4 * len(body), "a parser's copy of the body would be one more, a `str` with an emoji three"
