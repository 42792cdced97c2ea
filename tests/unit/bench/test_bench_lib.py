"""The shared parts of the benchmarks: clocks, processes, load, reports."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from rich.console import Console

import bench.__main__ as command_line
from bench import docs
from bench.gateway.backend import Backend
from bench.lib import cpu, load, report
from bench.lib.process import Processes, StartError, free_ports
from bench.lib.python import module


def _burn() -> None:
    sum(range(2_000_000))


def test_cpu_time_counts_ended_threads() -> None:
    before = cpu.cpu_ns(os.getpid())
    thread = threading.Thread(target=_burn)
    thread.start()
    thread.join()
    used = cpu.cpu_by_role({"me": [os.getpid()]})["me"] - before
    assert 1_000_000 < used < 60_000_000_000


def test_cpu_time_agrees_with_the_processs_own_clock() -> None:
    import time

    before, theirs, after = time.process_time_ns(), cpu.cpu_ns(os.getpid()), time.process_time_ns()
    assert before <= theirs <= after


def test_cpu_time_of_a_process_that_is_gone() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    with pytest.raises(ProcessLookupError, match=str(process.pid)):
        cpu.cpu_ns(process.pid)


def test_family_and_command() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        assert process.pid in cpu.family(os.getpid())
        assert cpu.family(process.pid) == [process.pid]
        assert cpu.command(process.pid)[-2:] == ["-c", "input()"]
        process.communicate(b"\n")


def test_processes_are_stopped_and_their_output_kept(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    with Processes(tmp_path) as processes:
        backend = processes.start("backend", module("bench.gateway.backend", "--port", str(port)))
        backend.wait_ready(f"http://127.0.0.1:{port}/")
    with pytest.raises(ProcessLookupError):
        cpu.cpu_ns(backend.pid)
    assert backend.log.exists()


def test_a_process_that_ends_early_is_reported_with_its_last_words(tmp_path: Path) -> None:
    with Processes(tmp_path) as processes:
        failing = processes.start("failing", [sys.executable, "-c", "raise SystemExit('no luck')"])
        with pytest.raises(StartError, match=r"(?s)failing exited with status 1.*no luck"):
            failing.wait_ready("http://127.0.0.1:9/")


def test_a_process_that_never_listens_is_given_up(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    with Processes(tmp_path) as processes:
        idle = processes.start("idle", [sys.executable, "-c", "import signal; signal.pause()"])
        with pytest.raises(StartError, match="idle was not ready"):
            idle.wait_ready(f"http://127.0.0.1:{port}/", timeout_s=0.1)


def test_free_ports_are_distinct() -> None:
    assert len(set(free_ports(20))) == 20


@pytest.fixture
async def backend_port() -> AsyncIterator[int]:
    server = await asyncio.get_running_loop().create_server(Backend, "127.0.0.1", 0)
    yield server.sockets[0].getsockname()[1]
    server.close()


async def test_saturation_counts_what_falls_into_the_window(backend_port: int) -> None:
    marks = iter([{"work": 10}, {"work": 25}])
    request = load.post("/v1/chat/completions", b'{"model": "m"}', backend_port)
    window = await load.saturate(
        backend_port, request, connections=3, warmup_s=0.01, seconds=0.05, probe=lambda: next(marks)
    )
    assert window.used == {"work": 15}
    assert window.requests > 10
    assert window.seconds >= 0.05
    assert window.per_second == window.requests / window.seconds
    assert all(0 < value < 10_000 for value in window.latencies_ms)


async def test_the_open_loop_keeps_its_rate(backend_port: int) -> None:
    request = load.post("/v1/chat/completions", b"{}", backend_port)
    window = await load.at_rate(backend_port, request, rate=200, connections=2, warmup_s=0.02, seconds=0.25, probe=dict)
    assert 0.3 * 200 * 0.25 <= window.requests <= 1.2 * 200 * 0.25 + 2


class Slow(asyncio.Protocol):
    """Answers everything 50 ms late."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        assert isinstance(self.transport, asyncio.Transport)
        answer = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"
        asyncio.get_running_loop().call_later(0.05, self.transport.write, answer)


