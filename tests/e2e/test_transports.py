"""Both transports under a real Envoy come to the same; and Envoy is told how each of them is."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import threading
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse
from grpc_health.v1.health_pb2_grpc import HealthStub

from tests.support.stack import Stack

CHAT = "/v1/chat/completions"
QUESTION = "Why does this Python function raise a TypeError? "


@pytest.fixture(params=["stack", "streamed", "reference"])
def any_stack(request: pytest.FixtureRequest) -> Stack:
    """Fast and buffered, fast in full duplex, grpcio and buffered."""
    started = request.getfixturevalue(request.param)
    assert isinstance(started, Stack)
    return started


def post(stack: Stack, path: str, body: bytes) -> tuple[int, dict[str, str], Any]:
    request = urllib.request.Request(stack.base + path, data=body, headers={"content-type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, {name.lower(): value for name, value in answer.headers.items()}, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, {}, json.load(error)


def chat(text: str) -> bytes:
    return json.dumps({"model": "pointsman/auto", "messages": [{"role": "user", "content": text}]}).encode()


@pytest.mark.parametrize("size", [100, 20_000, 3 * 1024 * 1024])
def test_a_decision(any_stack: Stack, size: int) -> None:
    status, headers, document = post(any_stack, CHAT, chat((QUESTION * (size // len(QUESTION) + 1))[:size]))
    assert (status, document["model"]) == (200, "qwen3-coder-30b")
    assert headers["x-vsr-selected-decision"] == "code"


def test_refusals_from_heads_and_from_bodies(any_stack: Stack) -> None:
    assert post(any_stack, "/v1/unheard-of", b"{}")[0] == 404
    status, _, document = post(any_stack, CHAT, b"{")
    assert (status, document["error"]["code"]) == (400, "invalid_json")


def test_many_at_once(any_stack: Stack) -> None:
    results: list[int] = []
    threads = [
        threading.Thread(target=lambda: results.append(post(any_stack, CHAT, chat(QUESTION))[0])) for _ in range(24)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [200] * 24


def test_probes(any_stack: Stack) -> None:
    """What a Kubernetes gRPC probe asks."""
    with grpc.insecure_channel(f"127.0.0.1:{any_stack.ports['extproc']}") as channel:
        stub: Any = HealthStub(channel)
        assert stub.Check(HealthCheckRequest(), timeout=5).status == HealthCheckResponse.SERVING
        watch = stub.Watch(HealthCheckRequest(), timeout=5)
        assert next(watch).status == HealthCheckResponse.SERVING
        watch.cancel()


def test_envoys_own_health_checks_pass_and_nothing_is_held_against_the_router(any_stack: Stack) -> None:
    stats = envoy_stats(any_stack)

    def total(end: str) -> int:
        return sum(value for name, value in stats.items() if name.startswith("cluster.") and name.endswith(end))

    assert total("health_check.success") > 0
    assert total("membership_healthy") == total("membership_total")
    for complaint in ("upstream_cx_protocol_error", "http2.rx_messaging_error", "http2.tx_flush_timeout"):
        assert total(complaint) == 0, complaint


def envoy_stats(stack: Stack) -> dict[str, int]:
    """Envoy's counters and gauges, from its admin socket."""
    words = next(command for command in stack.children().values() if "--config-path" in command).split()
    admin = Path(words[words.index("--config-path") + 1]).parent / "admin.sock"
    connection = http.client.HTTPConnection("admin")
    connection.sock = socket.socket(socket.AF_UNIX)
    with contextlib.closing(connection):
        connection.sock.connect(str(admin))
        connection.request("GET", "/stats")
        answer = connection.getresponse().read().decode()
    pairs = (line.strip().rsplit(": ", 1) for line in answer.splitlines() if ": " in line)
    return {name: int(value) for name, value in pairs if value.isdigit()}
