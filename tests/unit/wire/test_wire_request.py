from __future__ import annotations

import json
from typing import Any

import pytest

from router.wire.errors import BadRequest, ErrorCode
from router.wire.request import LlmRequest, ToolText, Turn, fresh_turns, read_request
from router.wire.surface import Format


def read(format: Format, **document: Any) -> LlmRequest:
    return read_request(format, json.dumps(document).encode())


def chat(*messages: Any, **more: Any) -> LlmRequest:
    return read(Format.CHAT, messages=list(messages), **more)


def responses(*items: Any, **more: Any) -> LlmRequest:
    return read(Format.RESPONSES, input=list(items), **more)


def anthropic(*messages: Any, **more: Any) -> LlmRequest:
    return read(Format.MESSAGES, messages=list(messages), **more)


def user(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


def refused(format: Format, **document: Any) -> BadRequest:
    with pytest.raises(BadRequest) as caught:
        read(format, **document)
    assert "secret" not in caught.value.message
    return caught.value


# Any format: model, stream, the top level


@pytest.mark.parametrize(
    ("model", "expected"), [("auto", "auto"), (" a ", " a "), (None, None), ("", None), (" \t", None)]
)
def test_a_model_is_a_name_or_nothing(model: Any, expected: str | None) -> None:
    assert chat(user("hi"), model=model).model == expected
    assert chat(user("hi")).model is None


@pytest.mark.parametrize("model", [1, True, ["secret"], {"name": "secret"}])
@pytest.mark.parametrize("format", Format)
def test_a_model_of_another_type_is_refused(format: Format, model: Any) -> None:
    error = refused(format, model=model, messages=[user("hi")], input="hi")
    assert (error.code, error.param) == (ErrorCode.INVALID_REQUEST, "model")


@pytest.mark.parametrize(
    ("stream", "expected"), [(True, True), (False, False), (None, False), ("true", False), (1, False)]
)
def test_only_true_asks_for_a_stream(stream: Any, expected: bool) -> None:
    assert chat(user("hi"), stream=stream).stream is expected
    assert chat(user("hi")).stream is False


@pytest.mark.parametrize("format", [Format.CHAT, Format.MESSAGES])
@pytest.mark.parametrize("messages", [None, [], "secret", {"role": "user"}, 1])
def test_messages_must_be_a_list_with_a_message(format: Format, messages: Any) -> None:
    assert refused(format, messages=messages).param == "messages"
    assert refused(format).param == "messages"


@pytest.mark.parametrize("format", [Format.CHAT, Format.MESSAGES])
@pytest.mark.parametrize(
    ("message", "param"),
    [
        ("secret", "messages[1]"),
        (None, "messages[1]"),
        ({"content": "secret"}, "messages[1].role"),
        ({"role": 1, "content": "secret"}, "messages[1].role"),
        ({"role": "user", "content": 7}, "messages[1].content"),
        ({"role": "user", "content": {"text": "secret"}}, "messages[1].content"),
        ({"role": "user", "content": [7]}, "messages[1].content[0]"),
        ({"role": "user", "content": [{"type": "text", "text": ["secret"]}]}, "messages[1].content[0].text"),
        ({"role": "user", "content": "a", "Content": "secret"}, "content"),
        ({"role": "user", "content": [{"type": "text", "text": "a", "TEXT": "secret"}]}, "text"),
    ],
)
def test_a_wrong_shape_names_its_field(format: Format, message: Any, param: str) -> None:
    error = refused(format, messages=[user("hi"), message])
    assert (error.code, error.param) == (ErrorCode.INVALID_REQUEST, param)


@pytest.mark.parametrize("format", Format)
@pytest.mark.parametrize(
    ("tools", "param"), [("x", "tools"), ({}, "tools"), (["x"], "tools[0]"), ([{}, 1], "tools[1]")]
)
def test_tools_must_be_a_list_of_objects(format: Format, tools: Any, param: str) -> None:
    assert refused(format, messages=[user("hi")], input="hi", tools=tools).param == param


@pytest.mark.parametrize("format", Format)
@pytest.mark.parametrize("content", [None, "", "   ", [], [{"type": "text", "text": ""}], [{"type": "image"}], [None]])
def test_no_text_is_no_error(format: Format, content: Any) -> None:
    request = read(format, messages=[user(content)], input=[user(content)])
    assert request.turns[0].text.strip() == ""


@pytest.mark.parametrize("format", Format)
def test_content_nested_beyond_use_is_refused_and_not_skipped(format: Format) -> None:
    content: Any = "secret"
    for _ in range(40):
        content = [{"type": "unknown", "content": content}]
    error = refused(format, messages=[user(content)], input=[user(content)])
    assert error.code is ErrorCode.INVALID_REQUEST


# Chat


def test_chat_reads_strings_parts_and_roles() -> None:
    request = chat(
        {"role": "system", "content": "S1"},
        {"role": "developer", "content": [{"type": "text", "text": "S2"}]},
        user("U1"),
        {"role": "assistant", "content": None, "refusal": "no"},
        user(
            [{"type": "text", "text": "U2"}, {"type": "image_url", "image_url": {"url": "x"}}, "loose", {"text": "U3"}]
        ),
        {"role": "critic", "content": "C"},
    )
    assert request.system == "S1\n\nS2"
    assert request.turns == (
        Turn("system", "S1"),
        Turn("system", "S2"),
        Turn("user", "U1"),
        Turn("assistant", "no"),
        Turn("user", "U2\nloose\nU3"),
        Turn("user", "C"),
    )


@pytest.mark.parametrize(
    ("arguments", "text"),
    [("", "f"), (None, "f"), ({}, "f {}"), ({"a": [1]}, 'f {"a":[1]}'), ('{"a": 1}', 'f {"a": 1}')],
)
def test_chat_reads_tool_calls_whatever_their_arguments(arguments: Any, text: str) -> None:
    call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": arguments}}
    assert chat(user("hi"), {"role": "assistant", "tool_calls": [call]}).turns[1] == Turn("assistant", text)


def test_chat_reads_other_calls_and_results() -> None:
    request = chat(
        {"role": "assistant", "content": "hm", "tool_calls": [{"custom": {"name": "c", "input": "x y"}}, {"id": "?"}]},
        {"role": "tool", "tool_call_id": "1", "content": [{"type": "text", "text": "R1"}]},
        {"role": "assistant", "function_call": {"name": "old", "arguments": "{}"}},
        {"role": "function", "name": "old", "content": "R2"},
    )
    assert request.turns == (
        Turn("assistant", "hm\nc x y"),
        Turn("tool", "R1"),
        Turn("assistant", "old {}"),
        Turn("tool", "R2"),
    )


def test_chat_tool_calls_of_another_type_are_refused() -> None:
    assert refused(Format.CHAT, messages=[{"role": "assistant", "tool_calls": "secret"}]).param is not None
    assert refused(Format.CHAT, messages=[{"role": "assistant", "tool_calls": ["secret"]}]).param is not None


def test_chat_reads_tools() -> None:
    function = {"type": "function", "function": {"name": "f", "description": "does f", "parameters": {"Content": {}}}}
    custom = {"type": "custom", "custom": {"name": "c"}}
    request = chat(
        user("hi"), tools=[function, custom, {"type": "other"}], functions=[{"name": "old", "description": "d"}]
    )
    assert request.tools == (ToolText("f", "does f"), ToolText("c", ""), ToolText("other", ""), ToolText("old", "d"))


# Responses


def test_responses_reads_a_string() -> None:
    request = read(Format.RESPONSES, input="hi", instructions="be kind", model="m")
    assert request == LlmRequest(Format.RESPONSES, "m", False, "be kind", (Turn("user", "hi"),), (), request.document)


def test_responses_reads_items_with_and_without_type_and_id() -> None:
    request = responses(
        {"role": "developer", "content": "S"},
        {"role": "user", "content": "U1"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "A1", "annotations": []}]},
        {"type": "message", "id": "m", "role": "user", "content": [{"type": "input_text", "text": "U2"}]},
        {"id": "only"},
        {"type": "item_reference", "id": "x"},
        {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "thinking"}]},
        {"type": "future", "text": "U3"},
        {"type": "future", "role": "assistant", "content": "A2"},
        instructions="I",
    )
    assert request.system == "I\n\nS"
    assert request.turns == (
        Turn("system", "S"),
        Turn("user", "U1"),
        Turn("assistant", "A1"),
        Turn("user", "U2"),
        Turn("user", "U3"),
        Turn("assistant", "A2"),
    )


