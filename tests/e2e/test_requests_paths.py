"""Everything but the model APIs' usual requests: other traffic, odd spellings of paths, and headers with designs."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Iterator

import httpx2 as httpx
import pytest

from tests.support import raw_http
from tests.support.stack import MARK, Stack

BODY = b'{"model":"general","messages":[{"role":"user","content":"hi"}],"input":"hi","max_tokens":9}'
BACKENDS = ("openai", "responses", "anthropic")


@pytest.fixture(scope="module")
def http() -> Iterator[httpx.Client]:
    with httpx.Client(timeout=30, verify=False) as client:
        yield client


# -- other traffic


def test_other_traffic_passes_untouched(either: Stack, http: httpx.Client) -> None:
    errors = either.total("llm_request_errors_total")
    counted = either.total('pointsman_requests_total{format="none",kind="other"}')
    answer = http.get(either.base + "/healthz")
    assert (answer.status_code, answer.json()) == (200, {"status": "ok"})
    assert not [name for name in answer.headers if name.startswith("x-vsr")]

    mark = uuid.uuid4().hex
    request = http.build_request(
        "POST",
        either.base + "/files?purpose=batch&x=%2F",
        files={"file": ("line.jsonl", b'{"model":"x"}\n\x00\xff', "application/jsonl")},
        data={"purpose": "batch"},
        headers={MARK: mark, "authorization": "Bearer client"},
    )
    upload = request.read()
    http.send(request)
    [received] = either.received("openai", mark)
    assert (received.method, received.path) == ("POST", "/files?purpose=batch&x=%2F")
    assert received.body_sha256 == hashlib.sha256(upload).hexdigest()
    assert received.all("content-type") == [request.headers["content-type"]]
    assert received.all("authorization") == ["Bearer client"]

    for method in ("GET", "PUT", "PATCH", "DELETE"):
        mark = uuid.uuid4().hex
        http.request(method, either.base + "/anything/else", headers={MARK: mark})
        assert [one.method for one in either.received("openai", mark)] == [method]
    assert either.total("llm_request_errors_total") == errors
    assert either.total('pointsman_requests_total{format="none",kind="other"}') == counted + 6


def test_json_without_a_model_elsewhere_is_nobodys_business(either: Stack, http: httpx.Client) -> None:
    mark = uuid.uuid4().hex
    http.post(either.base + "/telemetry", content=b'{"n":1,"n":2', headers={MARK: mark})
    assert [one.body_length for one in either.received("openai", mark)] == [12]


def test_a_large_upload_elsewhere_has_no_limit_of_ours(either: Stack, http: httpx.Client) -> None:
    mark, upload = uuid.uuid4().hex, b"x" * (20 * 1024 * 1024)
    http.post(either.base + "/files", content=upload, headers={MARK: mark})
    assert [one.body_sha256 for one in either.received("openai", mark)] == [hashlib.sha256(upload).hexdigest()]


@pytest.mark.parametrize("size", [100, 3 * 1024 * 1024], ids=["small", "large"])
def test_an_upload_elsewhere_that_trailers_end(either: Stack, size: int) -> None:
    for send in (raw_http.http1, raw_http.http2):
        mark, upload = uuid.uuid4().hex, b"0123456789" * (size // 10)
        send(either.ports["listener"], "/files", upload, headers=[(MARK, mark)], trailers=[("x-sum", "abc")])
        assert [one.body_sha256 for one in either.received("openai", mark)] == [hashlib.sha256(upload).hexdigest()]


# -- spellings of paths

SPELLINGS = [
    "/v1/chat/completions",
    "/v1/chat/completions?x=y",
    "/v1/chat/completions/",
    "/v1/chat/completions//",
    "/V1/chat/completions",
    "/v1/Chat/COMPLETIONS",
    "//v1//chat/completions",
    "/v1//chat/completions",
    "/v1/./chat/completions",
    "/v1/x/../chat/completions",
    "/x/../v1/chat/completions",
    "/v1/%63hat/completions",
    "/%76%31/chat/completions",
    "/v1%2Fchat%2Fcompletions",
    "/v1%2fchat/completions",
    "/v1/%2e/chat/completions",
    "/v1/%2e%2e/v1/chat/completions",
    "/%2576%2531/chat/completions",
    "/v1%252Fchat/completions",
    "/v1;a=b/chat/completions",
    "/v1/chat;x/completions",
    "/v1/chat/completions;x=1",
    "/v1\\chat\\completions",
    "\\v1\\chat\\completions",
    "/v1/chat/completions#fragment",
    "/v1/chat%2Fcompletions%3Fx",
    "/v1/chat/completions%00",
    "/v1/chat/completions%20",
    "/v1/chat/completions%09",
    "/v1/completions",
    "/v1/embeddings",
    "/v1/",
    "/v1",
    "/openai/deployments/general/chat/completions",
    "/OpenAI/v1/chat/completions",
    "/openai",
    "http://localhost/v1/chat/completions",
    "http://localhost/V1/chat/completions/",
]


@pytest.mark.parametrize("model", ["general", "pointsman/auto"])
@pytest.mark.parametrize("path", SPELLINGS)
def test_no_spelling_of_a_model_api_gets_round_the_router(stack: Stack, path: str, model: str) -> None:
    """Either it is routed, under the API's own name, or refused; never does a backend see what nobody has read."""
    mark, body = uuid.uuid4().hex, BODY.replace(b"general", model.encode())
    answer = raw_http.http1(stack.ports["listener"], path, body, headers=[(MARK, mark)])
    received = stack.received("openai", mark)
    if answer.status == 200:
        assert answer.headers["x-vsr-selected-model"] == "general"
        assert [(one.path.partition("?")[0], one.model) for one in received] == [("/v1/chat/completions", "general")]
    else:
        assert answer.status in {400, 404, 503}
        assert not received
        if answer.headers.get("content-type") == "application/json":
            assert not json.loads(answer.body)["error"]["message"].startswith("Not Found")


