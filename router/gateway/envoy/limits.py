"""Sizes and times that Envoy and the router must agree on, each derived from one place of the plan."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from router.config.plan import Listener, Plan

# What the signals of a request may take in all when the configuration does not say ("Overload", Waiting).
DEFAULT_SIGNAL_DEADLINE_S: Final = 45.0
# The router answers at its own deadline; Envoy's is the backstop, and must not come first.
_ANSWER_MARGIN_S: Final = 5.0
_IDLE_MARGIN_S: Final = 10.0
# Beside the largest body: headers, framing, and a body just over the limit, which the router then refuses itself.
_BUFFER_HEADROOM: Final = 256 * 1024


@dataclass(frozen=True, slots=True)
class Limits:
    """`buffer_bytes` bounds every buffer on the way; `message_timeout_s` one answer of the router."""

    buffer_bytes: int
    message_timeout_s: float

    def idle_timeout_s(self, listener: Listener) -> float:
        """How long a stream may be silent. A request that thinks up to its deadline is silent too."""
        return max(listener.idle_timeout_s, self.message_timeout_s + _IDLE_MARGIN_S)


def limits(*plans: Plan) -> Limits:
    """The limits that serve all of these plans (two during a reload)."""
    return Limits(
        buffer_bytes=max(plan.max_body_bytes for plan in plans) + _BUFFER_HEADROOM,
        message_timeout_s=max(_deadline(plan) for plan in plans) + _ANSWER_MARGIN_S,
    )


def _deadline(plan: Plan) -> float:
    return plan.signal_timeout_ms / 1000 if plan.signal_timeout_ms else DEFAULT_SIGNAL_DEADLINE_S