def test_responses_reads_calls_and_results() -> None:
    request = responses(
        {"type": "function_call", "call_id": "1", "name": "f", "arguments": '{"a":1}'},
        {"type": "function_call_output", "call_id": "1", "output": "R1"},
        {"type": "custom_tool_call", "name": "c", "input": "x"},
        {"type": "custom_tool_call_output", "output": [{"type": "input_text", "text": "R2"}]},
        {"type": "mcp_call", "name": "m", "arguments": "", "output": "R3"},
        {"type": "local_shell_call", "action": {"command": ["ls"]}},
        {"type": "function_call_output", "output": None},
        {"type": "new_call_output", "output": {"text": "R4"}},
    )
    assert request.turns == (
        Turn("assistant", 'f {"a":1}'),
        Turn("tool", "R1"),
        Turn("assistant", "c x"),
        Turn("tool", "R2"),
        Turn("assistant", "m"),
        Turn("tool", "R3"),
        Turn("assistant", '{"command":["ls"]}'),
        Turn("tool", ""),
        Turn("tool", "R4"),
    )


def test_responses_reads_what_tools_of_every_kind_gave() -> None:
    request = responses(
        {"type": "shell_call_output", "output": [{"stdout": "R1", "stderr": "R2", "outcome": {"type": "exit"}}]},
        {"type": "code_interpreter_call", "code": "1", "outputs": [{"type": "logs", "logs": "R3"}]},
        {"type": "file_search_call", "queries": ["q"], "results": [{"file_id": "f", "text": "R4"}]},
        {"type": "mcp_call", "name": "m", "arguments": "", "output": None, "error": "R5"},
        {"type": "mcp_approval_response", "approve": False, "reason": "U1"},
    )
    told = [turn for turn in request.turns if turn.role != "assistant"]
    assert told == [*(Turn("tool", text) for text in ("R1\nR2", "R3", "R4", "R5")), Turn("user", "U1")]


