"""What is to be done where there is no room, and how much the router takes on at once."""

from __future__ import annotations

from router.config.compiler.context import Context
from router.config.model.globals import Router, SignalOverload
from router.config.overload import DEFAULT_OVERLOAD, NO_BOUNDS, AdmissionSettings, OverloadSettings


def compile_overload(written: SignalOverload | None) -> OverloadSettings:
    """What becomes of requests whose decision model has no room."""
    if written is None:
        return DEFAULT_OVERLOAD
    return OverloadSettings(written.action, written.wait_ms, written.retry_after_seconds)


def compile_admission(context: Context, router: Router) -> AdmissionSettings:
    """The router's own bounds; a request of the largest size must fit."""
    written = router.admission
    if written is None:
        return NO_BOUNDS
    if written.max_buffered_bytes is not None and written.max_buffered_bytes < router.max_body_bytes:
        context.error(
            written.at("max_buffered_bytes"),
            f"{written.max_buffered_bytes} bytes hold no request of the largest size, {router.max_body_bytes} bytes",
            "raise it, or lower global.router.max_body_bytes",
        )
    return AdmissionSettings(written.max_requests, written.max_buffered_bytes)
