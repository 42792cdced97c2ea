"""bench/gateway without its big processes: derived configurations, the no-op server, schedules, ratios, the lock."""

from __future__ import annotations

import json
import re
import time
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import grpc.aio
import pytest

from bench.gateway import envoy, litellm
from bench.gateway.benchmark import FULL, LARGE, QUICK, SMALL, Round, Schedule, _rounds
from bench.gateway.noop import SERVERS, Unused
from bench.gateway.router import MODEL, PUBLIC, Ports, configuration, rendered
from bench.gateway.rungs import Rung, body, prove
from bench.gateway.summary import ratios, sheets
from bench.lib.load import LoadError
from bench.lib.process import Processes, free_ports
from bench.lib.python import module
from router.gateway.proto.ext_proc_pb2 import HttpBody, HttpHeaders, ProcessingRequest, ProcessingResponse
from router.gateway.transport import SERVICE
from router.gateway.transports import Transport

PORTS = Ports(backend=9001, listener=9002, extproc=9003, metrics=9004, management=9005)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Any]:
    """The router's own bootstrap for the benchmark's configuration."""
    path = tmp_path_factory.mktemp("bench") / "pointsman.yaml"
    path.write_text(configuration(PORTS))
    return rendered(path)


def _filters(bootstrap: Mapping[str, Any]) -> list[str]:
    manager = bootstrap["static_resources"]["listeners"][0]["filter_chains"][0]["filters"][0]["typed_config"]
    return [one["name"] for one in manager["http_filters"]]


def _routes(bootstrap: Mapping[str, Any]) -> list[dict[str, Any]]:
    manager = bootstrap["static_resources"]["listeners"][0]["filter_chains"][0]["filters"][0]["typed_config"]
    found: list[dict[str, Any]] = manager["route_config"]["virtual_hosts"][0]["routes"]
    return found


def test_envoy_alone_differs_by_the_filter_the_route_and_the_ports_only(made: Mapping[str, Any]) -> None:
    before = json.dumps(made)
    alone = envoy.without_ext_proc(made, port=1111, admin_port=2222)
    assert json.dumps(made) == before
    assert _filters(alone) == [name for name in _filters(made) if name != envoy.EXT_PROC]
    assert [route["match"] for route in _routes(alone)] == [{"prefix": "/"}]
    assert _routes(alone)[0]["route"] == _routes(made)[0]["route"]
    assert alone["static_resources"]["clusters"] == made["static_resources"]["clusters"]
    assert "1111" in json.dumps(alone["static_resources"]["listeners"][0]["address"])
    assert "2222" in json.dumps(alone["admin"])


def test_the_noop_rung_asks_in_the_same_phases_but_another_server(made: Mapping[str, Any]) -> None:
    asks = envoy.with_noop(made, port=1111, admin_port=2222, ext_proc_port=3333)
    assert _filters(asks) == _filters(made)
    assert envoy.phases(asks) == envoy.phases(made)
    assert envoy.phases(made)["request_body_mode"] == "BUFFERED"
    theirs = {cluster["name"]: cluster for cluster in made["static_resources"]["clusters"]}
    changed = [one for one in asks["static_resources"]["clusters"] if one != theirs[one["name"]]]
    assert len(changed) == 1
    assert "3333" in json.dumps(changed[0]["load_assignment"])
    assert "9003" not in json.dumps(asks)


@pytest.mark.parametrize("transport", Transport)
async def test_the_noop_server_answers_each_phase_emptily_and_ends(transport: Transport) -> None:
    server = SERVERS[transport](Unused(), "127.0.0.1:0")
    await server.start()
    messages = [
        ProcessingRequest(request_headers=HttpHeaders(end_of_stream=False)),
        ProcessingRequest(request_body=HttpBody(body=b"{}", end_of_stream=True)),
    ]
    async with grpc.aio.insecure_channel(f"127.0.0.1:{server.port}") as channel:
        process: grpc.aio.StreamStreamMultiCallable[ProcessingRequest, bytes] = channel.stream_stream(
            f"/{SERVICE}/Process", ProcessingRequest.SerializeToString
        )
        call = process(iter(messages))
        answers = [ProcessingResponse.FromString(answer) async for answer in call]
        assert await call.code() is grpc.StatusCode.OK
    assert [answer.WhichOneof("response") for answer in answers] == ["request_headers", "request_body"]
    assert all(not answer.request_headers.HasField("response") for answer in answers)
    await server.stop()


@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_bodies_have_their_size_and_name_the_entrypoint(size: int) -> None:
    made = body(size)
    assert len(made) == size
    assert json.loads(made)["model"] == PUBLIC


@pytest.fixture(scope="module")
def backend_port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    (port,) = free_ports(1)
    with Processes(tmp_path_factory.mktemp("backend")) as processes:
        backend = processes.start("backend", module("bench.gateway.backend", "--port", str(port)))
        backend.wait_ready(f"http://127.0.0.1:{port}/")
        yield port


def test_the_proof_looks_at_what_the_backend_got_and_the_client_was_told(backend_port: int) -> None:
    prove(Rung("direct", "direct", backend_port, {}, PUBLIC), backend_port, body(LARGE), warmups=1)
    with urllib.request.urlopen(f"http://127.0.0.1:{backend_port}/_last") as answer:
        seen = json.load(answer)
    assert seen["bytes"] == LARGE
    with pytest.raises(LoadError, match="asked for 'bench-auto', not 'bench-model'"):
        prove(Rung("x", "x", backend_port, {}, MODEL), backend_port, body(SMALL), warmups=1)
    with pytest.raises(LoadError, match="names no decision"):
        prove(Rung("x", "x", backend_port, {}, PUBLIC, decided=True), backend_port, body(SMALL), warmups=1)


