"""The limits of a process follow its plan, and what is refused is counted apart."""

from __future__ import annotations

from router.gateway.admission import Limits
from router.observe import Metrics
from router.serving.admission import admission_of, limits_of
from router.serving.memory import usable_memory
from tests.support.plans import PLAIN, plan_of

WRITTEN = (
    "global: {router: {max_body_bytes: 65536, admission: {max_requests: 1, max_buffered_bytes: 65536}},"
    " model_catalog: {on_signal_overload: {retry_after_seconds: 9}}}\n"
)


def test_what_is_written() -> None:
    assert limits_of(plan_of(PLAIN + WRITTEN)) == Limits(1, 65536, 65536, 9)


def test_what_the_memory_allows() -> None:
    found = limits_of(plan_of())
    assert found.buffered_bytes >= usable_memory() // 16
    assert found.requests >= 64
    assert found.retry_after_s == 2


def test_who_is_refused_is_counted() -> None:
    metrics = Metrics()
    admission = admission_of(plan_of(PLAIN + WRITTEN), metrics)
    assert admission.begin(10)
    assert not admission.begin(10)
    value = metrics.registry.get_sample_value
    assert value("pointsman_admission_refused_total", {"bound": "requests"}) == 1
    assert value("llm_request_errors_total", {"reason": "overloaded"}) == 1
    assert value("pointsman_admission_requests") == 1
    assert value("pointsman_admission_buffered_bytes") == 10
