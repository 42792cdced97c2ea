"""Edits of requests in any spelling: what they come to, and that nothing else moves a byte."""

from __future__ import annotations

import json
import math
from typing import Any

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from router.config.actions import RequestParams
from router.wire.params import KNOWN, LENGTHS, bound_params
from router.wire.spans import elements, find, members
from router.wire.surface import Format
from router.wire.system_prompt import Mode, write_system_prompt
from tests.support.json_spellings import Writer, numbers, texts, values

formats = st.sampled_from(list(Format))
seeds = st.integers(0, 2**32)
names = st.sampled_from([*sorted(KNOWN[Format.CHAT] | KNOWN[Format.MESSAGES]), "min_p", "", "é"]) | texts
LENGTH_NAMES = ["max_tokens", "max_completion_tokens", "max_output_tokens", "n"]
requests = st.dictionaries(names, values, max_size=6) | st.dictionaries(
    st.sampled_from(LENGTH_NAMES), numbers | values, max_size=4
)


def raw(body: bytes) -> dict[str, bytes]:
    return {member.key: body[member.start : member.stop] for member in members(body)}


def lowered(value: Any, limit: int, least: float) -> Any:
    """What the bound leaves of a value; numbers may stand in quotation marks, and what is no number stays."""
    try:
        number = float(value) if type(value) is str else value
    except ValueError:
        return value
    return limit if type(number) in (int, float) and not least <= number <= limit else value


@settings(max_examples=150, deadline=None)
@given(formats, requests, st.frozensets(names, max_size=4), st.integers(1, 4096), st.booleans(), seeds)
def test_bounds_touch_what_they_name_and_no_other_byte(
    format: Format, document: dict[str, Any], blocked: frozenset[str], limit: int, strip: bool, seed: int
) -> None:
    document.pop("thinking", None)
    body = Writer(seed).object(list(document.items())).encode()

    bounded = bound_params(format, body, RequestParams(blocked, limit, limit, strip))

    least = dict.fromkeys(LENGTHS[format], 0.0) | ({"n": -math.inf} if format is Format.CHAT else {})
    expected = {
        key: lowered(value, limit, least[key]) if key in least else value
        for key, value in document.items()
        if key not in blocked and not (strip and key not in KNOWN[format])
    }
    assert json.loads(bounded) == expected
    before, after = raw(body), raw(bounded)
    assert list(after) == [key for key in before if key in expected]
    assert {key for key in after if after[key] != before[key]} <= {*LENGTHS[format], "n"}
    if expected == document:
        assert bounded is body
    assert bound_params(format, bounded, RequestParams(blocked, limit, limit, strip)) is bounded


parts = st.lists(st.fixed_dictionaries({"type": st.just("text"), "text": texts}), max_size=3)
contents = texts | parts | st.none()
turns = st.fixed_dictionaries(
    {"role": st.sampled_from(["system", "developer", "user", "assistant"])}, optional={}
).flatmap(lambda turn: contents.map(lambda content: {**turn, "content": content}))


def joined(content: Any, mode: Mode, text: str, part: str) -> Any:
    if isinstance(content, list):
        new = {"type": part, "text": text}
        return [new, *content] if mode == "insert" else [*content, new]
    if not content:
        return text
    return f"{text}\n\n{content}" if mode == "insert" else f"{content}\n\n{text}"


def is_system(turn: Any) -> bool:
    return turn["role"] in ("system", "developer")


def chat_reference(messages: list[Any], mode: Mode, text: str) -> list[Any]:
    if mode == "replace":
        role = next((turn["role"] for turn in messages if is_system(turn)), "system")
        return [{"role": role, "content": text}, *(turn for turn in messages if not is_system(turn))]
    leading = next((index for index, turn in enumerate(messages) if not is_system(turn)), len(messages))
    if not leading:
        return [{"role": "system", "content": text}, *messages]
    place = 0 if mode == "insert" else leading - 1
    turn = {**messages[place], "content": joined(messages[place]["content"], mode, text, "text")}
    return [*messages[:place], turn, *messages[place + 1 :]]


modes = st.sampled_from(["insert", "replace", "append"])


@settings(max_examples=150, deadline=None)
@given(st.lists(turns, max_size=4), modes, texts, seeds, st.dictionaries(texts, values, max_size=2))
def test_a_system_prompt_in_chat(messages: list[Any], mode: Mode, text: str, seed: int, more: dict[str, Any]) -> None:
    assume("messages" not in more and text)
    document = {**more, "messages": messages}
    body = Writer(seed).object(list(document.items())).encode()

    edited = write_system_prompt(Format.CHAT, body, mode, text)

    after = chat_reference(messages, mode, text)
    assert json.loads(edited) == {**more, "messages": after}
    assert {key: value for key, value in raw(edited).items() if key in more} == {
        key: value for key, value in raw(body).items() if key in more
    }
    untouched = [one for one in turn_bytes(body) if mode != "replace" or not is_system(json.loads(one))]
    still = [one for one in turn_bytes(edited) if one in untouched]
    assert len(still) >= len(untouched) - (mode != "replace")
    assert mode != "replace" or turn_bytes(edited)[1:] == untouched


def turn_bytes(body: bytes) -> list[bytes]:
    member = find(members(body), "messages")
    assert member is not None
    return [body[start:stop] for start, stop in elements(body, member.value)]


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from([Format.RESPONSES, Format.MESSAGES]),
    st.lists(turns, max_size=4) | texts,
    contents | st.just("absent"),
    modes,
    texts,
    seeds,
)
def test_a_system_prompt_beside_the_turns(
    format: Format, given_turns: Any, own: Any, mode: Mode, text: str, seed: int
) -> None:
    assume(text)
    key, place = ("instructions", "input") if format is Format.RESPONSES else ("system", "messages")
    document = {place: given_turns} | ({} if own == "absent" else {key: own})
    body = Writer(seed).object(list(document.items())).encode()

    edited = json.loads(write_system_prompt(format, body, mode, text))

    if mode == "replace":
        left = [turn for turn in given_turns if not is_system(turn)] if isinstance(given_turns, list) else given_turns
        assert edited == {place: left, key: text}
    else:
        part = "input_text" if format is Format.RESPONSES else "text"
        expected = text if own == "absent" else joined(own, mode, text, part)
        assert edited == {place: given_turns, key: expected}