def test_rounds_stop_when_the_time_is_up_but_the_first_always_run() -> None:
    first, then = Round(SMALL, "saturated", 1), Round(LARGE, "rate", 1)
    assert list(_rounds(Schedule((first,), (then,), budget_s=0, warmup_s=0), time.monotonic() - 1)) == [first]
    endless = _rounds(Schedule((first,), (then,), budget_s=60, warmup_s=0), time.monotonic())
    assert [next(endless) for _ in range(4)] == [first, then, then, then]


@pytest.mark.parametrize("schedule", [QUICK, FULL])
def test_every_schedule_measures_what_the_ratios_need(schedule: Schedule) -> None:
    planned = {(turn.size, turn.load) for turn in (*schedule.first, *schedule.then)}
    assert planned >= {(SMALL, "saturated"), (LARGE, "saturated"), (SMALL, "rate")}


def _row(rung: str, size: int, load: str, per_second: float, cpu: Mapping[str, float], p50: float = 1.0) -> Any:
    return {
        "rung": rung,
        "body_bytes": size,
        "load": load,
        "per_second": per_second,
        "p50_ms": p50,
        "p99_ms": p50,
        "latencies_ms": [p50] if load == "rate" else None,
        "cpu_us": cpu,
    }


def _rows() -> list[Any]:
    rows = []
    for size in (SMALL, LARGE):
        for full in (900, 1000, 5000):  # the median is what counts
            rows += [
                _row("direct", size, "saturated", 20_000, {}),
                _row("envoy", size, "saturated", 5_000, {"envoy": 100}),
                _row("noop", size, "saturated", 1_500, {"envoy": 300, "router": 100}),
                _row("full", size, "saturated", full, {"envoy": 300, "router": 250}),
                _row("noop_grpcio", size, "saturated", 700, {"envoy": 300, "router": 400}),
                _row("full_grpcio", size, "saturated", 600, {"envoy": 300, "router": 500}),
                _row("litellm", size, "saturated", 40, {"litellm": 16_000}),
            ]
    latency = {"direct": 1.0, "envoy": 2.0, "noop": 3.0, "full": 4.0, "litellm": 31.0}
    roles = {"envoy": ["envoy"], "noop": ["envoy", "router"], "full": ["envoy", "router"], "litellm": ["litellm"]}
    for rung, p50 in latency.items():
        rows.append(_row(rung, SMALL, "rate", 20, dict.fromkeys(roles.get(rung, []), 50.0), p50))
    return rows


def test_ratios() -> None:
    found = ratios(_rows())
    assert found["throughput_full_vs_litellm"] == 25
    assert found["throughput_full_vs_envoy"] == 0.2
    assert found["cpu_full_vs_noop"] == 1.25
    assert found["cpu_full_vs_noop_fast"] == 2.5
    assert found["cpu_fast_vs_grpcio"] == 0.5
    assert found["cpu_with_envoy_full_vs_litellm"] == round(550 / 16_000, 4)
    assert found["added_p50_full_vs_litellm"] == 0.1
    assert found["cpu_full_vs_noop_32kb"] == 1.25


def test_a_table_for_what_was_measured_and_none_for_the_rest() -> None:
    made = sheets(_rows(), [(key, key.title()) for key in ("direct", "envoy", "noop", "full", "litellm")])
    assert [sheet.title.partition(" (")[0] for sheet in made] == ["1 KB, saturated", "1 KB, rate", "32 KB, saturated"]
    assert made[0].rows[0] == ["Direct", "20,000", "1.00", "1.00", "-", "-", "3"]
    assert made[0].rows[3] == ["Full", "1,000", "1.00", "1.00", "300", "250", "3"]
    assert made[0].rows[4][-3:] == ["-", "16,000", "3"]


def test_the_lock_file_pins_every_package_by_hash() -> None:
    text = litellm.ENVIRONMENT.lock.read_text()
    packages = re.findall(r"^([a-z0-9][\w.-]*)==(\S+) \\$", text, re.MULTILINE)
    assert ("litellm", litellm.ENVIRONMENT.version) in packages
    assert litellm.ENVIRONMENT.version != "1.107.0"  # the compromised release
    blocks = re.split(r"^(?=[a-z0-9])", text, flags=re.MULTILINE)[1:]
    assert len(blocks) == len(packages) > 50
    assert all("--hash=sha256:" in block for block in blocks)
    assert "index-url" not in text
    assert "find-links" not in text


def test_the_proxys_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[str, Any] = {}

    class Recording(Processes):
        def start(self, name: str, arguments: Any, environment: Any = None) -> Any:
            seen.update(name=name, arguments=arguments, environment=environment)

    litellm.start(Recording(tmp_path), port=1, backend_port=2, public=PUBLIC, model=MODEL)
    config = json.loads(Path(seen["arguments"][seen["arguments"].index("--config") + 1]).read_text())
    assert config["model_list"][0]["model_name"] == PUBLIC
    assert config["model_list"][0]["litellm_params"]["api_base"] == "http://127.0.0.1:2/v1"
    assert seen["environment"]["HOME"] == str(tmp_path)
