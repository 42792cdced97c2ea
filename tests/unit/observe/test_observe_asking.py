from __future__ import annotations

from prometheus_client import CollectorRegistry

from router.asking.breaker import BreakerState
from router.observe.asking_metrics import BREAKER_STATES, AskingMetrics


def value(registry: CollectorRegistry, name: str, **labels: str) -> float | None:
    return registry.get_sample_value(name, labels)


def test_where_answers_came_from() -> None:
    registry = CollectorRegistry()
    metrics = AskingMetrics(registry)
    metrics.looked_up("m")(2, 0, 1)
    metrics.looked_up("m")(1, 3, 0)
    found = [
        value(registry, "vsr_model_runtime_result_cache_total", deployment="m", result=result)
        for result in ("hit", "shared", "miss")
    ]
    assert found == [3, 3, 1]


def test_calls_and_their_questions() -> None:
    registry = CollectorRegistry()
    metrics = AskingMetrics(registry)
    metrics.call("m", False)(4)
    metrics.call("m", True)(3)
    metrics.call("m", True)(3)
    calls = "vsr_model_runtime_stage_decision_calls_total"
    assert [value(registry, calls, deployment="m", round=each) for each in ("first", "again")] == [1, 2]
    assert value(registry, "vsr_model_runtime_call_questions_sum", deployment="m") == 10
    assert metrics.call("m", True) is metrics.call("m", True)


def test_a_breaker_is_in_one_state_and_goes_with_its_deployment() -> None:
    registry = CollectorRegistry()
    metrics = AskingMetrics(registry)
    assert set(BREAKER_STATES) == {str(state) for state in BreakerState}
    for state in BreakerState:
        metrics.breakers({"m": state})
        found = {
            name: value(registry, "vsr_model_runtime_breaker", deployment="m", state=name) for name in BREAKER_STATES
        }
        assert found == {name: float(name == state) for name in BREAKER_STATES}
    metrics.breakers({})
    assert value(registry, "vsr_model_runtime_breaker", deployment="m", state="open") is None
