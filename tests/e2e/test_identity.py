"""Who asks: a trusted peer's word counts, everybody else's is removed before it is read, forwarded or counted.

Peers are told apart by the address that they connect from: one of the loopback network stands for the proxy that
authenticates.
"""

from __future__ import annotations

import http.client
import json
import uuid
from collections.abc import Iterator

import pytest

from tests.support.stack import MARK, Stack, running

PROXY, ANYBODY = "127.0.0.2", "127.0.0.1"
CONFIG = """\
version: v0.5
listeners:
  - name: behind_proxy
    address: 127.0.0.1
    port: <listener>
    identity: {trust_headers: true, trusted_peers: [127.0.0.2/32]}
  - {name: open, address: 127.0.0.1, port: <spare>}
providers:
  models:
    - {name: staff, backend_refs: [{endpoint: "http://127.0.0.1:<openai>/v1"}]}
    - {name: general, backend_refs: [{endpoint: "http://127.0.0.1:<openai>/v1"}]}
recipes:
  - name: who
    signals:
      role_bindings:
        - name: operators
          role: operator
          subjects: [{kind: Group, name: ops}, {kind: User, name: ada}]
    decisions:
      - {name: staff, rules: {type: authz, name: operators}, modelRefs: [{model: staff}]}
      - {name: rest, rules: {}, modelRefs: [{model: general}]}
entrypoints: [{model_names: [auto], recipe: who, default: true}]
global:
  services:
    extproc: {port: <extproc>}
    metrics: {port: <metrics>}
    management: {port: <management>}
"""


@pytest.fixture(scope="module", params=["buffered", "streamed"])
def guarded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    config = CONFIG + ("  router: {streamed_body: {enabled: true}}\n" if request.param == "streamed" else "")
    with running(tmp_path_factory.mktemp("identity"), config, arguments=("--log-level", "debug")) as started:
        yield started


def ask(stack: Stack, peer: str, headers: list[tuple[str, str]], *, listener: str = "listener") -> tuple[str, set[str]]:
    """The decision for a request from an address, and the identity headers that the backend got."""
    mark = uuid.uuid4().hex
    body = json.dumps({"model": "auto", "messages": [{"role": "user", "content": "hello"}]}).encode()
    connection = http.client.HTTPConnection("127.0.0.1", stack.ports[listener], timeout=20, source_address=(peer, 0))
    connection.putrequest("POST", "/v1/chat/completions")
    for name, value in [
        ("content-type", "application/json"),
        ("content-length", str(len(body))),
        (MARK, mark),
        *headers,
    ]:
        connection.putheader(name, value)
    connection.endheaders(body)
    answer = connection.getresponse()
    answer.read()
    connection.close()
    assert answer.status == 200
    (received,) = stack.received("openai", mark)
    return answer.headers["x-vsr-selected-decision"], {name for name, _ in received.headers if "authz" in name}


GROUPS = [("x-authz-user-groups", "dev, ops")]
USER = [("x-authz-user-id", "ada")]


@pytest.mark.parametrize("headers", [GROUPS, USER, [*USER, ("x-authz-user-groups", "dev")]])
def test_a_trusted_peer_says_who_asks(guarded: Stack, headers: list[tuple[str, str]]) -> None:
    assert ask(guarded, PROXY, headers)[0] == "staff"


@pytest.mark.parametrize("headers", [[], [("x-authz-user-groups", "dev")], [("x-authz-user-id", "eve")]])
def test_a_trusted_peer_that_names_somebody_else_or_nobody(guarded: Stack, headers: list[tuple[str, str]]) -> None:
    assert ask(guarded, PROXY, headers)[0] == "rest"


SPELLINGS = [
    *(GROUPS, USER, [("X-Authz-User-Groups", "ops")], [*GROUPS, *GROUPS]),
    [("x-forwarded-for", PROXY), ("x-real-ip", PROXY), ("forwarded", f"for={PROXY}"), *USER],
]


@pytest.mark.parametrize("headers", SPELLINGS)
@pytest.mark.parametrize(("peer", "listener"), [(ANYBODY, "listener"), (ANYBODY, "spare"), (PROXY, "spare")])
def test_nobody_else_does(guarded: Stack, peer: str, listener: str, headers: list[tuple[str, str]]) -> None:
    """A forwarded address does not count either: what counts is who is connected."""
    assert ask(guarded, peer, headers, listener=listener) == ("rest", set())


def test_a_name_with_underscores_is_no_way_round(guarded: Stack) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", guarded.ports["listener"], timeout=20)
    connection.request("POST", "/v1/chat/completions", b"{}", {"x_authz_user_groups": "ops"})
    assert connection.getresponse().status == 400
    connection.close()


def test_an_identity_is_not_logged_or_counted(guarded: Stack) -> None:
    canary = "who" + uuid.uuid4().hex
    for peer in (PROXY, ANYBODY):
        ask(guarded, peer, [("x-authz-user-id", canary), ("x-authz-user-groups", canary)])
    assert canary not in guarded.log()
    assert canary not in guarded.metrics()
