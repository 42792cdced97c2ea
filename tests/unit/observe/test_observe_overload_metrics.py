"""The families by the names that the documents give them."""

from __future__ import annotations

from prometheus_client import CollectorRegistry

from router.observe.overload_metrics import OverloadMetrics


def test_names_and_labels() -> None:
    registry = CollectorRegistry()
    metrics = OverloadMetrics(registry)
    metrics.wait_ended("guard", "ok")()
    metrics.wait_ended("guard", "overloaded")()
    metrics.wait_ended("guard", "overloaded")()
    metrics.retryable("messages")()
    metrics.not_admitted("bytes")()
    metrics.taken_on(lambda: 3.0, lambda: 4096.0)

    def value(name: str, **labels: str) -> float | None:
        return registry.get_sample_value(name, labels)

    assert value("vsr_signal_overload_waits_total", deployment="guard", outcome="ok") == 1
    assert value("vsr_signal_overload_waits_total", deployment="guard", outcome="overloaded") == 2
    assert value("vsr_signal_overload_retryable_total", format="messages") == 1
    assert value("pointsman_admission_refused_total", bound="bytes") == 1
    assert value("pointsman_admission_requests") == 3
    assert value("pointsman_admission_buffered_bytes") == 4096
