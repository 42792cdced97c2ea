"""A running product tells why it decided as it did: previews, records and traces agree with what it really did."""

from __future__ import annotations

import http.server
import json
import threading
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from router.cli import main
from tests.support.stack import Stack, eventually, running

CONFIG = (Path(__file__).parent / "explaining.yaml").read_text()
CANARY = "canary-9d1f-marker"
TRACE = "0af7651916cd43dd8448eb211c80319c"
REPLAYS = "/api/v1/observability/replays"


@pytest.fixture(scope="module")
def telling(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    folder = tmp_path_factory.mktemp("explaining")
    with running(folder, CONFIG, arguments=("--log-level", "debug")) as started:
        yield started


@pytest.fixture(scope="module")
def spans(telling: Stack) -> Iterator[list[Span]]:
    got: list[Span] = []

    class Collector(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                got.extend(span for scope in resource.scope_spans for span in scope.spans)
            self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = http.server.HTTPServer(("127.0.0.1", telling.ports["spare"]), Collector)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    yield got
    server.shutdown()
    thread.join()
    server.server_close()


def post(url: str, body: dict[str, Any], **headers: str) -> tuple[dict[str, str], Any]:
    sent = {"content-type": "application/json", **{name.replace("_", "-"): value for name, value in headers.items()}}
    with urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode(), sent), timeout=30) as reply:
        return {name.lower(): value for name, value in reply.headers.items()}, json.load(reply)


def chat(stack: Stack, text: str, **headers: str) -> dict[str, str]:
    body = {"model": "auto", "messages": [{"role": "user", "content": text}]}
    return post(f"{stack.base}/v1/chat/completions", body, **headers)[0]


def preview(stack: Stack, text: str) -> dict[str, Any]:
    url = f"http://127.0.0.1:{stack.ports['management']}/api/v1/routing/preview?trace=true"
    return dict(post(url, {"model": "auto", "text": text})[1])


def record(stack: Stack, identity: str) -> dict[str, Any]:
    found: dict[str, Any] = {}

    def there() -> bool:
        status, body = stack.management(f"{REPLAYS}/{identity}")
        found.update(json.loads(body))
        return status == 200

    eventually(there, "the record is written", within=10)
    return found


TEXTS = ["Write a quicksort in Rust.", "What shall I cook tonight?"]


@pytest.mark.parametrize("text", TEXTS)
def test_preview_record_and_request_agree(telling: Stack, text: str) -> None:
    told = chat(telling, text)
    kept = record(telling, told["x-vsr-replay-id"])
    seen = preview(telling, text)
    assert kept["decision"] == seen["routing_decision"] == told["x-vsr-selected-decision"]
    assert kept["selected_model"] == seen["selected_model"] == told["x-vsr-selected-model"]
    assert kept["signal_values"] == pytest.approx(seen["signal_values"], abs=1e-6)
    assert [trace["decision_name"] for trace in seen["eval_trace"]] == ["code", "rest"]


def test_a_preview_is_no_request(telling: Stack) -> None:
    chat(telling, TEXTS[0])
    before = telling.total("llm_decision_match_total"), telling.total("pointsman_requests_total")
    preview(telling, TEXTS[0])
    assert (telling.total("llm_decision_match_total"), telling.total("pointsman_requests_total")) == before


def test_every_request_is_counted_once(telling: Stack) -> None:
    before = telling.total("llm_decision_match_total"), telling.total("pointsman_replay_records_total")
    for _ in range(5):
        chat(telling, TEXTS[1])
    eventually(lambda: telling.total("pointsman_replay_records_total") == before[1] + 5, "all are written", within=10)
    assert telling.total("llm_decision_match_total") == before[0] + 5


def test_spans_belong_to_the_clients_trace(telling: Stack, spans: list[Span]) -> None:
    chat(telling, TEXTS[0], traceparent=f"00-{TRACE}-b7ad6b7169203331-01")
    ours: dict[str, Span] = {}

    def arrived() -> bool:
        ours.update((span.name, span) for span in spans if span.trace_id.hex() == TRACE)
        return {"semantic_router.request.received", "semantic_router.response.processing"} <= ours.keys()

    eventually(arrived, "the spans arrive", within=15)
    root, wait = ours["semantic_router.request.received"], ours["semantic_router.upstream.request"]
    assert root.parent_span_id.hex() == "b7ad6b7169203331"
    assert wait.parent_span_id == ours["semantic_router.response.processing"].parent_span_id == root.span_id
    assert root.end_time_unix_nano <= wait.start_time_unix_nano < wait.end_time_unix_nano
    assert {one.key: one.value.int_value for one in wait.attributes}["semantic_router.status"] == 200
    assert {"semantic_router.signal.systemone", "semantic_router.decision.evaluation"} <= ours.keys()


def test_what_a_client_says_is_told_nowhere(telling: Stack, spans: list[Span]) -> None:
    told = chat(telling, f"Hello {CANARY}", traceparent="00-1af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
    kept = record(telling, told["x-vsr-replay-id"])
    seen = preview(telling, f"Hello {CANARY}")
    eventually(lambda: any(span.trace_id.hex().startswith("1af7") for span in spans), "its spans arrive", within=15)
    assert CANARY not in json.dumps([kept, seen])
    assert CANARY not in repr(spans)
    assert CANARY not in telling.log()
    assert CANARY not in telling.metrics()
    stored = b"".join(each.read_bytes() for each in telling.directory.glob("replay.db*"))
    assert CANARY.encode() not in stored


def test_a_session_is_found_again(telling: Stack) -> None:
    told = chat(telling, TEXTS[0], x_session_id="session-1")
    record(telling, told["x-vsr-replay-id"])
    listed = json.loads(telling.management(f"{REPLAYS}?session_id=session-1")[1])
    assert [one["id"] for one in listed["replays"]] == [told["x-vsr-replay-id"]]


def test_a_caller_who_asks_is_told(telling: Stack) -> None:
    told = chat(telling, TEXTS[0], x_vsr_debug="true")
    trace = json.loads(told["x-vsr-trace"])
    assert trace["decision"] == told["x-vsr-selected-decision"]
    assert set(trace["decisions"]) == {"code", "rest"}
    assert len(told["x-vsr-trace"]) <= 4096
    assert "x-vsr-trace" not in chat(telling, TEXTS[0])
    assert "x-vsr-trace" not in chat(telling, TEXTS[0], pointsman_debug="true")


def test_the_wish_reaches_no_backend(telling: Stack) -> None:
    chat(telling, TEXTS[0], x_vsr_debug="true", pointsman_debug="true", x_mark="wish")
    received = [each for name in ("openai",) for each in telling.received(name, "wish")]
    assert len(received) == 1
    names = {name for name, _ in received[0].headers}
    assert not {name for name in names if "debug" in name}


def test_another_configuration_is_tried_on_what_was_recorded(
    telling: Stack, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record(telling, chat(telling, TEXTS[0])["x-vsr-replay-id"])
    new = tmp_path / "new.yaml"
    new.write_text(telling.config.read_text().replace("timeout_ms: 20000", "predicate: {gte: 1.0}"))
    store = str(telling.directory / "replay.db")
    assert main(["replay", "diff", "--config", str(new), "--store", store, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["compared"] >= 1
    assert (found["undecided"]["count"], found["unreadable"]) == (0, 0)
    assert {change["to"] for change in found["changed"]} <= {"rest → general"}
