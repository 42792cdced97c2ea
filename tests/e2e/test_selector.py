"""The systemone selector on the embedded model: one more question decides between candidates, once a conversation."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest

from tests.support.sdks import Sdks, connected
from tests.support.stack import Stack, running

CONFIG = """\
version: v0.5
listeners: [{name: public, address: 127.0.0.1, port: <listener>}]
providers:
  models:
    - {name: coder, description: "Writes and repairs programs.", backend_refs: [{endpoint: "http://127.0.0.1:<openai>/v1"}]}
    - {name: poet, description: "Writes poems and stories.", backend_refs: [{endpoint: "http://127.0.0.1:<openai>/v1"}]}
    - {name: claude, api_format: anthropic, backend_refs: [{endpoint: "http://127.0.0.1:<anthropic>/v1"}]}
recipes:
  - name: chosen
    decisions:
      - name: all
        rules: {}
        modelRefs: [{model: coder}, {model: poet}, {model: claude}]
        algorithm: {type: systemone, systemone: {timeout_ms: 30000}}
entrypoints: [{model_names: [auto], recipe: chosen, default: true}]
global:
  services:
    extproc: {port: <extproc>}
    metrics: {port: <metrics>}
    management: {port: <management>}
"""


@pytest.fixture(scope="module")
def selecting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    with running(tmp_path_factory.mktemp("selector"), CONFIG) as started:
        yield started


@pytest.fixture(scope="module")
def clients(selecting: Stack) -> Iterator[Sdks]:
    with connected(selecting) as found:
        yield found


def ask(clients: Sdks, text: str, session: str) -> str:
    raw = clients.oai.chat.completions.with_raw_response.create(
        model="auto", messages=[{"role": "user", "content": text}], extra_headers={"x-session-id": session}
    )
    assert raw.headers["x-vsr-selected-algorithm"] == "systemone"
    assert raw.headers["x-vsr-selected-model"] == raw.parse().model
    return raw.parse().model


def test_the_model_chooses_and_the_conversation_stays(selecting: Stack, clients: Sdks) -> None:
    session = uuid.uuid4().hex
    calls = 'vsr_model_runtime_requests_total{deployment="builtin",outcome="ok"}'
    before = selecting.metric(calls)
    chosen = ask(clients, "Write a Python function that sorts a list of dictionaries by a key.", session)
    assert chosen in ("coder", "poet")
    assert selecting.metric(calls) == before + 1
    assert ask(clients, "Now write a poem about the sea instead.", session) == chosen
    assert selecting.metric(calls) == before + 1
    assert selecting.total("pointsman_selector_fallbacks_total{") == 0


def test_a_lone_candidate_of_a_format_needs_no_question(clients: Sdks) -> None:
    raw = clients.claude.messages.with_raw_response.create(
        model="auto", max_tokens=9, messages=[{"role": "user", "content": "Hello?"}]
    )
    assert raw.headers["x-vsr-selected-model"] == "claude"
