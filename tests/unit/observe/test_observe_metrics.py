from __future__ import annotations

import re

from prometheus_client.parser import text_string_to_metric_families

from router.observe import Metrics
from router.observe.metrics import RELOAD_OUTCOMES


def lines(metrics: Metrics, family: str) -> list[str]:
    return [line for line in metrics.render().decode().splitlines() if line.startswith(family)]


def test_the_text_is_what_prometheus_reads() -> None:
    metrics = Metrics()
    metrics.request("llm", "chat")()
    metrics.forwarded("coder")()
    metrics.calls.ended("builtin", "systemone")(0.2, None)
    families = {family.name for family in text_string_to_metric_families(metrics.render().decode())}
    assert {"pointsman_requests", "llm_model_requests", "llm_model_routing_latency_seconds"} <= families


def test_counters_count() -> None:
    metrics = Metrics()
    for _ in range(3):
        metrics.decided("default", "code")()
    metrics.error("no_route")()
    metrics.unknown_answer("builtin", "timeout")()
    metrics.runtime_call("builtin", "ok")()
    assert lines(metrics, "llm_decision_match_total") == [
        'llm_decision_match_total{decision="code",recipe="default"} 3.0'
    ]
    assert lines(metrics, "llm_request_errors_total") == ['llm_request_errors_total{reason="no_route"} 1.0']
    assert len(lines(metrics, "vsr_model_runtime_unknown_answers_total")) == 1
    assert len(lines(metrics, "vsr_model_runtime_requests_total")) == 1


def test_a_series_is_looked_up_once() -> None:
    metrics = Metrics()
    assert metrics.request("llm", "chat") is metrics.request("llm", "chat")
    assert metrics.request("llm", "chat") is not metrics.request("llm", "messages")


def test_deployments_come_and_go() -> None:
    metrics = Metrics()
    metrics.prepare(["old", "kept"])
    assert lines(metrics, "vsr_model_runtime_ready{") == [
        'vsr_model_runtime_ready{deployment="old"} 0.0',
        'vsr_model_runtime_ready{deployment="kept"} 0.0',
    ]
    metrics.runtimes_ready({"kept": True, "new": False})
    assert lines(metrics, "vsr_model_runtime_ready{") == [
        'vsr_model_runtime_ready{deployment="kept"} 1.0',
        'vsr_model_runtime_ready{deployment="new"} 0.0',
    ]
    metrics.runtime_restarted("new")
    assert 'vsr_model_runtime_restarts_total{deployment="new"} 1.0' in lines(metrics, "vsr_model_runtime_restarts")


def test_reloads_exist_before_the_first() -> None:
    metrics = Metrics()
    metrics.prepare()
    assert len(lines(metrics, "pointsman_config_reloads_total")) == len(RELOAD_OUTCOMES)
    assert lines(metrics, "pointsman_config_last_reload_successful ") == ["pointsman_config_last_reload_successful 1.0"]
    for outcome in RELOAD_OUTCOMES:
        metrics.reloaded(outcome)
        good = f"pointsman_config_last_reload_successful {float(outcome == 'ok')}"
        assert lines(metrics, "pointsman_config_last_reload_successful ") == [good]
        assert f'pointsman_config_reloads_total{{outcome="{outcome}"}} 1.0' in metrics.render().decode()


def test_label_names_are_a_closed_set() -> None:
    names = {label for family in Metrics().registry.collect() for sample in family.samples for label in sample.labels}
    metrics = Metrics()
    metrics.request("llm", "chat")()
    metrics.error("x")()
    metrics.forwarded("x")()
    metrics.decided("x", "y")()
    metrics.runtime_call("x", "y")()
    metrics.calls.ended("x", "y")(1, {"queue": 0.1})
    metrics.unknown_answer("x", "y")()
    metrics.prepare(["x"])
    names |= set(re.findall(r'[{,](\w+)="', metrics.render().decode()))
    calls = {"deployment", "surface", "phase", "outcome"}
    assert names == {"kind", "format", "reason", "model", "recipe", "decision", "le", *calls}