def test_responses_reads_what_is_filled_into_a_stored_prompt() -> None:
    prompt = {"id": "p", "version": "1", "variables": {"a": "V1", "b": {"type": "input_text", "text": "V2"}}}
    assert read(Format.RESPONSES, prompt=prompt).turns == (Turn("user", "V1\nV2"),)
    said = [{"role": "user", "content": "old"}, {"role": "assistant", "content": "answer"}, user("new")]
    request = read(Format.RESPONSES, prompt=prompt, input=said)
    assert request.turns[2:] == (Turn("user", "V1\nV2"), Turn("user", "new"))
    for nothing in ("p", {"id": "p"}, {"id": "p", "variables": None}, {"id": "p", "variables": {"a": {"type": "x"}}}):
        assert read(Format.RESPONSES, prompt=nothing).turns == ()
    assert refused(Format.RESPONSES, prompt={"id": "p", "Variables": {"a": "secret"}}).param


def test_responses_reads_tools_also_those_that_a_server_listed() -> None:
    listed = {"type": "mcp_list_tools", "server_label": "s", "tools": [{"name": "t", "description": "d"}]}
    request = responses(
        user("hi"),
        listed,
        tools=[
            {"type": "function", "name": "f", "description": "does f"},
            {"type": "web_search"},
            {"type": "mcp", "server_label": "s", "server_description": "sd"},
        ],
    )
    assert request.tools == (
        ToolText("f", "does f"),
        ToolText("web_search", ""),
        ToolText("s", "sd"),
        ToolText("t", "d"),
    )


def test_responses_input_may_be_kept_elsewhere() -> None:
    for key in ("previous_response_id", "conversation", "prompt"):
        assert read(Format.RESPONSES, **{key: "x"}).turns == ()
    assert refused(Format.RESPONSES).param == "input"
    assert refused(Format.RESPONSES, input=[]).param == "input"
    assert refused(Format.RESPONSES, input={"secret": 1}).param == "input"
    assert refused(Format.RESPONSES, input=["secret"]).param == "input[0]"
    assert refused(Format.RESPONSES, input=[{"type": "message", "content": "secret"}]).param == "input[0].role"
    assert read(Format.RESPONSES, input="").turns == (Turn("user", ""),)


