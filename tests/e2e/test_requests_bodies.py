"""Request bodies on their way through: sizes, exact bytes, encodings, chunks and trailers, in both body modes."""

from __future__ import annotations

import functools
import gzip
import hashlib
import json
import uuid
from collections.abc import Callable, Iterator

import brotli
import httpx2 as httpx
import pytest
import zstandard

from tests.support import raw_http
from tests.support.stack import MARK, Received, Stack

KIB = 1024
MIB = 1024 * KIB
SIZES = {"1 KiB": KIB, "100 KiB": 100 * KIB, "1 MiB": MIB, "5 MiB": 5 * MIB, "12 MiB": 12 * MIB}
CHAT = "/v1/chat/completions"
AUTO = b"pointsman/auto"
CODE = "Why does this Python function raise a TypeError? "


@pytest.fixture(scope="module")
def http() -> Iterator[httpx.Client]:
    with httpx.Client(timeout=60, verify=False) as client:
        yield client


def send(
    http: httpx.Client, stack: Stack, body: bytes | Iterator[bytes], path: str = CHAT, **headers: str
) -> tuple[httpx.Response, Received | None]:
    """The answer, and what the backend received."""
    mark = uuid.uuid4().hex
    written = {name.replace("_", "-"): value for name, value in headers.items()}
    answer = http.post(
        stack.base + path, content=body, headers={"content-type": "application/json", MARK: mark, **written}
    )
    backend = {"/v1/messages": "anthropic", "/v1/responses": "responses"}.get(path, "openai")
    received = stack.received(backend, mark)
    assert len(received) <= 1
    return answer, received[0] if received else None


def digest(body: bytes) -> tuple[int, str]:
    return len(body), hashlib.sha256(body).hexdigest()


def arrived(received: Received | None) -> tuple[int, str]:
    assert received is not None
    return received.body_length, received.body_sha256


