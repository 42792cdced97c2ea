"""How serving ends: in order when asked to, whole when killed, with a reason when it cannot begin."""

from __future__ import annotations

import contextlib
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse

from router.gateway.envoy.run import envoy_command
from tests.support.stack import PORT_NAMES, Stack, eventually, fetch, fill, free_ports, running, spawn, stop
from tests.support.traffic import Later, load

CONFIG = (Path(__file__).parent / "chaos.yaml").read_text().replace("<elsewhere>", "unix:///nobody.sock")
UNASKED = """\
version: v0.5
listeners: [{name: public, address: 127.0.0.1, port: <listener>}]
providers: {models: [{name: coder, backend_refs: [{endpoint: "http://127.0.0.1:<openai>/v1"}]}]}
recipes: [{name: all, decisions: [{name: code, rules: {}, modelRefs: [{model: coder}]}]}]
entrypoints: [{model_names: [auto], recipe: all}]
global:
  services:
    extproc: {port: <extproc>}
    metrics: {port: <metrics>}
    management: {port: <management>}
"""
"""Needs no model, so that a router starts at once."""
SLOW = {"x-sample-delay-ms": "2000"}


@pytest.fixture
def stack(tmp_path: Path) -> Iterator[Stack]:
    with running(tmp_path, CONFIG) as started:
        yield started


class TestAsked:
    def test_requests_in_flight_finish_and_no_process_is_left(self, stack: Stack) -> None:
        children = stack.children()
        assert len(children) == 3, children
        requests = [Later(stack.ports["listener"], f"slow-{i}", model="fail", headers=SLOW) for i in range(8)]
        eventually(lambda: len(stack.recorded("openai")) == 8, "all requests are at the backend", within=10)
        began = time.monotonic()
        stack.process.terminate()
        answers = [request.result() for request in requests]
        assert [answer.status for answer in answers] == [200] * 8
        assert stack.process.wait(20) == 0, stack.log_tail()
        assert time.monotonic() - began < 10
        assert not alive(children)
        assert not any(listens(stack.ports[name]) for name in ("listener", "extproc", "metrics", "management"))
        assert "Traceback" not in stack.log()


class TestKilled:
    def test_the_children_go_with_their_parent(self, stack: Stack) -> None:
        children = stack.children()
        assert len(children) == 3, children
        stack.process.kill()
        stack.process.wait()
        eventually(lambda: not alive(children), "every child is gone", within=15)
        assert not any(listens(stack.ports[name]) for name in ("listener", "extproc", "metrics", "management"))


class TestCannotBegin:
    @pytest.mark.parametrize("taken", ["extproc", "listener"])
    def test_a_port_that_is_taken(self, tmp_path: Path, taken: str) -> None:
        ports = dict(zip(PORT_NAMES, free_ports(len(PORT_NAMES)), strict=True))
        config = tmp_path / "pointsman.yaml"
        config.write_text(fill(CONFIG, ports))
        with socket.socket() as holder:
            holder.bind(("127.0.0.1", ports[taken]))
            holder.listen()
            log = tmp_path / "log"
            process = spawn(log, "-m", "router.cli", "serve", "--config", str(config), "--envoy")
            try:
                assert process.wait(40) == 1, log.read_text()
            finally:
                stop(process)
        said = log.read_text()
        assert str(ports[taken]) in said
        assert "Traceback" not in said

    def test_a_model_that_does_not_load(self, tmp_path: Path) -> None:
        from tests.support.artifacts import build_tiny_artifact

        ports = dict(zip(PORT_NAMES, free_ports(len(PORT_NAMES)), strict=True))
        broken = build_tiny_artifact(tmp_path / "broken", presets=True)
        (broken / "model.onnx").write_bytes(b"not a graph")
        config = tmp_path / "pointsman.yaml"
        text = fill(CONFIG, ports).replace("{name: subject,", "{name: subject, deployment: tiny,")
        text = text.replace(
            "    deployments:\n", f"    deployments:\n      tiny: {{provider: model_runtime, artifact: {broken}}}\n"
        )
        config.write_text(text)
        log = tmp_path / "log"
        process = spawn(log, "-m", "router.cli", "serve", "--config", str(config))
        try:
            assert process.wait(60) == 1, log.read_text()
        finally:
            stop(process)
        said = log.read_text()
        assert said.splitlines()[-1].startswith(f"the runtime for {broken} on auto does not start: it ended 3 times")
        assert "Traceback" not in said

    def test_told_to_stop_before_it_is_ready(self, tmp_path: Path) -> None:
        ports = dict(zip(PORT_NAMES, free_ports(len(PORT_NAMES)), strict=True))
        config = tmp_path / "pointsman.yaml"
        config.write_text(fill(CONFIG, ports))
        log = tmp_path / "log"
        process = spawn(log, "-m", "router.cli", "serve", "--config", str(config), "--settle-s", "0")
        try:
            eventually(lambda: listens(ports["management"]), "it has begun", within=20)
            process.send_signal(signal.SIGTERM)
            assert process.wait(15) == 0, log.read_text()
        finally:
            stop(process)
        assert "Traceback" not in log.read_text()


