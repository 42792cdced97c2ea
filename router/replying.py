"""What the gateway is told in the end, the verdict or an error in the client's format, and what is counted of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from router.acting.answering import own_answer
from router.acting.latencies import Latencies
from router.acting.plugins import plugins
from router.acting.target import Answered, Contest, NoRoom, Refused, Settled, Target
from router.explaining.diagnostics import diagnostics
from router.explaining.notes import Notes
from router.incoming import Incoming
from router.observe import Metrics
from router.verdict import AnswerWatch, Forward
from router.wire.errors import ErrorCode, WireError, error_reply, reply_to
from router.wire.http import Reply
from router.wire.overload import overloaded_reply
from router.wire.request import LlmRequest
from router.wire.surface import Format

SELECTED_MODEL = "x-selected-model"
PLAN = "x-vsr-plan"
"""Says which configuration decided, so that Envoy keeps to its backends while two are live during a reload."""
PREFER_PREFIX = "x-vsr-retention-prefer-prefix"
"""Tells whoever picks an endpoint behind us whether what is cached of the prompt is worth keeping."""


class Replies:
    """Writes verdicts and errors, and counts them. `latencies` is what is known of backends."""

    __slots__ = ("_latencies", "_metrics")

    def __init__(self, metrics: Metrics, latencies: Latencies) -> None:
        self._metrics = metrics
        self._latencies = latencies

    def count(self, recipe: str, settled: Settled | Contest) -> None:
        """Count a decision."""
        if settled.decision is not None:
            self._metrics.decided(recipe, settled.decision)()

    def verdict(
        self, incoming: Incoming, settled: Settled, request: LlmRequest, changed: bytes | None
    ) -> Reply | Forward:
        """What the gateway is told. `changed` is the body as it must be forwarded, None for as it came."""
        if settled.decision is not None:
            self._acted(settled.told["recipe"], settled.decision, settled)
        if isinstance(settled, Answered):
            return own_answer(settled, request)
        model = settled.model.name
        self._metrics.forwarded(model)()
        # An edited body is forwarded as it reads, whatever coding the client's had.
        remove: tuple[str, ...] = ("content-encoding",) if changed is not None and incoming.encoding else ()
        headers = {SELECTED_MODEL: model, PLAN: incoming.generation.plan.revision}
        if incoming.path is not None:
            headers[":path"] = incoming.path
        written = settled.actions.headers
        if written is not None:
            headers = written.written(incoming.head.headers) | headers
            remove = (*written.delete, *remove)
        retention = settled.actions.retention
        if retention is not None and retention.prefer_prefix_retention is not None:
            headers[PREFER_PREFIX] = str(retention.prefer_prefix_retention).lower()
        watch = self._watch(settled, request) if model in incoming.generation.measured else None
        return Forward(model, headers, remove, changed, settled.told, _structs(settled, incoming.notes), watch)

    def _watch(self, target: Target, request: LlmRequest) -> AnswerWatch:
        """Who measures the answer of a backend that some selector compares with others."""
        begun = self._metrics.ttft(target.model.name)
        return self._latencies.watch(target.model, streaming=request.stream, begun=begun)

    def _acted(self, recipe: str, decision: str, settled: Settled) -> None:
        """Count what a decision has done."""
        if isinstance(settled, Target):
            self._metrics.selected(recipe, decision, settled.told["algorithm"], settled.model.name)()
        for plugin in plugins(settled):
            self._metrics.plugin(recipe, decision, plugin)()

    # Errors.

    def refuse(self, wire_format: Format | None, error: WireError | Refused) -> Reply:
        """The answer to a request that cannot be decided as it is, or for now."""
        if isinstance(error, NoRoom):
            self._metrics.overload.retryable(wire_format or "none")()
            self._metrics.error(error.code)()
            return overloaded_reply(wire_format, error.retry_after_s)
        if isinstance(error, Refused):
            return self.error(wire_format, error.code)
        self._metrics.error(error.code)()
        return reply_to(wire_format, error)

    def error(self, wire_format: Format | None, code: ErrorCode, headers: Mapping[str, str] | None = None) -> Reply:
        """An error in the client's format."""
        self._metrics.error(code)()
        return error_reply(wire_format, code, headers=headers)


def _structs(target: Target, notes: Notes | None) -> Mapping[str, Mapping[str, Any]]:
    limits = target.actions.diagnostics
    return {} if limits is None or notes is None else diagnostics(target, notes, limits)
