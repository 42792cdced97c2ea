"""What the official SDKs raise when the router refuses: the right class, readable, and not tried again in vain."""

from __future__ import annotations

import json
from collections.abc import Iterator

import anthropic
import openai
import pytest

from tests.support.sdks import Sdks
from tests.support.stack import MARK, Stack, eventually

SEEN = "pointsman_requests_total"
TOO_LARGE = b'{"model":"general","messages":[{"role":"user","content":"' + b"x" * (16 * 1024 * 1024) + b'"}]}'

# name -> body, headers, status, code in the OpenAI formats, type in Messages
REFUSALS: dict[str, tuple[bytes, dict[str, str], int, str, str]] = {
    "unknown model": (
        b'{"model":"gpt-nonesuch","max_tokens":9,"input":"hi","messages":[{"role":"user","content":"hi"}]}',
        {},
        400,
        "model_not_found",
        "invalid_request_error",
    ),
    "not JSON": (b'{"model":', {}, 400, "invalid_json", "invalid_request_error"),
    "duplicate key": (
        b'{"model":"general","model":"coder","input":"hi","messages":[{"role":"user","content":"hi"}]}',
        {},
        400,
        "duplicate_key",
        "invalid_request_error",
    ),
    "wrong shape": (
        b'{"model":"pointsman/auto","input":7,"messages":"hi"}',
        {},
        400,
        "invalid_request",
        "invalid_request_error",
    ),
    "no object": (b'["model"]', {}, 400, "invalid_request", "invalid_request_error"),
    "no body": (b"", {}, 400, "empty_body", "invalid_request_error"),
    "deflate": (b"x", {"content-encoding": "deflate"}, 415, "unsupported_encoding", "invalid_request_error"),
    "not gzip": (b"{}", {"content-encoding": "gzip"}, 400, "invalid_encoding", "invalid_request_error"),
    "too large": (TOO_LARGE, {}, 413, "body_too_large", "request_too_large"),
}
OPENAI_CLASSES: dict[int, type[openai.APIStatusError]] = {
    400: openai.BadRequestError,
    404: openai.NotFoundError,
    413: openai.APIStatusError,
    415: openai.APIStatusError,
    503: openai.InternalServerError,
}
ANTHROPIC_CLASSES: dict[int, type[anthropic.APIStatusError]] = {
    400: anthropic.BadRequestError,
    404: anthropic.NotFoundError,
    413: anthropic.RequestTooLargeError,
    415: anthropic.APIStatusError,
    503: anthropic.InternalServerError,
}


@pytest.fixture(autouse=True)
def _nothing_reaches_a_backend(stack: Stack) -> Iterator[None]:
    """Refused means that no backend has heard of it."""
    yield
    for backend in ("openai", "responses", "anthropic"):
        assert not stack.received(backend, "refused")


def openai_error(sdks: Sdks, path: str, body: bytes, headers: dict[str, str]) -> openai.APIStatusError:
    with pytest.raises(openai.APIStatusError) as raised:
        sdks.oai.post(path, cast_to=object, content=body, options={"headers": {MARK: "refused", **headers}})
    return raised.value


def anthropic_error(sdks: Sdks, path: str, body: bytes, headers: dict[str, str]) -> anthropic.APIStatusError:
    with pytest.raises(anthropic.APIStatusError) as raised:
        sdks.claude.post(path, cast_to=object, content=body, options={"headers": {MARK: "refused", **headers}})
    return raised.value


@pytest.mark.parametrize("refusal", REFUSALS)
@pytest.mark.parametrize("path", ["/chat/completions", "/responses"])
def test_openai(stack: Stack, sdks: Sdks, path: str, refusal: str) -> None:
    body, headers, status, code, _ = REFUSALS[refusal]
    before = stack.total(SEEN)
    error = openai_error(sdks, path, body, headers)
    assert type(error) is OPENAI_CLASSES[status]
    assert (error.status_code, error.code, error.type) == (status, code, "invalid_request_error")
    assert error.response.headers["content-type"] == "application/json"
    assert error.response.json()["error"]["message"] in error.message
    assert stack.total(SEEN) - before == 1


@pytest.mark.parametrize("refusal", REFUSALS)
def test_anthropic(stack: Stack, sdks: Sdks, refusal: str) -> None:
    body, headers, status, _, kind = REFUSALS[refusal]
    before = stack.total(SEEN)
    error = anthropic_error(sdks, "/v1/messages", body, headers)
    assert type(error) is ANTHROPIC_CLASSES[status]
    told = error.body
    assert isinstance(told, dict)
    assert (error.status_code, told["type"], told["error"]["type"]) == (status, "error", kind)
    assert stack.total(SEEN) - before == 1


@pytest.mark.parametrize(
    "path", ["/embeddings", "/completions", "/images/generations", "/audio/speech", "/chat/completions/extra"]
)
def test_paths_that_nobody_here_can_read(stack: Stack, sdks: Sdks, path: str) -> None:
    before = stack.total(SEEN)
    error = openai_error(sdks, path, b'{"model":"general","input":"hi"}', {})
    assert type(error) is openai.NotFoundError
    assert error.code == "unknown_path"
    assert stack.total(SEEN) - before == 1