# Messages


def test_messages_reads_system_as_string_or_blocks() -> None:
    assert anthropic(user("hi"), system="S").system == "S"
    blocks = [{"type": "text", "text": "S1"}, {"type": "text", "text": "S2", "cache_control": {"type": "ephemeral"}}]
    assert anthropic(user("hi"), system=blocks).system == "S1\nS2"
    assert anthropic(user("hi"), system=None).system == ""
    assert refused(Format.MESSAGES, messages=[user("hi")], system={"text": "secret"}).param == "system"


def test_messages_reads_blocks_calls_and_results() -> None:
    request = anthropic(
        user([{"type": "text", "text": "U1"}, {"type": "image", "source": {"type": "base64", "data": "AAAA"}}]),
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "T", "signature": "s"},
                {"type": "text", "text": "A1"},
                {"type": "tool_use", "id": "1", "name": "f", "input": {"a": 1}},
            ],
        },
        user(
            [
                {"type": "tool_result", "tool_use_id": "1", "content": "R1"},
                {"type": "tool_result", "tool_use_id": "2", "content": [{"type": "text", "text": "R2"}]},
                {"type": "tool_result", "tool_use_id": "3"},
                {"type": "text", "text": "U2"},
            ]
        ),
    )
    assert request.turns == (
        Turn("user", "U1"),
        Turn("assistant", 'A1\nf {"a":1}'),
        Turn("tool", "R1"),
        Turn("tool", "R2"),
        Turn("tool", ""),
        Turn("user", "U2"),
    )


def test_messages_reads_documents_and_search_results() -> None:
    request = anthropic(
        user(
            [
                {"type": "document", "title": "D", "source": {"type": "text", "data": "body"}},
                {"type": "document", "source": {"type": "content", "content": [{"type": "text", "text": "inner"}]}},
                {
                    "type": "search_result",
                    "source": "url",
                    "title": "S",
                    "content": [{"type": "text", "text": "found"}],
                },
            ]
        ),
        {
            "role": "assistant",
            "content": [
                {"type": "server_tool_use", "name": "web_search", "input": {}},
                {"type": "web_search_tool_result", "content": [{"type": "web_search_result", "title": "W"}]},
                {"type": "x_tool_result", "content": {"type": "error", "text": "E"}},
                {"type": "code_execution_tool_result", "content": {"type": "x", "stdout": "S1", "stderr": "S2"}},
            ],
        },
    )
    assert request.turns == (
        Turn("user", "D\nbody\ninner\nS\nfound"),
        Turn("tool", "W"),
        Turn("tool", "E"),
        Turn("tool", "S1\nS2"),
        Turn("assistant", "web_search {}"),
    )


def test_messages_reads_tools() -> None:
    tools = [{"name": "f", "description": "does f", "input_schema": {}}, {"type": "bash_20250124", "name": "bash"}]
    assert anthropic(user("hi"), tools=tools).tools == (ToolText("f", "does f"), ToolText("bash", ""))


# What is new in a conversation


def turns(roles: str) -> tuple[Turn, ...]:
    names = {"u": "user", "a": "assistant", "t": "tool", "s": "system"}
    return tuple(Turn(names[role], str(place)) for place, role in enumerate(roles))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("roles", "fresh"),
    [
        ("", ""),
        ("u", "0"),
        ("suau", "3"),
        ("uatt", "23"),
        ("uatua", "234"),
        ("uaaa", "0123"),
        ("a", "0"),
        ("uauaa", "234"),
    ],
)
def test_a_prefill_at_the_end_hides_nothing(roles: str, fresh: str) -> None:
    assert "".join(turn.text for turn in fresh_turns(turns(roles))) == fresh


@pytest.mark.parametrize("size", [1, 300_000], ids=["short", "long"])
@pytest.mark.parametrize("more", [{"content": "hidden"}, {"title": "hidden"}, {"refusal": "hidden"}])
def test_a_part_without_a_type_hides_nothing_behind_its_text(size: int, more: dict[str, str]) -> None:
    part = {"text": "hi " * size, **more}
    assert "hidden" in chat(user([part])).turns[0].text
    assert "hidden" in responses({"role": "user", "content": [part]}).turns[0].text
