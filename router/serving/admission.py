"""How much a router process takes on: as its plan says, else as the memory that it may use allows."""

from __future__ import annotations

from router.config.plan import Plan
from router.gateway.admission import Admission, Bound, Limits, limits
from router.observe import Metrics
from router.serving.memory import usable_memory
from router.wire.errors import ErrorCode


def limits_of(plan: Plan) -> Limits:
    """The limits under a plan."""
    return limits(plan.admission, usable_memory(), plan.max_body_bytes, plan.overload.retry_after_s)


def admission_of(plan: Plan, metrics: Metrics) -> Admission:
    """The admission of this process, which the metrics tell of."""

    def refused(bound: Bound) -> None:
        metrics.error(ErrorCode.OVERLOADED)()
        metrics.overload.not_admitted(bound.value)()

    admission = Admission(limits_of(plan), refused)
    metrics.overload.taken_on(lambda: admission.requests, lambda: admission.buffered_bytes)
    return admission