def test_the_sdks_own_calls_to_such_paths(sdks: Sdks) -> None:
    with pytest.raises(openai.NotFoundError, match="This path is not served"):
        sdks.oai.embeddings.create(model="general", input="hi", extra_headers={MARK: "refused"})
    with pytest.raises(openai.NotFoundError, match="This path is not served"):
        sdks.oai.files.create(file=("a.jsonl", b"{}"), purpose="batch", extra_headers={MARK: "refused"})
    with pytest.raises(anthropic.NotFoundError, match="This path is not served") as raised:
        sdks.claude.messages.count_tokens(
            model="claude-general", messages=[{"role": "user", "content": "hi"}], extra_headers={MARK: "refused"}
        )
    assert raised.value.body == {
        "type": "error",
        "error": {"type": "not_found_error", "message": raised.value.body["error"]["message"]},  # type: ignore[index]
    }


def test_a_model_that_speaks_another_format(stack: Stack, sdks: Sdks) -> None:
    oai, claude = sdks.oai.with_options(max_retries=0), sdks.claude.with_options(max_retries=0)
    with pytest.raises(openai.InternalServerError) as raised:
        oai.chat.completions.create(
            model="claude-general", messages=[{"role": "user", "content": "hi"}], extra_headers={MARK: "refused"}
        )
    assert (raised.value.status_code, raised.value.code) == (503, "no_eligible_model")
    with pytest.raises(openai.InternalServerError) as raised:
        oai.responses.create(model="general", input="hi", extra_headers={MARK: "refused"})
    assert (raised.value.status_code, raised.value.code) == (503, "no_eligible_model")
    with pytest.raises(anthropic.InternalServerError) as refused:
        claude.messages.create(
            model="general",
            max_tokens=9,
            messages=[{"role": "user", "content": "hi"}],
            extra_headers={MARK: "refused"},
        )
    assert refused.value.status_code == 503
    assert refused.value.body["error"]["type"] == "api_error"  # type: ignore[index]


def test_a_client_that_wants_a_stream_gets_plain_json(sdks: Sdks) -> None:
    with pytest.raises(openai.BadRequestError) as raised:
        sdks.oai.chat.completions.create(
            model="nonesuch", messages=[{"role": "user", "content": "hi"}], stream=True, extra_headers={MARK: "refused"}
        )
    assert raised.value.code == "model_not_found"
    assert json.loads(raised.value.response.content)["error"]["code"] == "model_not_found"
    with pytest.raises(openai.BadRequestError) as raised:
        sdks.oai.responses.create(model="nonesuch", input="hi", stream=True, extra_headers={MARK: "refused"})
    assert raised.value.response.headers["content-type"] == "application/json"
    with (
        pytest.raises(anthropic.BadRequestError) as refused,
        sdks.claude.messages.stream(
            model="nonesuch",
            max_tokens=9,
            messages=[{"role": "user", "content": "hi"}],
            extra_headers={MARK: "refused"},
        ),
    ):
        pytest.fail("a refused stream must not open")
    assert refused.value.response.headers["content-type"] == "application/json"


@pytest.mark.parametrize("model", [None, ""])
def test_no_model_means_the_default_entrypoint(sdks: Sdks, model: str | None) -> None:
    named = {} if model is None else {"model": model}
    prompt = "How do I sort a dictionary by value in Python?"
    answer = sdks.oai.post(
        "/chat/completions", cast_to=object, body={**named, "messages": [{"role": "user", "content": prompt}]}
    )
    assert answer["model"] == "qwen3-coder-30b"  # type: ignore[index]
    answer = sdks.oai.post("/responses", cast_to=object, body={**named, "input": prompt})
    assert answer["model"] == "coder-r"  # type: ignore[index]
    body = {**named, "max_tokens": 9, "messages": [{"role": "user", "content": prompt}]}
    answer = sdks.claude.post("/v1/messages", cast_to=object, body=body)
    assert answer["model"] == "claude-coder"  # type: ignore[index]


def test_a_backends_own_error_comes_through(stack: Stack, sdks: Sdks) -> None:
    with pytest.raises(openai.RateLimitError, match="failing as told") as raised:
        sdks.oai.with_options(max_retries=0).chat.completions.create(
            model="general", messages=[{"role": "user", "content": "hi"}], extra_headers={"x-sample-status": "429"}
        )
    assert raised.value.response.headers["x-vsr-response-path"] == "upstream"


@pytest.mark.parametrize("stream", [False, True])
def test_a_backend_that_is_not_there(sdks: Sdks, stream: bool) -> None:
    with pytest.raises(openai.InternalServerError) as raised:
        sdks.oai.with_options(max_retries=0).chat.completions.create(
            model="absent", messages=[{"role": "user", "content": "hi"}], stream=stream
        )
    assert (raised.value.status_code, raised.value.code) == (503, "backend_unavailable")
    with pytest.raises(anthropic.InternalServerError) as refused:
        sdks.claude.with_options(max_retries=0).messages.create(
            model="claude-absent", max_tokens=9, messages=[{"role": "user", "content": "hi"}], stream=stream
        )
    assert refused.value.status_code == 503
    assert refused.value.body == {
        "type": "error",
        "error": {"type": "api_error", "message": "The selected backend is unavailable."},
    }


def test_nothing_is_left_open(stack: Stack) -> None:
    eventually(lambda: stack.metric("pointsman_streams_in_flight") == 0, "no stream is open", within=5)
