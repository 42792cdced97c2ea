"""Processes are killed outright; no request is ever forwarded that the model's answers did not send there."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.stack import Stack, eventually, fetch, running
from tests.support.traffic import Answered, Later, Load, ThreadedModel, ask_once, fake_model, load

CONFIG = (Path(__file__).parent / "chaos.yaml").read_text()

UNANSWERED = {"no_route", "decision_unresolved"}
"""What the two recipes say when their model did not answer."""
STARTING = {"unavailable"}
"""What a router says whose own model has not answered yet."""
FROM_ENVOY = {"router_unavailable"}


@pytest.fixture(scope="module")
def model() -> Iterator[ThreadedModel]:
    with fake_model() as started:
        started.fake.answer("Is this code?", 0.95)
        yield started


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory, model: ThreadedModel) -> Iterator[Stack]:
    template = CONFIG.replace("<elsewhere>", model.fake.endpoint)
    with running(tmp_path_factory.mktemp("chaos"), template) as started:
        yield started


@pytest.fixture
def chaos(shared: Stack) -> Stack:
    """The stack in full health, its backend's memory empty."""
    shared.wait_ready()
    forget(shared)
    return shared


def forget(stack: Stack) -> None:
    import urllib.request

    url = f"http://127.0.0.1:{stack.ports['openai']}/_recorded"
    urllib.request.urlopen(urllib.request.Request(url, method="DELETE"), timeout=5).read()


def received(stack: Stack) -> list[str]:
    """The ids of the requests that the backend has got, and that it got them for the decided model."""
    status, body = fetch(f"http://127.0.0.1:{stack.ports['openai']}/_recorded")
    recorded = json.loads(body)
    assert status == 200
    assert recorded["total"] == len(recorded["requests"]), "more requests than the backend remembers"
    assert {entry["model"] for entry in recorded["requests"]} <= {"qwen3-coder-30b"}
    return [dict(entry["headers"])["x-test-id"] for entry in recorded["requests"]]


def routed(answers: list[Answered]) -> set[str]:
    """The ids of what a decision sent to the backend; every other answer is an error that says why."""
    for answer in answers:
        if answer.status == 200:
            assert answer.decision == "code"
            assert answer.body["model"] == "qwen3-coder-30b"
    return {answer.id for answer in answers if answer.status == 200}


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)


def serves(answer: Answered) -> bool:
    return answer.status == 200


class TestRuntimeKilled:
    def test_while_requests_come(self, chaos: Stack) -> None:
        before = chaos.metric('vsr_model_runtime_restarts_total{deployment="builtin"}')
        with load(chaos.ports["listener"], "no-match", "fail", name="runtime", clients=4, pause_s=0.02) as traffic:
            for _ in range(2):
                traffic.wait_for(serves, count=8)
                kill(chaos.child("runtime serve"))
                traffic.wait_for(lambda answer: answer.code in UNANSWERED)
                traffic.wait_for(serves, within=15)
        codes = {answer.code for answer in traffic.answers if answer.status != 200}
        assert codes == UNANSWERED, traffic.summary()
        assert sorted(received(chaos)) == sorted(routed(traffic.answers))
        assert chaos.metric('vsr_model_runtime_restarts_total{deployment="builtin"}') == before + 2
        assert chaos.metric('vsr_model_runtime_unknown_answers_total{deployment="builtin",reason="unavailable"}') > 0

    def test_says_so_while_it_is_away(self, chaos: Stack) -> None:
        kill(chaos.child("runtime serve"))
        eventually(lambda: chaos.management("/readyz")[0] == 503, "readiness notices", within=5)
        assert ask_once(chaos.ports["listener"], "away", model="fail").code == "decision_unresolved"
        assert received(chaos) == []
        chaos.wait_ready()
        assert ask_once(chaos.ports["listener"], "back", model="fail").status == 200
        assert received(chaos) == ["back"]


class TestAttachedModelGone:
    def test_during_a_call(self, chaos: Stack, model: ThreadedModel) -> None:
        model.call(model.fake.hold)
        model.call(lambda: model.fake.drop(1))
        seen = len(model.fake.calls)
        request = Later(chaos.ports["listener"], "dropped", model="attached")
        eventually(lambda: len(model.fake.calls) > seen, "the call has arrived", within=5)
        model.call(model.fake.release)
        answer = request.result()
        # A call whose connection breaks before a byte of its answer may be asked again; it is never guessed.
        assert answer.code == "decision_unresolved" or answer.decision == "code"
        assert received(chaos) == (["dropped"] if answer.status == 200 else [])

    def test_between_calls(self, chaos: Stack, model: ThreadedModel) -> None:
        assert ask_once(chaos.ports["listener"], "first", model="attached").decision == "code"
        model.stop()
        try:
            answer = ask_once(chaos.ports["listener"], "second", model="attached")
            assert (answer.status, answer.code) == (503, "decision_unresolved")
            detail = json.loads(chaos.management("/readyz")[1])
            assert detail["ready"], "somebody else's model does not take this router out of service"
            eventually(
                lambda: json.loads(chaos.management("/readyz")[1])["attached"] == {"elsewhere": "not answering"},
                "readiness tells about the model",
                within=5,
            )
        finally:
            model.start()
        assert ask_once(chaos.ports["listener"], "third", model="attached").decision == "code"
        assert received(chaos) == ["first", "third"]


