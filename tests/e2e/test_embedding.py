"""Embedding rules on a text encoder of a hub's layout: the runtime embeds, the router compares, Envoy routes."""

from __future__ import annotations

import json
import urllib.request
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.artifacts_foreign import build_text_encoder
from tests.support.sdks import Sdks, connected
from tests.support.stack import MARK, Stack, running

CONFIG = """\
version: v0.5
listeners: [{name: public, address: 127.0.0.1, port: <listener>, debug: {allow: true}}]
providers:
  models:
    - {name: helpdesk, backend_refs: [{endpoint: "http://127.0.0.1:<openai>/v1"}]}
    - {name: general, backend_refs: [{endpoint: "http://127.0.0.1:<openai>/v1"}]}
recipes:
  - name: near
    signals:
      embeddings:
        - name: account
          deployment: encoder
          threshold: 0.6
          timeout_ms: 20000
          candidates: [reset my password, close my account]
        - name: both
          deployment: encoder
          threshold: 0.6
          aggregation_method: mean
          timeout_ms: 20000
          candidates: [reset my password, close my account]
    decisions:
      - name: broad
        priority: 2
        rules: {operator: AND, conditions: [{type: embedding, name: both}]}
        modelRefs: [{model: general}]
      - name: help
        priority: 1
        rules: {operator: AND, conditions: [{type: embedding, name: account}]}
        modelRefs: [{model: helpdesk}]
        emits: [{kind: retention, retention: {drop: true, prefer_prefix_retention: true}}]
      - name: rest
        rules: {}
        modelRefs: [{model: general}]
entrypoints: [{model_names: [auto], recipe: near, default: true}]
global:
  model_catalog:
    deployments:
      encoder: {provider: model_runtime, artifact: ENCODER, device: cpu}
  services:
    extproc: {port: <extproc>}
    metrics: {port: <metrics>}
    management: {port: <management>}
"""
CALLS = 'vsr_model_runtime_requests_total{deployment="encoder",outcome="ok"}'


@pytest.fixture(scope="module")
def near(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    words = ["reset", "my", "password", "close", "account", "please", "weather", "today"]
    encoder = build_text_encoder(tmp_path_factory.mktemp("encoder"), words=words)
    with running(tmp_path_factory.mktemp("embedding"), CONFIG.replace("ENCODER", str(encoder))) as started:
        yield started


@pytest.fixture(scope="module")
def clients(near: Stack) -> Iterator[Sdks]:
    with connected(near) as found:
        yield found


def test_candidates_are_embedded_before_the_first_request(near: Stack) -> None:
    assert near.metric(CALLS) == 1


@pytest.mark.parametrize(
    ("text", "decision", "matched"),
    [
        ("please reset password", "help", "account"),
        ("close my account", "broad", "account,both"),
        ("weather today", "rest", None),
    ],
)
def test_a_turn_goes_where_it_is_alike(
    near: Stack, clients: Sdks, text: str, decision: str, matched: str | None
) -> None:
    before = near.metric(CALLS)
    raw = clients.oai.chat.completions.with_raw_response.create(
        model="auto", messages=[{"role": "user", "content": text}], extra_headers={"x-vsr-debug": "true"}
    )
    assert raw.headers["x-vsr-selected-decision"] == decision
    assert raw.headers.get("x-vsr-matched-embeddings") == matched
    # Both rules compare with the same texts, so one question in one call answers both.
    assert near.metric(CALLS) == before + 1


def test_the_preview_names_the_nearest_candidate_by_its_place(near: Stack) -> None:
    body = json.dumps({"model": "auto", "text": "close the account"}).encode()
    url = f"http://127.0.0.1:{near.ports['management']}/api/v1/routing/preview"
    with urllib.request.urlopen(urllib.request.Request(url, body), timeout=30) as reply:
        shown: dict[str, Any] = json.load(reply)
    account = next(one for one in shown["signals"] if one["key"] == "embedding:account")
    assert account["answer"]["best"] == 1
    assert account["values"][""] == pytest.approx(max(account["answer"]["similarities"]))
    assert (account["predicate"], account["matched"]) == ({"gte": 0.6}, True)
    assert "close my account" not in json.dumps(shown)


def test_what_the_decision_emits_reaches_the_client_and_no_backend(near: Stack, clients: Sdks) -> None:
    mark = uuid.uuid4().hex
    raw = clients.oai.chat.completions.with_raw_response.create(
        model="auto",
        messages=[{"role": "user", "content": "please reset password"}],
        extra_headers={MARK: mark, "x-vsr-retention-prefer-prefix": "false", "x-vsr-retention-drop": "false"},
    )
    assert raw.headers["x-vsr-retention-drop"] == "true"
    assert raw.headers["x-vsr-retention-prefer-prefix"] == "true"
    assert "x-vsr-retention-keep-current-model" not in raw.headers
    (received,) = near.received("openai", mark)
    assert not [name for name, _ in received.headers if name.startswith("x-vsr-")]
