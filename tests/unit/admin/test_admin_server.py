"""The health endpoints over real HTTP."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator

import pytest

from router.admin.server import AdminServer, management_app, metrics_app
from router.admin.status import Status
from router.config.plan import Service
from router.observe import Metrics
from tests.support.stack import fetch


@pytest.fixture
def status() -> Status:
    return Status(revision="abc")


@pytest.fixture
def server(status: Status) -> Iterator[AdminServer]:
    metrics = Metrics()
    metrics.error("no_route")()
    somewhere = Service("127.0.0.1", 0)
    started = AdminServer([(somewhere, management_app(status)), (somewhere, metrics_app(metrics))])
    started.start()
    yield started
    started.stop()


def get(server: AdminServer, path: str, app: int = 0) -> tuple[int, bytes]:
    return fetch(f"http://127.0.0.1:{server.ports[app]}{path}")


@pytest.mark.parametrize("path", ["/readyz", "/ready"])
def test_ready(server: AdminServer, status: Status, path: str) -> None:
    code, body = get(server, path)
    assert (code, json.loads(body)["accepting"]) == (503, False)
    status.accepting = True
    code, body = get(server, path)
    assert (code, json.loads(body)) == (200, status.detail())


@pytest.mark.parametrize("path", ["/livez", "/health"])
def test_live(server: AdminServer, status: Status, path: str) -> None:
    assert get(server, path) == (200, b'{"live":true}')
    status.beat()
    status.clock = lambda: time.monotonic() + 61
    assert get(server, path) == (503, b'{"live":false}')


def test_metrics(server: AdminServer) -> None:
    code, body = get(server, "/metrics", app=1)
    assert code == 200
    assert b'llm_request_errors_total{reason="no_route"} 1.0' in body


def test_each_port_has_its_own_paths(server: AdminServer) -> None:
    assert get(server, "/metrics")[0] == 404
    assert get(server, "/readyz", app=1)[0] == 404


def test_a_port_that_is_taken_leaves_nothing_behind(status: Status) -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        taken = Service("127.0.0.1", holder.getsockname()[1])
        server = AdminServer([(Service("127.0.0.1", 0), management_app(status)), (taken, metrics_app(Metrics()))])
        with pytest.raises(OSError, match="address already in use"):
            server.start()
    with pytest.raises(OSError, match="refused"):
        get(server, "/livez")
    server.stop()


def test_stopping_twice_is_harmless(server: AdminServer) -> None:
    server.stop()
    server.stop()
    with pytest.raises(OSError, match="refused"):
        get(server, "/livez")


def test_a_client_that_keeps_its_connection_does_not_hold_up_the_end(server: AdminServer) -> None:
    with socket.create_connection(("127.0.0.1", server.ports[0]), timeout=5) as client:
        client.sendall(b"GET /livez HTTP/1.1\r\nhost: x\r\n\r\n")
        assert client.recv(100).startswith(b"HTTP/1.1 200")
        began = time.monotonic()
        server.stop()
        assert time.monotonic() - began < 4