class TestRouterKilled:
    def test_while_requests_come(self, chaos: Stack) -> None:
        with load(chaos.ports["listener"], "fail", "no-match", name="router", clients=4, pause_s=0.02) as traffic:
            traffic.wait_for(serves, count=8)
            kill(chaos.child("--envoy-dir"))
            traffic.wait_for(lambda answer: answer.code in FROM_ENVOY)
            traffic.wait_for(serves, within=20)
        codes = {answer.code for answer in traffic.answers if answer.status != 200}
        assert codes <= STARTING | FROM_ENVOY, traffic.summary()
        assert sorted(received(chaos)) == sorted(routed(traffic.answers))
        eventually(lambda: runtimes(chaos) == 1, "the old router's runtime is gone", within=10)

    def test_while_it_waits_for_an_answer(self, chaos: Stack, model: ThreadedModel) -> None:
        model.call(model.fake.hold)
        seen = len(model.fake.calls)
        request = Later(chaos.ports["listener"], "waiting", model="attached")
        eventually(lambda: len(model.fake.calls) > seen, "the model is being asked", within=5)
        kill(chaos.child("--envoy-dir"))
        answer = request.result()
        model.call(model.fake.release)
        assert answer.status == 503
        assert answer.code in FROM_ENVOY
        chaos.wait_ready()
        assert received(chaos) == []

    def test_in_the_middle_of_an_upload(self, chaos: Stack) -> None:
        with upload(chaos) as (client, rest):
            kill(chaos.child("--envoy-dir"))
            eventually(lambda: not listens(chaos.ports["extproc"]), "the router is gone", within=5)
            client.sendall(rest)
            assert client.recv(65536).split(b" ")[1] in (b"500", b"503")
        chaos.wait_ready()
        assert received(chaos) == []


@contextlib.contextmanager
def upload(stack: Stack) -> Iterator[tuple[socket.socket, bytes]]:
    """A request whose head has reached the router and half of whose body is sent; the other half."""
    half = b'{"model":"fail","messages":[{"role":"user","content":"' + b"x" * 300_000
    rest = b"x" * 300_000 + b'"}]}'
    head = (
        "POST /v1/chat/completions HTTP/1.1\r\nhost: test\r\ncontent-type: application/json\r\n"
        f"x-test-id: upload\r\ncontent-length: {len(half) + len(rest)}\r\n\r\n"
    )
    before = stack.metric("pointsman_streams_in_flight")
    with socket.create_connection(("127.0.0.1", stack.ports["listener"]), timeout=20) as client:
        client.sendall(head.encode() + half)
        eventually(lambda: stack.metric("pointsman_streams_in_flight") > before, "the router has its head", within=5)
        yield client, rest


class TestInFullDuplex:
    def test_the_router_is_killed_before_and_during_a_body(self, tmp_path: Path, model: ThreadedModel) -> None:
        streamed = "global:\n  router: {streamed_body: {enabled: true}}\n"
        template = CONFIG.replace("<elsewhere>", model.fake.endpoint).replace("global:\n", streamed)
        with running(tmp_path, template) as stack:
            model.call(model.fake.hold)
            seen = len(model.fake.calls)
            request = Later(stack.ports["listener"], "waiting", model="attached")
            eventually(lambda: len(model.fake.calls) > seen, "the model is being asked", within=5)
            with upload(stack) as (client, rest):
                kill(stack.child("--envoy-dir"))
                assert request.result().status in (500, 503)
                eventually(lambda: not listens(stack.ports["extproc"]), "the router is gone", within=5)
                with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                    client.sendall(rest)
                assert client.recv(65536).split(b" ")[1] in (b"500", b"503")
            model.call(model.fake.release)
            stack.wait_ready()
            assert ask_once(stack.ports["listener"], "back", model="fail").status == 200
            assert received(stack) == ["back"]


class TestEnvoyKilled:
    def test_comes_back_with_its_configuration(self, chaos: Stack) -> None:
        with load(chaos.ports["listener"], "fail", name="envoy", clients=4, pause_s=0.02) as traffic:
            traffic.wait_for(serves, count=8)
            kill(chaos.child("--config-path"))
            traffic.wait_for(lambda answer: answer.status == 0)
            traffic.wait_for(serves, within=20, count=8)
        assert_only_broken_connections(traffic)
        # What Envoy had passed on when it was killed was decided, though its client never heard of it.
        assert routed(traffic.answers) <= set(received(chaos))
        assert not set(received(chaos)) - {a.id for a in traffic.answers if a.status in (0, 200)}


def assert_only_broken_connections(traffic: Load) -> None:
    assert {answer.code for answer in traffic.answers if answer.status not in (0, 200)} <= FROM_ENVOY


def runtimes(stack: Stack) -> int:
    return sum("runtime serve" in command for command in stack.children().values())


def listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True