@contextlib.contextmanager
def two_routers(folder: Path) -> Iterator[tuple[dict[str, int], list[subprocess.Popen[bytes]], list[int]]]:
    """Two router processes behind one Envoy that somebody else runs, on a static configuration."""
    ports = dict(zip(PORT_NAMES, free_ports(len(PORT_NAMES)), strict=True))
    second = dict(zip(("extproc", "metrics", "management"), free_ports(3), strict=True))
    configs = [folder / "one.yaml", folder / "two.yaml"]
    configs[0].write_text(fill(UNASKED, ports))
    configs[1].write_text(fill(UNASKED, ports | second))
    extproc = [ports["extproc"], second["extproc"]]
    admin, bootstrap = free_ports(1)[0], folder / "envoy.yaml"
    render = [
        "envoy",
        "render",
        "--config",
        str(configs[0]),
        "--output",
        str(bootstrap),
        "--admin",
        f"127.0.0.1:{admin}",
    ]
    render += [word for port in extproc for word in ("--extproc", f"127.0.0.1:{port}")]
    assert spawn(folder / "render.log", "-m", "router.cli", *render).wait(60) == 0
    backend = spawn(
        folder / "backend.log", "-m", "examples.backends", "--port", str(ports["openai"]), "--format", "openai"
    )
    routers = [spawn(folder / f"{c.stem}.log", "-m", "router.cli", "serve", "--config", str(c)) for c in configs]
    with (folder / "envoy.log").open("wb") as out:
        envoy = subprocess.Popen(envoy_command(bootstrap, concurrency=1), stdout=out, stderr=out)
    try:
        for management in (ports["management"], second["management"]):
            url = f"http://127.0.0.1:{management}/readyz"
            eventually(lambda url=url: fetch(url)[0] == 200, "both routers are ready", within=60)
        eventually(lambda: healthy(admin) == 2, "Envoy sees both", within=10)
        yield ports, routers, [*extproc, admin]
    finally:
        for process in (*routers, envoy, backend):
            stop(process)


def healthy(admin: int) -> int:
    """How many router processes Envoy would send streams to."""
    stats = fetch(f"http://127.0.0.1:{admin}/stats?filter=ext_proc.membership_healthy")[1].decode()
    return int(stats.rsplit(": ", 1)[1]) if ": " in stats else 0


class TestOneOfTwoRoutersStops:
    def test_no_request_fails(self, tmp_path: Path) -> None:
        with two_routers(tmp_path) as (ports, routers, (first, _, admin)):
            with load(ports["listener"], "auto", name="two", pause_s=0.02) as traffic:
                traffic.wait_for(lambda answer: answer.status == 200, count=50)
                assert serving(first) == HealthCheckResponse.SERVING
                routers[0].send_signal(signal.SIGTERM)
                eventually(lambda: serving(first) == HealthCheckResponse.NOT_SERVING, "it says that it goes", within=5)
                assert routers[0].wait(20) == 0
                assert serving(first) is None
                assert healthy(admin) == 1
                traffic.wait_for(lambda answer: answer.status == 200, count=50)
            assert {answer.status for answer in traffic.answers} == {200}, traffic.summary()


def serving(port: int) -> int | None:
    """What the router says over gRPC health; None when it is gone."""
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        try:
            check = channel.unary_unary(
                "/grpc.health.v1.Health/Check",
                request_serializer=HealthCheckRequest.SerializeToString,
                response_deserializer=HealthCheckResponse.FromString,
            )
            return int(check(HealthCheckRequest(), timeout=2).status)
        except grpc.RpcError:
            return None


def alive(processes: dict[int, str]) -> list[int]:
    found = []
    for pid in processes:
        with contextlib.suppress(OSError):
            if Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z":
                found.append(pid)
    return found


def listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True
