"""What is counted of a request, the same in all three formats, and the tokens that it needs at least."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from router.wire.counting import Counts, count
from router.wire.surface import Format
from tests.support.signals import request

SCHEMA = {"type": "object"}
CHAT = request(
    Format.CHAT,
    messages=[
        {"role": "system", "content": "be kind"},
        {"role": "user", "content": [{"type": "text", "text": "hi"}, {"type": "image_url", "image_url": {"url": "u"}}]},
        {"role": "assistant", "content": "ok", "tool_calls": [{"function": {"name": "f", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "1", "content": "42"},
    ],
    tools=[{"type": "function", "function": {"name": "f", "parameters": SCHEMA}}],
    max_tokens=100,
)
MESSAGES = request(
    Format.MESSAGES,
    system="be kind",
    messages=[
        {"role": "user", "content": [{"type": "text", "text": "hi"}, {"type": "image", "source": {"type": "base64"}}]},
        {
            "role": "assistant",
            "content": [{"type": "text", "text": "ok"}, {"type": "tool_use", "name": "f", "input": {}}],
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1", "content": "42"}]},
    ],
    tools=[{"name": "f", "input_schema": SCHEMA}],
    max_tokens=100,
)
RESPONSES = request(
    Format.RESPONSES,
    instructions="be kind",
    input=[
        {"role": "user", "content": [{"type": "input_text", "text": "hi"}, {"type": "input_image", "image_url": "u"}]},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "ok"}]},
        {"type": "function_call", "call_id": "1", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "1", "output": "42"},
    ],
    tools=[{"type": "function", "name": "f", "parameters": SCHEMA}],
    max_output_tokens=100,
)


@pytest.mark.parametrize("asked", [CHAT, MESSAGES, RESPONSES], ids=["chat", "messages", "responses"])
def test_one_conversation_counts_the_same_in_every_format(asked: Any) -> None:
    found = count(asked)
    assert dict(found.messages) == {"system": 1, "user": 1, "assistant": 1, "tool": 1}
    assert dict(found.media) == {"text": 1, "image": 1}
    assert (found.images, found.tool_definitions, found.tool_calls, found.tool_results) == (1, 1, 1, 1)
    assert found.active_tool_loop
    assert found.text_bytes == len("be kind") + len("hi") + len("ok") + len("42")
    assert found.output_reserve == 100
    assert found.token_floor == 4 + found.structured_bytes + 8192 + 4 * 4 + 8 * 2 + 100


def test_the_token_floor_of_nothing() -> None:
    assert Counts().token_floor == 0


@settings(max_examples=200)
@given(
    st.lists(
        st.tuples(st.sampled_from(["system", "user", "assistant", "tool", "developer"]), st.text(max_size=9)),
        min_size=1,
    ),
    st.dictionaries(
        st.sampled_from(["max_tokens", "max_completion_tokens"]), st.sampled_from([None, 0, -1, 7, 9, True])
    ),
)
def test_a_conversation_in_words_alone_counts_as_one_that_is_looked_at_more_closely(
    said: list[tuple[str, str]], more: dict[str, Any]
) -> None:
    plain = [{"role": role, "content": content} for role, content in said]
    named = [{**message, "name": "somebody"} for message in plain]
    assert count(request(Format.CHAT, messages=plain, **more)) == count(request(Format.CHAT, messages=named, **more))


@pytest.mark.parametrize("content", [None, "", [], [None], [{"type": "text", "text": ""}], [{"type": "new", "x": 1}]])
def test_empty_and_unknown_content_counts_as_a_message_without_text(content: Any) -> None:
    found = count(request(Format.CHAT, messages=[{"role": "user", "content": content}]))
    assert (found.message_count, found.text_bytes, dict(found.media)) == (1, 0, {})


LONG = "x" * 1000


@pytest.mark.parametrize(
    ("block", "size"),
    [
        ({"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": LONG}}, 1000),
        ({"type": "document", "title": "abc", "context": "de", "source": {"type": "text", "data": LONG}}, 1005),
        ({"type": "document", "source": {"type": "content", "content": [{"type": "text", "text": LONG}]}}, 1000),
        ({"type": "document", "source": {"type": "content", "content": LONG}}, 1000),
        ({"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": LONG}}, 0),
        ({"type": "search_result", "source": "u", "title": "abc", "content": [{"type": "text", "text": LONG}]}, 1003),
    ],
)
def test_documents_count_by_their_text(block: dict[str, Any], size: int) -> None:
    said = [{"role": "user", "content": [block, {"type": "text", "text": "hi"}]}]
    assert count(request(Format.MESSAGES, messages=said)).text_bytes == size + 2
    handed_in = [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1", "content": [block]}]}]
    assert count(request(Format.MESSAGES, messages=handed_in)).text_bytes == size


def test_what_a_server_has_fetched_counts_and_leaves_no_loop_open() -> None:
    items = [{"type": "mcp_call", "name": "f", "arguments": "{}", "output": LONG}, {"role": "user", "content": "and?"}]
    found = count(request(Format.RESPONSES, input=items))
    assert (found.text_bytes, found.active_tool_loop) == (1004, False)


@pytest.mark.parametrize(
    ("format", "fields"),
    [
        (Format.CHAT, {"messages": [{"role": "user", "content": "x"}], "response_format": SCHEMA}),
        (Format.RESPONSES, {"input": "x", "text": {"format": SCHEMA}}),
        (Format.MESSAGES, {"messages": [{"role": "user", "content": "x"}], "output_config": {"format": SCHEMA}}),
        (Format.MESSAGES, {"messages": [{"role": "user", "content": "x"}], "output_format": SCHEMA}),
    ],
)
def test_the_schema_of_the_answer_counts_in_every_format(format: Format, fields: dict[str, Any]) -> None:
    assert count(request(format, **fields)).structured_bytes == len('{"type":"object"}')
    assert count(request(format, **{**fields, "text": None, "output_config": 3})).structured_bytes in {0, 17}


def test_calls_that_the_server_settles_leave_no_loop_open() -> None:
    items = [{"type": "web_search_call", "id": "1", "status": "completed"}, {"role": "user", "content": "and?"}]
    assert not count(request(Format.RESPONSES, input=items)).active_tool_loop


@pytest.mark.parametrize("limit", [None, True, -1, "9", 1.5])
def test_a_reserve_that_is_no_number_is_none(limit: Any) -> None:
    assert (
        count(request(Format.CHAT, messages=[{"role": "user", "content": "x"}], max_tokens=limit)).output_reserve == 0
    )