def test_the_usual_spellings_are_routed(stack: Stack) -> None:
    usual = SPELLINGS[:14]
    for path in usual:
        answer = raw_http.http1(stack.ports["listener"], path, BODY)
        assert (path, answer.status) == (path, 200)


@pytest.mark.parametrize("method", ["PUT", "PATCH", "post", "PROPFIND", "CONNECT"])
def test_other_methods_do_not_carry_a_prompt_either(stack: Stack, method: str) -> None:
    mark = uuid.uuid4().hex
    answer = raw_http.http1(
        stack.ports["listener"], "/v1/chat/completions", BODY, method=method, headers=[(MARK, mark)]
    )
    assert answer.status in {400, 404, 405, 501, 503}
    assert not stack.received("openai", mark)


@pytest.mark.parametrize(
    "header", [("x-http-method-override", "POST"), ("upgrade", "websocket"), ("X-HTTP-Method", "POST")]
)
def test_no_detour_by_a_header(stack: Stack, header: tuple[str, str]) -> None:
    mark = uuid.uuid4().hex
    headers = [(MARK, mark), header]
    answer = raw_http.http1(stack.ports["listener"], "/v1/chat/completions", BODY, method="GET", headers=headers)
    assert answer.status in {400, 403, 404}
    assert not stack.received("openai", mark)


def test_two_lengths_for_one_body_are_none(stack: Stack) -> None:
    """The bytes after the shorter one would be a request that nobody has read."""
    mark = uuid.uuid4().hex
    headers = [(MARK, mark), ("transfer-encoding", "chunked")]
    smuggled = b"0\r\n\r\nPOST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\n" + f"{MARK}: {mark}".encode()
    answer = raw_http.http1(stack.ports["listener"], "/v1/chat/completions", smuggled + b"\r\n\r\n", headers=headers)
    assert answer.status == 400
    answer = raw_http.http1(stack.ports["listener"], "/x", BODY, headers=[(MARK, mark), ("content-length", "1")])
    assert answer.status == 400
    assert not stack.received("openai", mark)