async def test_the_open_loop_counts_the_wait_for_a_connection() -> None:
    server = await asyncio.get_running_loop().create_server(Slow, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    window = await load.at_rate(
        port, load.post("/", b"", port), rate=100, connections=1, warmup_s=0, seconds=0.4, probe=dict
    )
    server.close()
    # One connection carries 20 a second of the 100 that are due: the queue, and with it the latency, grows.
    assert window.latencies_ms[-1] > 150


async def test_load_fails_when_the_target_does() -> None:
    class Refuses(Slow):
        def data_received(self, data: bytes) -> None:
            assert isinstance(self.transport, asyncio.Transport)
            self.transport.write(b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n\r\n")

    class Leaves(Slow):
        def data_received(self, data: bytes) -> None:
            self.transport.close()

    for protocol, words in ((Refuses, "503"), (Leaves, "closed")):
        server = await asyncio.get_running_loop().create_server(protocol, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(load.LoadError, match=words):
            await load.saturate(port, load.post("/", b"", port), connections=2, warmup_s=0, seconds=5, probe=dict)
        server.close()


def test_answer_heads() -> None:
    assert load.read_head(b"HTTP/1.1 200 OK\r\nContent-Length: 12\r\nx: y") == 12
    for head in (
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked",
        b"HTTP/1.1 404 Not Found\r\ncontent-length: 1",
        b"?",
    ):
        with pytest.raises(load.LoadError):
            load.read_head(head)


def test_percentiles() -> None:
    values = [float(number) for number in range(100, 0, -1)]
    assert load.percentile(values, 50) == 51
    assert load.percentile(values, 99) == 100
    assert load.percentile([7.0], 99) == 7.0


def _result() -> report.Result:
    return report.Result(
        name="sample",
        quick=True,
        seconds=1.0,
        versions={"python": "3"},
        rows=[{"rung": "direct", "per_second": 1.0}],
        ratios={"good": 21.0, "bad": 1.5, "plain": 2.0},
        counts={"requests": 3},
        targets=(report.Target("good", at_least=20), report.Target("bad", at_most=1.35)),
        sheets=(report.Sheet("A sheet", ("rung", "n"), [["direct", "1"]]),),
        notes=("a note",),
    )


def test_results_are_written_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "RESULTS", tmp_path)
    document = json.loads(report.write(_result(), report.machine()).read_text())
    assert document["ratios"] == {"good": 21.0, "bad": 1.5, "plain": 2.0}
    assert document["counts"] == {"requests": 3}
    assert document["rows"] == [{"rung": "direct", "per_second": 1.0}]
    assert document["machine"]["cores"] >= 1
    assert document["machine"]["memory_gib"] > 0
    assert document["machine"]["cpu"]


def test_results_are_shown_with_their_targets() -> None:
    console = Console(record=True, width=100, file=open(os.devnull, "w"))  # noqa: SIM115
    with console.file:
        report.show(_result(), report.machine(), console)
        text = console.export_text()
    lines = {line.split("│")[1].strip(): line for line in text.splitlines() if line.count("│") > 3}
    assert ">= 20" in lines["good"]
    assert "met" in lines["good"]
    assert "<= 1.35" in lines["bad"]
    assert "MISSED" in lines["bad"]
    assert "M" not in lines["plain"]
    assert "a note" in text


def test_versions() -> None:
    assert set(report.versions("uvloop")) == {"commit", "python", "uvloop"}


def test_the_command_knows_its_benchmarks(capsys: pytest.CaptureFixture[str]) -> None:
    assert "gateway" in command_line.names()
    with pytest.raises(SystemExit):
        command_line.main(["unheard-of"])
    assert "gateway" in capsys.readouterr().err


def test_a_result_becomes_markdown_between_its_marks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "RESULTS", tmp_path)
    document = json.loads(report.write(_result(), report.machine()).read_text())
    table = report.markdown(document)
    assert "| rung | n |\n| --- | ---: |\n| direct | 1 |" in table
    assert "| `bad` | 1.5 | <= 1.35: missed |" in table
    text = "before\n<!-- bench sample -->\nold\n<!-- end -->\nafter <!-- bench other --><!-- end -->"
    changed = docs.insert(text, "sample", table)
    assert changed.startswith("before\n<!-- bench sample -->\n\nMeasured ")
    assert changed.endswith("<!-- end -->\nafter <!-- bench other --><!-- end -->")
    assert "old" not in changed
    assert docs.insert(changed, "sample", table) == changed
    with pytest.raises(ValueError, match="bench missing"):
        docs.insert(text, "missing", table)


def test_a_quick_run_never_reaches_the_document(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "RESULTS", tmp_path)
    monkeypatch.setattr(docs, "RESULTS", tmp_path)
    report.write(_result(), report.machine())
    with pytest.raises(SystemExit, match="quick run"):
        docs.main("sample")
