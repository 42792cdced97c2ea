from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime

import anthropic
import httpx2 as httpx
import openai
import pytest

from router.wire.errors import ErrorCode, error_reply
from router.wire.http import Reply
from router.wire.models import models_reply
from router.wire.surface import Format

NAMES = ["auto", "éclair/large"]


def transport(reply: Reply) -> httpx.MockTransport:
    def handle(request: httpx.Request) -> httpx.Response:
        return httpx.Response(reply.status, headers=dict(reply.headers), content=reply.body)

    return httpx.MockTransport(handle)


def openai_client(reply: Reply) -> openai.OpenAI:
    http = openai.DefaultHttpxClient(transport=transport(reply))
    return openai.OpenAI(api_key="k", base_url="http://x/v1", http_client=http, max_retries=0)


def anthropic_client(reply: Reply) -> anthropic.Anthropic:
    http = anthropic.DefaultHttpxClient(transport=transport(reply))
    return anthropic.Anthropic(api_key="k", base_url="http://x", http_client=http, max_retries=0)


def test_the_openai_sdk_lists_the_models() -> None:
    with openai_client(models_reply(NAMES)) as client:
        models = list(client.models.list())
    assert [model.id for model in models] == NAMES
    assert {model.object for model in models} == {"model"}
    assert {model.owned_by for model in models} == {"pointsman"}


def test_the_anthropic_sdk_lists_the_models_and_asks_for_no_second_page() -> None:
    with anthropic_client(models_reply(NAMES)) as client:
        models = list(client.models.list())
    assert [model.id for model in models] == NAMES
    assert [model.display_name for model in models] == NAMES
    assert {model.type for model in models} == {"model"}
    assert {model.created_at for model in models} == {datetime(1970, 1, 1, tzinfo=UTC)}
    assert {model.lifecycle for model in models} == {"active"}


def test_no_models_are_an_empty_page() -> None:
    body = json.loads(models_reply([]).body)
    assert body == {"object": "list", "data": [], "has_more": False, "first_id": None, "last_id": None}


CALLS: dict[Format, Callable[[openai.OpenAI], object]] = {
    Format.CHAT: lambda client: client.chat.completions.create(model="m", messages=[{"role": "user", "content": "hi"}]),
    Format.RESPONSES: lambda client: client.responses.create(model="m", input="hi", stream=True),
}


@pytest.mark.parametrize("format", CALLS)
@pytest.mark.parametrize(
    ("code", "error"),
    [
        (ErrorCode.MODEL_NOT_FOUND, openai.BadRequestError),
        (ErrorCode.MODEL_NOT_ALLOWED, openai.PermissionDeniedError),
        (ErrorCode.UNKNOWN_PATH, openai.NotFoundError),
        (ErrorCode.OVERLOADED, openai.RateLimitError),
        (ErrorCode.DECISION_UNRESOLVED, openai.InternalServerError),
    ],
)
def test_the_openai_sdk_reads_errors(format: Format, code: ErrorCode, error: type[openai.APIStatusError]) -> None:
    with openai_client(error_reply(format, code, param="model")) as client, pytest.raises(error) as caught:
        CALLS[format](client)
    assert caught.value.code == code.value
    assert caught.value.param == "model"


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("code", "status"),
    [
        (ErrorCode.MODEL_NOT_FOUND, 400),
        (ErrorCode.MODEL_NOT_ALLOWED, 403),
        (ErrorCode.UNKNOWN_PATH, 404),
        (ErrorCode.OVERLOADED, 529),
    ],
)
def test_the_anthropic_sdk_reads_errors(code: ErrorCode, status: int, stream: bool) -> None:
    with (
        anthropic_client(error_reply(Format.MESSAGES, code)) as client,
        pytest.raises(anthropic.APIStatusError) as caught,
    ):
        client.messages.create(model="m", max_tokens=9, messages=[{"role": "user", "content": "hi"}], stream=stream)
    assert caught.value.status_code == status
    assert isinstance(caught.value.body, dict)
    assert caught.value.body["type"] == "error"
