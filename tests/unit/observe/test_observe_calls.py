"""How long calls to decision models took, where that went, and which server had them."""

from __future__ import annotations

import pytest
from prometheus_client import CollectorRegistry

from router.asking.report import PHASES, TOTAL, ServerTime
from router.observe.call_metrics import CallMetrics

CALL = {"deployment": "m", "surface": "systemone"}


def metrics() -> tuple[CallMetrics, CollectorRegistry]:
    registry = CollectorRegistry()
    return CallMetrics(registry), registry


def test_where_the_time_of_a_call_went() -> None:
    made, registry = metrics()
    made.ended("m", "systemone")(0.5, {"queue": 0.1, "forward": 0.3, "other": 0.0, TOTAL: 0.4})
    made.ended("m", "systemone")(0.25, None)
    value = registry.get_sample_value
    assert value("vsr_model_runtime_request_duration_seconds_count", CALL) == 2
    assert value("vsr_model_runtime_request_duration_seconds_sum", CALL) == 0.75
    assert value("vsr_model_runtime_transport_seconds_count", CALL) == 1
    assert value("vsr_model_runtime_transport_seconds_sum", CALL) == pytest.approx(0.1)
    assert value("vsr_model_runtime_server_seconds_sum", {**CALL, "phase": "forward"}) == 0.3
    assert value("vsr_model_runtime_server_seconds_count", {**CALL, "phase": TOTAL}) is None
    assert value("vsr_model_runtime_request_duration_seconds_bucket", {**CALL, "le": "0.25"}) == 1
    assert value("vsr_model_runtime_request_duration_seconds_bucket", {**CALL, "le": "+Inf"}) == 2
    assert made.ended("m", "systemone") is made.ended("m", "systemone")


def test_a_server_that_counts_more_than_the_call_took_leaves_nothing() -> None:
    made, registry = metrics()
    made.ended("m", "systemone")(0.1, {TOTAL: 0.2})
    assert registry.get_sample_value("vsr_model_runtime_transport_seconds_sum", CALL) == 0


@pytest.mark.parametrize(
    ("said", "seconds"),
    [
        (None, None),
        ("", None),
        ("cache;desc=hit", None),
        ("queue;dur=10, compute;dur=30, total;dur=50", {"queue": 0.01, "forward": 0.03, "total": 0.05, "other": 0.01}),
        ("parse;dur=1,other;dur=2.5,total;dur=4", {"parse": 0.001, "other": 0.0025, "total": 0.004}),
        ("queue;dur=10, forward;dur=30, total;dur=5", {"queue": 0.01, "forward": 0.03, "total": 0.005, "other": 0.0}),
        ("queue;dur=1e12, forward;dur=-3, post;dur=nan, parse;dur=, tokenize;dur=2", {"tokenize": 0.002}),
        ("who;dur=3, QUEUE;dur=4, a queue;dur=9", None),
        ("x;dur=1," * 1000 + "queue;dur=1", None),
    ],
)
def test_what_a_server_says_of_its_time(said: str | None, seconds: dict[str, float] | None) -> None:
    time = ServerTime()
    time.said = said
    found = time.seconds()
    assert found is None if seconds is None else found == pytest.approx(seconds)
    assert set(found or ()) <= {*PHASES, TOTAL}


def test_servers_come_and_go() -> None:
    made, registry = metrics()
    one, two = {"deployment": "m", "replica": "http://a:1"}, {"deployment": "m", "replica": "http://b:1"}
    made.replicas({("m", "http://a:1"): (3, True), ("m", "http://b:1"): (0, None)})
    value = registry.get_sample_value
    assert value("vsr_model_runtime_replica_inflight", one) == 3
    assert value("vsr_model_runtime_replica_ready", one) == 1
    assert value("vsr_model_runtime_replica_ready", two) is None, "nobody has asked it yet"
    made.replicas({("m", "http://a:1"): (0, False)})
    assert value("vsr_model_runtime_replica_ready", one) == 0
    assert value("vsr_model_runtime_replica_inflight", two) is None
    made.replicas({})
    assert value("vsr_model_runtime_replica_ready", one) is None
    made.dispatched("m", "http://a:1", "ok")()
    assert value("vsr_model_runtime_replica_requests_total", {**one, "outcome": "ok"}) == 1
