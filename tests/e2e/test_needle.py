"""An attack is found wherever it stands in a long text, however it is written; the same texts without it pass.

Through Envoy, on a model that is never wrong, so that whatever is missed was not read. A slice of `bench/needle`.
"""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator

import pytest

from bench.lib.fillers import DISGUISES, KINDS, filler, first_bytes, placed
from router.config.sizes import WrittenSizes
from tests.support.artifacts_exact import ATTACKS, MOST_TOKENS, build_exact_artifact
from tests.support.stack import Stack, running

CONFIG = """\
version: v0.5
listeners: [{name: public, address: 127.0.0.1, port: <listener>, models: [auto]}]
providers:
  models:
    - {name: general, backend_refs: [{endpoint: "http://127.0.0.1:<openai>/v1"}]}
recipes:
  - name: guarded
    signals:
      jailbreak: [{name: attack}]
    decisions:
      - name: refuse
        priority: 100
        rules: {type: jailbreak, name: attack}
        plugins: [{type: fast_response, configuration: {message: "I cannot help with that."}}]
      - name: rest
        rules: {}
        modelRefs: [{model: general}]
entrypoints: [{model_names: [auto], recipe: guarded, default: true}]
global:
  model_catalog:
    deployments:
      exact: {provider: model_runtime, artifact: EXACT, device: cpu}
    system: {decision_model: exact}
  services:
    extproc: {port: <extproc>}
    metrics: {port: <metrics>}
    management: {port: <management>}
"""

SIZE = 256 * 1024
WINDOW = WrittenSizes().scan(MOST_TOKENS).size


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    exact = build_exact_artifact(tmp_path_factory.mktemp("exact"))
    config = CONFIG.replace("EXACT", json.dumps(str(exact)))
    with running(tmp_path_factory.mktemp("needle"), config, only=("openai",)) as stack:
        yield stack


def decision(stack: Stack, text: str) -> tuple[str, str | None]:
    """What was decided about a user's turn, and the warnings that came with it."""
    body = json.dumps({"model": "auto", "messages": [{"role": "user", "content": text}]})
    connection = http.client.HTTPConnection("127.0.0.1", stack.ports["listener"], timeout=60)
    try:
        connection.request("POST", "/v1/chat/completions", body, {"content-type": "application/json"})
        answer = connection.getresponse()
        assert answer.status == 200, answer.read()
        answer.read()
        return answer.headers["x-vsr-selected-decision"], answer.headers["x-vsr-warnings"]
    finally:
        connection.close()


@pytest.mark.parametrize("place", [0, 50, 100])
@pytest.mark.parametrize("kind", KINDS)
def test_an_attack_is_refused_wherever_it_stands(guarded: Stack, kind: str, place: int) -> None:
    text = placed(filler(kind, SIZE, place), ATTACKS[0], place)
    assert decision(guarded, text) == ("refuse", None)
    # What a guard would see that reads the first window and no more.
    assert decision(guarded, first_bytes(text, WINDOW))[0] == ("rest" if place else "refuse")


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_without_an_attack_is_read_whole_and_passes(guarded: Stack, kind: str) -> None:
    full = 'vsr_signal_scan_coverage_total{result="full",signal="jailbreak:attack"}'
    before = guarded.metric(full)
    assert decision(guarded, filler(kind, SIZE, 50)) == ("rest", None)
    assert guarded.metric(full) == before + 1


@pytest.mark.parametrize("name", DISGUISES)
def test_a_disguise_does_not_help(guarded: Stack, name: str) -> None:
    text = placed(filler("prose", 4 * WINDOW, 7), DISGUISES[name](ATTACKS[0]), 50)
    assert decision(guarded, text)[0] == "refuse"