def one_message(size: int) -> bytes:
    """A chat request of exactly `size` bytes whose one text asks about code."""
    frame = json.dumps({"model": AUTO.decode(), "messages": [{"role": "user", "content": ""}]})
    room = size - len(frame)
    text = (CODE * (room // len(CODE) + 1))[:room]
    return json.dumps({"model": AUTO.decode(), "messages": [{"role": "user", "content": text}]}).encode()


def many_messages(size: int) -> bytes:
    """A conversation of about `size` bytes in short turns, the last of which asks about code."""
    turn = {"role": "user", "content": CODE}, {"role": "assistant", "content": "Show me the traceback, please."}
    count = size // len(json.dumps(turn))
    return json.dumps({"messages": [*turn * count, turn[0]], "model": AUTO.decode()}, indent=1).encode()


@pytest.mark.parametrize("make", [one_message, many_messages])
@pytest.mark.parametrize("size", SIZES)
def test_a_body_of_any_size_is_decided_and_edited_in_place(
    either: Stack, http: httpx.Client, size: str, make: Callable[[int], bytes]
) -> None:
    body = make(SIZES[size])
    answer, received = send(http, either, body)
    assert (answer.status_code, answer.json().get("model")) == (200, "qwen3-coder-30b")
    assert answer.headers["x-vsr-selected-decision"] == "code"
    assert arrived(received) == digest(body.replace(AUTO, b"qwen3-coder-30b"))


# Everything that a re-serialised body would lose: order, spaces, escapes, spellings of numbers, fields nobody knows.
ODD = (
    b'\n{ "temperature" : 1.0e+0,\t"model":\r\n "MODEL" , "zz_unknown": {"model": "inner", "b":[1.10, -0.0, 1E5]},\n'
    b'  "messages" : [ {"role":"user","content":"\\u0041\\/\\n caf\\u00e9 \\ud83d\\ude80 \xc3\xa9 e\xcc\x81"} ],\n'
    b'\n "seed":7 }\n'
)


@pytest.mark.parametrize("size", ["as it is", "large"])
def test_a_body_that_needs_no_edit_passes_byte_for_byte(either: Stack, http: httpx.Client, size: str) -> None:
    body = ODD.replace(b"MODEL", b"general")
    if size == "large":
        body = body.replace(b"caf", b"caf" + b" \\t long" * 500_000)
    answer, received = send(http, either, body)
    assert (answer.status_code, answer.json().get("model")) == (200, "general")
    assert arrived(received) == digest(body)


@pytest.mark.parametrize(
    ("path", "turns", "model"),
    [
        (CHAT, b'"messages":[{"role":"user","content":"TEXT"}]', b"qwen3-coder-30b"),
        ("/v1/responses", b'"input":[{"role":"user","content":"TEXT"}]', b"coder-r"),
        ("/v1/messages", b'"max_tokens":9,"messages":[{"role":"user","content":"TEXT"}]', b"claude-coder"),
    ],
)
@pytest.mark.parametrize(
    "text",
    [
        "Fix this Python function: def f(x): return x +",
        'Python: print("😀 👨‍👩‍👧‍👦 🇩🇪") raises UnicodeEncodeError, why?',
        "Python 文字列 'こんにちは' を bytes に encode する関数 def to_bytes(s): ... TypeError",
        "Python: 'e\u0301' == '\u00e9' returns False in my string comparison function. Why?",
    ],
    ids=["ascii", "emoji", "cjk", "combining"],
)
def test_only_the_models_name_changes(
    either: Stack, http: httpx.Client, path: str, turns: bytes, model: bytes, text: str
) -> None:
    for written in (text.encode(), json.dumps(text)[1:-1].encode()):
        spoken = turns.replace(b"TEXT", written.replace(b'"', b'\\"') if written == text.encode() else written)
        body = b'{ "stream" : false,\n' + spoken + b' , "model" :"' + AUTO + b'", "x": {"model": "' + AUTO + b'"}}\n'
        answer, received = send(http, either, body, path)
        assert (answer.status_code, answer.json().get("model")) == (200, model.decode())
        expected = body.replace(AUTO, model, 1)
        assert arrived(received) == digest(expected)
        assert received is not None
        if received.all("content-length"):
            assert received.all("content-length") == [str(len(expected))]
        else:  # full duplex: the length of an edited body is not known when its head goes out
            assert received.all("transfer-encoding") == ["chunked"]


def test_the_edited_length_is_told_where_the_mode_allows_it(stack: Stack, http: httpx.Client) -> None:
    body = one_message(KIB)
    _, received = send(http, stack, body)
    assert received is not None
    assert received.all("content-length") == [str(len(body) - len(AUTO) + len(b"qwen3-coder-30b"))]
    assert not received.all("transfer-encoding")


ENCODERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "br": brotli.compress,
    "zstd": zstandard.ZstdCompressor().compress,
}


@pytest.mark.parametrize("encoding", ENCODERS)
@pytest.mark.parametrize("size", [KIB, 5 * MIB], ids=["small", "large"])
def test_an_encoded_body_that_is_edited_goes_on_plain(
    either: Stack, http: httpx.Client, encoding: str, size: int
) -> None:
    body = one_message(size)
    answer, received = send(http, either, ENCODERS[encoding](body), content_encoding=encoding)
    assert (answer.status_code, answer.json().get("model")) == (200, "qwen3-coder-30b")
    assert arrived(received) == digest(body.replace(AUTO, b"qwen3-coder-30b"))
    assert received is not None
    assert not received.all("content-encoding")


@pytest.mark.parametrize("encoding", ENCODERS)
def test_an_encoded_body_without_an_edit_goes_on_as_it_came(either: Stack, http: httpx.Client, encoding: str) -> None:
    body = ENCODERS[encoding](ODD.replace(b"MODEL", b"general"))
    answer, received = send(http, either, body, content_encoding=encoding)
    assert (answer.status_code, answer.json().get("model")) == (200, "general")
    assert arrived(received) == digest(body)
    assert received is not None
    assert received.all("content-encoding") == [encoding]


@functools.cache
def bomb_of(encoding: str) -> bytes:
    """Four times the limit, in less than a hundredth of it."""
    bomb = ENCODERS[encoding](b'{"model":"general","messages":"' + b" " * (64 * MIB) + b'"}')
    assert len(bomb) < MIB // 8
    return bomb


@pytest.mark.parametrize("encoding", ENCODERS)
@pytest.mark.parametrize("path", [CHAT, "/v1/messages"])
def test_a_bomb_is_refused(either: Stack, http: httpx.Client, encoding: str, path: str) -> None:
    answer, received = send(http, either, bomb_of(encoding), path, content_encoding=encoding)
    assert answer.status_code == 413
    assert answer.json()["error"].get("code", "body_too_large") == "body_too_large"
    assert ("type" in answer.json()) == (path == "/v1/messages")
    assert received is None


@pytest.mark.parametrize("size", [KIB, MIB, 12 * MIB], ids=["1 KiB", "1 MiB", "12 MiB"])
def test_a_body_in_chunks_of_unknown_length(either: Stack, http: httpx.Client, size: int) -> None:
    body = one_message(size)
    step = max(100, size // 50)
    answer, received = send(http, either, (body[at : at + step] for at in range(0, size, step)))
    assert (answer.status_code, answer.json().get("model")) == (200, "qwen3-coder-30b")
    assert arrived(received) == digest(body.replace(AUTO, b"qwen3-coder-30b"))


def test_too_large_a_body_of_unknown_length(either: Stack, http: httpx.Client) -> None:
    body = (b"x" * MIB for _ in range(18))
    answer, received = send(http, either, body, "/v1/messages")
    assert (answer.status_code, answer.json()["error"]["type"]) == (413, "request_too_large")
    assert received is None


@pytest.mark.parametrize("size", [KIB, 2 * MIB], ids=["1 KiB", "2 MiB"])
@pytest.mark.parametrize("trailers", [None, [("x-checksum", "abc"), ("x-vsr-selected-model", "claude-general")]])
def test_http2_and_trailers_after_a_body(either: Stack, size: int, trailers: list[tuple[str, str]] | None) -> None:
    body, mark = one_message(size), uuid.uuid4().hex
    headers = [("content-type", "application/json"), (MARK, mark)]
    answer = raw_http.http2(either.ports["listener"], CHAT, body, headers=headers, trailers=trailers)
    assert (answer.status, json.loads(answer.body).get("model")) == (200, "qwen3-coder-30b")
    assert answer.headers["x-vsr-selected-decision"] == "code"
    assert [arrived(one) for one in either.received("openai", mark)] == [digest(body.replace(AUTO, b"qwen3-coder-30b"))]


@pytest.mark.parametrize("size", [KIB, 2 * MIB], ids=["1 KiB", "2 MiB"])
@pytest.mark.parametrize("trailers", [[], [("x-checksum", "abc"), ("x-vsr-selected-model", "claude-general")]])
def test_http1_trailers_after_a_body(either: Stack, size: int, trailers: list[tuple[str, str]]) -> None:
    body, mark = one_message(size), uuid.uuid4().hex
    headers = [("content-type", "application/json"), (MARK, mark)]
    answer = raw_http.http1(either.ports["listener"], CHAT, body, headers=headers, trailers=trailers)
    assert (answer.status, json.loads(answer.body).get("model")) == (200, "qwen3-coder-30b")
    assert [arrived(one) for one in either.received("openai", mark)] == [digest(body.replace(AUTO, b"qwen3-coder-30b"))]


def test_trailers_alone_are_no_body(either: Stack) -> None:
    mark = uuid.uuid4().hex
    answer = raw_http.http2(either.ports["listener"], CHAT, b"", headers=[(MARK, mark)], trailers=[("x-sum", "abc")])
    assert (answer.status, json.loads(answer.body)["error"]["code"]) == (400, "empty_body")
    assert not either.received("openai", mark)


def test_trailers_never_become_headers(either: Stack, http: httpx.Client) -> None:
    """Neither of their own request nor, as some servers have it, of the next one on the connection."""
    mark = uuid.uuid4().hex
    body = ODD.replace(b"MODEL", b"general")
    trailers = [("x-sum", "abc"), ("x-vsr-selected-model", "coder"), ("authorization", "Bearer forged")]
    for _ in range(3):
        raw_http.http1(either.ports["listener"], CHAT, body, headers=[(MARK, mark)], trailers=trailers)
        raw_http.http2(either.ports["listener"], CHAT, body, headers=[(MARK, mark)], trailers=trailers)
        http.post(either.base + CHAT, content=body, headers={MARK: mark})
    received = either.received("openai", mark)
    assert [one.body_sha256 for one in received] == [digest(body)[1]] * 9
    assert not {name for one in received for name, _ in one.headers} & {name for name, _ in trailers}