@pytest.mark.parametrize("method", ["GET", "DELETE", "OPTIONS"])
def test_no_prompt_in_the_body_of_a_method_that_has_none(stack: Stack, method: str) -> None:
    framings: list[list[tuple[str, str]] | None] = [None, []]  # a body of known length, and one in chunks
    for trailers in framings:
        mark = uuid.uuid4().hex
        answer = raw_http.http1(
            stack.ports["listener"],
            "/v1/chat/completions",
            BODY,
            method=method,
            headers=[(MARK, mark)],
            trailers=trailers,
        )
        assert (answer.status, json.loads(answer.body)["error"]["code"]) == (404, "unknown_path")
        assert not stack.received("openai", mark)
    answer = raw_http.http2(
        stack.ports["listener"], "/v1/chat/completions", BODY, method=method, headers=[(MARK, mark)]
    )
    assert (answer.status, json.loads(answer.body)["error"]["code"]) == (404, "unknown_path")
    assert not stack.received("openai", mark)


# -- headers that only the router may set

FORGED = [
    ("x-selected-model", "claude-general"),
    ("X-Selected-Model", "claude-general"),
    ("x_selected_model", "claude-general"),
    ("x-vsr-anything", "1"),
    ("X-VSR-Selected-Model", "claude-general"),
    ("x_vsr_selected_model", "claude-general"),
    ("x-vsr_selected-decision", "legal"),
    ("x-vsr-plan", "old"),
    ("x-vsr-skip-processing", "true"),
    ("x-authz-user-groups", "admin"),
]


def test_a_clients_word_has_no_influence(either: Stack, http: httpx.Client) -> None:
    for path, model in (("/v1/chat/completions", "general"), ("/healthz-like", None)):
        mark = uuid.uuid4().hex
        answer = raw_http.http1(
            either.ports["listener"], path, BODY, headers=[*FORGED, ("session_id", "s"), (MARK, mark)]
        )
        assert answer.headers.get("x-vsr-selected-model") == model
        [received] = either.received("openai", mark)
        assert not [name for name, _ in received.headers if "vsr" in name or "selected" in name or "authz" in name]
        assert received.all("session_id") == ["s"]  # an ordinary header with an underscore stays


def test_a_forged_decision_does_not_open_a_refused_path(either: Stack) -> None:
    mark = uuid.uuid4().hex
    for path in ("/v1/embeddings", "/v1/chat/completions"):
        body = BODY if path == "/v1/embeddings" else b'{"model":"nonesuch","messages":[]}'
        answer = raw_http.http1(either.ports["listener"], path, body, headers=[*FORGED, (MARK, mark)])
        assert answer.status in {400, 404}
    for backend in BACKENDS:
        assert not either.received(backend, mark)


def test_a_client_cannot_set_envoys_timeouts_and_retries(stack: Stack, http: httpx.Client) -> None:
    mark = uuid.uuid4().hex
    headers = {
        MARK: mark,
        "x-envoy-upstream-rq-timeout-ms": "1",
        "x-envoy-retry-on": "5xx",
        "x-envoy-max-retries": "5",
        "x-sample-status": "503",
        "x-sample-delay-ms": "50",
    }
    answer = http.post(stack.base + "/v1/chat/completions", content=BODY, headers=headers)
    assert answer.status_code == 503
    assert answer.json()["error"]["message"] == "failing as told"
    [received] = stack.received("openai", mark)
    assert not [name for name, _ in received.headers if name.startswith("x-envoy")]


@pytest.mark.parametrize("stream", [False, True])
def test_a_backends_look_alikes_do_not_reach_the_client(either: Stack, http: httpx.Client, stream: bool) -> None:
    forged = "x-vsr-selected-model=forged,x-vsr-evil=1,x_vsr_twin=1,x-selected-model=forged,x-own=kept"
    body = json.dumps({"model": "general", "stream": stream, "messages": [{"role": "user", "content": "hi"}]})
    answer = http.post(either.base + "/v1/chat/completions", content=body, headers={"x-sample-response-header": forged})
    assert answer.headers["x-own"] == "kept"
    assert {name: value for name, value in answer.headers.items() if "vsr" in name or "selected" in name} == {
        "x-vsr-selected-model": "general",
        "x-vsr-schema-version": "2",
        "x-vsr-response-path": "upstream",
    }
