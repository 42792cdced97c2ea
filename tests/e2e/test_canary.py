"""A marker in any text of a request, through real Envoy with everything on and capture off: told nowhere.

Logs (Envoy's own and its access log among them) at their wordiest, metrics, spans, records, and every error's body.
"""

from __future__ import annotations

import asyncio
import http.server
import json
import threading
import uuid
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import aiohttp
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.support.canary import DOCUMENTS, planted
from tests.support.stack import Stack, eventually, running

CONFIG = """\
version: v0.5
listeners: [{name: public, address: 127.0.0.1, port: <listener>, debug: {allow: true}}]
providers:
  models:
    - {name: general, backend_refs: [{endpoint: "http://127.0.0.1:<openai>/v1"}]}
    - {name: writer, api_format: responses, backend_refs: [{endpoint: "http://127.0.0.1:<responses>/v1"}]}
    - {name: claude, api_format: anthropic, backend_refs: [{endpoint: "http://127.0.0.1:<anthropic>/v1"}]}
recipes:
  - name: everything
    signals:
      keywords: [{name: billing, method: exact, keywords: [refund]}, {name: steps, keywords: ["\\\\bstep \\\\d+"]}]
      metadata: [{name: team, key: team, predicate: {equals: blue}}]
      language: [{name: en}]
      systemone:
        - {name: code, timeout_ms: 20000, question: {type: noul, instructions: Does the user want a program?}}
    decisions:
      - name: billing
        rules:
          operator: OR
          conditions: [{type: keyword, name: billing}, {type: metadata, name: team}, {type: keyword, name: steps}]
        modelRefs: [{model: general}, {model: writer}, {model: claude}]
        plugins: [{type: decision_diagnostics}, {type: system_prompt, configuration: {system_prompt: Be kind.}}]
      - name: code
        rules: {operator: OR, conditions: [{type: systemone, name: code}, {type: language, name: en}]}
        modelRefs: [{model: general}, {model: writer}, {model: claude}]
      - {name: rest, rules: {}, modelRefs: [{model: general}, {model: writer}, {model: claude}]}
entrypoints: [{model_names: [auto], recipe: everything, default: true}]
global:
  services:
    extproc: {port: <extproc>}
    metrics: {port: <metrics>}
    management: {port: <management>}
    router_replay: {enabled: true, path: replay.db}
    observability: {tracing: {enabled: true, endpoint: "http://127.0.0.1:<spare>/v1/traces"}}
"""


@pytest.fixture(scope="module")
def wordy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    with running(tmp_path_factory.mktemp("canary"), CONFIG, arguments=("--log-level", "debug")) as started:
        yield started


@pytest.fixture(scope="module")
def exported(wordy: Stack) -> Iterator[list[bytes]]:
    """Everything that is exported to a collector."""
    got: list[bytes] = []

    class Collector(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            got.append(self.rfile.read(int(self.headers["content-length"])))
            self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = http.server.HTTPServer(("127.0.0.1", wordy.ports["spare"]), Collector)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    yield got
    server.shutdown()
    thread.join()
    server.server_close()


async def send(stack: Stack, bodies: list[tuple[str, bytes]], canary: str) -> Counter[int]:
    """Send them, a few at a time. No header of an answer holds the marker, and no body of an error."""
    statuses: Counter[int] = Counter()
    headers = {"content-type": "application/json", "x-session-id": canary, "authorization": f"Bearer {canary}"}
    headers |= {"user-agent": canary, "x-api-key": canary, "cookie": f"a={canary}", "x-vsr-debug": "true"}
    few = asyncio.Semaphore(8)
    async with aiohttp.ClientSession(headers=headers) as session:

        async def one(path: str, body: bytes) -> None:
            async with few, session.post(f"{stack.base}{path}?name={canary}", data=body) as answer:
                statuses[answer.status] += 1
                told = await answer.text()
                assert canary not in str(answer.headers)
                assert canary not in told or answer.status == 200

        async with asyncio.TaskGroup() as group:
            for path, body in bodies:
                group.create_task(one(path, body))
    return statuses


async def test_a_marker_in_any_text_is_told_nowhere(wordy: Stack, exported: list[bytes]) -> None:
    canary = "canary" + uuid.uuid4().hex
    bodies = [
        (path, json.dumps(planted_one).encode())
        for path, document in DOCUMENTS.items()
        for planted_one in planted(document, canary)
    ]
    statuses = await send(wordy, bodies, canary)
    assert statuses[200] > len(bodies) * 0.7
    assert sum(count for status, count in statuses.items() if 400 <= status < 500) >= 10
    assert not statuses[500]
    received = [request for name in ("openai", "responses", "anthropic") for request in wordy.recorded(name)]
    assert len(received) >= statuses[200]
    count = statuses.total()
    eventually(lambda: spans(exported) >= count, "all spans are exported", within=30)
    eventually(lambda: wordy.total("pointsman_replay_records_total") >= count, "all records are written", within=30)
    for kind, text in left(wordy, exported).items():
        assert len(text) > 1_000, kind
        assert canary.encode() not in text, (kind, text[max(text.find(canary.encode()) - 300, 0) :][:400])


def spans(exported: list[bytes]) -> int:
    """How many requests the collector knows of."""
    return sum(
        span.name == "semantic_router.request.received"
        for body in exported
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    )


def left(stack: Stack, exported: list[bytes]) -> dict[str, bytes]:
    """Everything that is kept or told, by what it is."""
    files: list[Path] = [path for path in stack.directory.glob("replay.db*") if path.is_file()]
    return {
        "log": stack.log().encode(),
        "metrics": stack.metrics().encode(),
        "spans": b"".join(exported),
        "records": stack.management("/api/v1/observability/replays?limit=100")[1],
        "store": b"".join(path.read_bytes() for path in files),
    }
